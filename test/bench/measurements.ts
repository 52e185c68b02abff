import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { cpus, release } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheFolder } from '../environments.ts';

/*
 * Measurements that can be broken off and taken up again: each row is kept as soon as it is measured, under the commit it was
 * measured on; the page in docs/ is written anew from the rows.
 */

const ROOT = join(import.meta.dirname, '..', '..');
/** The pages that measurements are written to, each with what stands above its sections. */
const PAGES = {
  'measurements.md': `# Measurements

Written by \`npm run bench\` and \`npm run soak\` (test/bench); each section says when, on which commit and from how many.
`,
  'benchmarks.md': `# Benchmarks

trace beside other tools on the same targets. Written by \`npm run bench -- peers\` (test/bench/peers.bench.ts), the sections on load by
\`npm run bench:load\` (test/bench/load) and \`npm run test:vllm\`; each says when, on which commit and from how many. Every tool is at the
version under "What is compared" and is read as kindly as its output allows.
What trace costs and finds by itself is in [measurements.md](measurements.md).
`,
  'data/tests.md': `# How steady the tests are

Written by \`npm run soak -- tests\` (test/bench/tests.soak.ts).
`,
  'data/attack.md': `# Damaged input

Written by \`npm run soak -- attack\` (test/bench/attack.soak.ts).
`,
  'data/healthy.md': `# What is said of healthy programs

Written by \`npm run soak -- programs\` and \`npm run soak -- crowd\` (test/healthy).
`,
} as const;

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** The commit, with a mark when the work tree differs from it. */
export function commit(): string {
  const changed = git('status', '--porcelain', '--', 'src', 'collectors', 'repro') !== '';
  return git('rev-parse', '--short', 'HEAD') + (changed ? '+' : '');
}

/** A positive number from the environment, for `TRACEWRIGHT_BENCH_N` and its like. */
export function setting(name: string, otherwise: number): number {
  const value = Number(process.env[name] ?? otherwise);
  if (!(value > 0))
    throw new Error(`${name} must be a positive number, got ${String(process.env[name])}`);
  return value;
}

/**
 * Measures rows `0 … n-1`, or only those that an earlier run on this commit (or of another state that the figures depend on) had not come to.
 * Rows must survive JSON.
 */
export async function rowsOf<T>(
  name: string,
  n: number,
  measure: (index: number) => Promise<T>,
  state: string = commit(),
): Promise<T[]> {
  const file = join(cacheFolder(), 'bench', state, `${name}.jsonl`);
  mkdirSync(dirname(file), { recursive: true });
  const rows = linesOf<T>(file);
  while (rows.length < n) {
    const row = await measure(rows.length);
    appendFileSync(file, `${JSON.stringify(row)}\n`);
    rows.push(row);
    console.log(`${name}: ${rows.length} of ${n}`);
  }
  return rows.slice(0, n);
}

/** A row in docs/data. */
interface KeptRow<T> {
  readonly state: string;
  readonly name: string;
  readonly row: T;
}

/**
 * As {@link rowsOf}, in a file of docs/data: committed, it is taken up on another machine. Rows of
 * another state are dropped.
 */
export async function keptRowsOf<T>(
  file: `docs/data/${string}.jsonl`,
  { name, n, state }: { readonly name: string; readonly n: number; readonly state: string },
  measure: () => Promise<T>,
): Promise<T[]> {
  const path = join(ROOT, file);
  const kept = linesOf<KeptRow<T>>(path).filter((one) => one.state === state);
  const rows = kept.filter((one) => one.name === name).map(({ row }) => row);
  while (rows.length < n) {
    const row = await measure();
    rows.push(row);
    kept.push({ state, name, row });
    writeFileSync(path, `${kept.map((one) => JSON.stringify(one)).join('\n')}\n`);
    console.log(`${name}: ${rows.length} of ${n}`);
  }
  return rows.slice(0, n);
}

/** The rows of a file of JSON lines; none where there is none. */
function linesOf<T>(file: string): T[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}

/** The first row of that name that was measured last, of whatever state; null where none was. */
export function newestRow<T>(name: string): T | null {
  const folder = join(cacheFolder(), 'bench');
  const [newest] = readdirSync(folder)
    .map((state) => join(folder, state, `${name}.jsonl`))
    .filter((path) => existsSync(path))
    .toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  const [line] = newest === undefined ? [] : readFileSync(newest, 'utf8').split('\n');
  return line === undefined || line === '' ? null : (JSON.parse(line) as T);
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Prints a section and puts it into a page of docs/ in the place of its predecessor; a new one goes to the end, or to the front. */
export function publish(
  title: string,
  body: string,
  name: keyof typeof PAGES = 'measurements.md',
  place: 'first' | 'last' = 'last',
): void {
  const [cpu] = cpus();
  const when = `${new Date().toISOString().slice(0, 10)}, commit ${commit()}; ${cpus().length} cores (${cpu?.model.trim() ?? '?'}), Linux ${release()}, Node ${process.versions.node}.`;
  const section = `## ${title}\n\n${when}\n\n${body}\n`;
  console.log(`\n${section}`);
  const path = join(ROOT, 'docs', name);
  mkdirSync(dirname(path), { recursive: true });
  const page = existsSync(path) ? readFileSync(path, 'utf8') : PAGES[name];
  const [preface = '', ...sections] = page.split(/^(?=## )/m);
  const kept = sections.map((text) => text.trimEnd());
  const at = kept.findIndex((text) => text.startsWith(`## ${title}\n`));
  if (at !== -1) kept[at] = section.trimEnd();
  else if (place === 'first') kept.unshift(section.trimEnd());
  else kept.push(section.trimEnd());
  writeFileSync(path, `${[preface.trimEnd(), ...kept].join('\n\n')}\n`);
}

export const percent = (ratio: number, digits = 1): string => `${(ratio * 100).toFixed(digits)} %`;
export const milliseconds = (seconds: number, digits = 1): string =>
  `${(seconds * 1e3).toFixed(digits)} ms`;

/** Student's t, two-sided 95 %, by degrees of freedom; beyond the table it is the normal's. */
const T95 = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12,
  2.11, 2.1, 2.09, 2.09,
];

/** The mean of ratios with its 95 % interval, as text. */
export function meanInterval(values: readonly number[]): string {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1);
  const half = (T95[values.length - 2] ?? 1.96) * Math.sqrt(variance / values.length);
  return `${percent(mean, 2)} (${percent(mean - half, 2)} to ${percent(mean + half, 2)})`;
}

/** CPU seconds of one thread, to the nanosecond; none when it is gone. */
export function threadCpuOf(pid: number, tid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  } catch {
    return 0;
  }
}

/** CPU seconds of a process with all its threads. A thread that ends meanwhile counts nothing. */
export function cpuOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map((tid) => threadCpuOf(pid, Number(tid)))
    .reduce((total, seconds) => total + seconds, 0);
}
