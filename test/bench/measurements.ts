import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheFolder } from '../environments.ts';

/*
 * Measurements that can be broken off and taken up again: each row is kept as soon as it is measured, under the commit it was
 * measured on; the page in docs/ is written anew from the rows.
 */

const ROOT = join(import.meta.dirname, '..', '..');
const PAGE = join(ROOT, 'docs', 'measurements.md');
const PREFACE = `# Measurements

Written by \`npm run bench\` and \`npm run soak\` (test/bench); each section says when, on which commit and from how many.
`;

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** The commit, with a mark when the work tree differs from it. */
export function commit(): string {
  const changed = git('status', '--porcelain', '--', 'src', 'collectors') !== '';
  return git('rev-parse', '--short', 'HEAD') + (changed ? '+' : '');
}

/** A positive number from the environment, for `TRACEWRIGHT_BENCH_N` and its like. */
export function setting(name: string, otherwise: number): number {
  const value = Number(process.env[name] ?? otherwise);
  if (!(value > 0))
    throw new Error(`${name} must be a positive number, got ${String(process.env[name])}`);
  return value;
}

/** Measures rows `0 … n-1`, or only those that an earlier run on this commit had not come to. Rows must survive JSON. */
export async function rowsOf<T>(
  name: string,
  n: number,
  measure: (index: number) => Promise<T>,
): Promise<T[]> {
  const file = join(cacheFolder(), 'bench', commit(), `${name}.jsonl`);
  mkdirSync(dirname(file), { recursive: true });
  const rows = existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as T)
    : [];
  while (rows.length < n) {
    const row = await measure(rows.length);
    appendFileSync(file, `${JSON.stringify(row)}\n`);
    rows.push(row);
    console.log(`${name}: ${rows.length} of ${n}`);
  }
  return rows.slice(0, n);
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Prints a section and puts it into docs/measurements.md in the place of its predecessor. */
export function publish(title: string, body: string): void {
  const [cpu] = cpus();
  const when = `${new Date().toISOString().slice(0, 10)}, commit ${commit()}; ${cpus().length} cores (${cpu?.model.trim() ?? '?'}), Linux ${release()}, Node ${process.versions.node}.`;
  const section = `## ${title}\n\n${when}\n\n${body}\n`;
  console.log(`\n${section}`);
  mkdirSync(dirname(PAGE), { recursive: true });
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : PREFACE;
  const [preface = '', ...sections] = page.split(/^(?=## )/m);
  const kept = sections.map((text) => text.trimEnd());
  const at = kept.findIndex((text) => text.startsWith(`## ${title}\n`));
  if (at === -1) kept.push(section.trimEnd());
  else kept[at] = section.trimEnd();
  writeFileSync(PAGE, `${[preface.trimEnd(), ...kept].join('\n\n')}\n`);
}

export const percent = (ratio: number, digits = 1): string => `${(ratio * 100).toFixed(digits)} %`;
export const milliseconds = (seconds: number, digits = 1): string =>
  `${(seconds * 1e3).toFixed(digits)} ms`;
