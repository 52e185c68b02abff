import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../collectors/node/inspected.ts';
import { interpreters } from '../environments.ts';
import { canRun } from '../programs.ts';
import { readPprof } from '../report/pprof-reader.ts';
import { startReady, type Running } from '../targets/harness.ts';
import { runCli, startCli } from './cli.ts';

/*
 * Truth for profiles: a worker whose CPU time goes to hot() for 75 % and to warm() for 25 %, and two threads that wait. Shares are of
 * the worker's own time on a core, so a busy machine changes how many looks there are and not what they say.
 */

const TARGETS = join(import.meta.dirname, '..', 'targets');
const folder = mkdtempSync(join(tmpdir(), 'tracewright-profile-'));
const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../docs/schema/profile.schema.json'), 'utf8'),
) as object;
const validate = new Ajv2020({ formats: { 'date-time': true } }).compile(schema);

interface Document {
  readonly mode: string;
  readonly reason: string;
  readonly interrupted: boolean;
  readonly total_s: number;
  readonly threads: readonly {
    readonly name: string;
    readonly seen_s: number;
    readonly gil_wait_s: number | null;
  }[];
  readonly functions: readonly {
    readonly function: string;
    readonly file: string;
    readonly line: number | null;
    readonly self_ratio: number;
    readonly total_ratio: number;
    readonly samples: number;
  }[];
  readonly quality: { readonly samples: number; readonly rounds: number };
}

function parse(stdout: string): Document {
  const document = JSON.parse(stdout) as Document;
  expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
  return document;
}

const part = (document: Document, name: string): number =>
  document.functions.find((one) => one.function === name)?.total_ratio ?? 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(interpreters().map(({ path, version }) => ({ path, version })))(
  'a profile of CPython $version',
  ({ path }) => {
    let target: Running;
    beforeAll(async () => {
      target = await startReady(path, [join(TARGETS, 'python', 'cpu_shares.py')]);
    });
    afterAll(() => target.stop());

    it('on a core has the shares that the CPU time was spent in, and nobody who waits', async () => {
      const args = [
        'profile',
        String(target.pid),
        '-d',
        '4',
        '-r',
        '200',
        '--max-overhead',
        '50',
        '--json',
      ];
      const { code, stdout, stderr } = await runCli(args);
      expect(code, stderr).toBe(0);
      const document = parse(stdout);
      expect(document.quality.samples).toBeGreaterThan(20);
      const hot = part(document, 'hot');
      // 75 %: four standard deviations of the fewest looks that are accepted are 39 points to either side.
      expect(hot + part(document, 'warm')).toBeGreaterThan(0.9);
      const spread = 4 * Math.sqrt((0.75 * 0.25) / document.quality.samples) + 0.05;
      expect(Math.abs(hot - 0.75)).toBeLessThan(spread);
      expect(part(document, 'wait_for_nothing')).toBe(0);
    });

    it('of the GIL says who had it and who waited for it, by the names that the program gave', async () => {
      const args = (pid: number): string[] => [
        'profile',
        String(pid),
        '-d',
        '2',
        '-m',
        'gil',
        '--json',
      ];
      const shared = await startReady(path, [join(TARGETS, 'python', 'gil_shares.py')]);
      onTestFinished(() => shared.stop());
      const { threads } = parse((await runCli(args(shared.pid))).stdout);
      for (const name of ['tokenize', 'rank', 'render']) {
        const thread = threads.find((one) => one.name === name);
        // A third and two thirds; who has been woken and waits for a core is in neither.
        expect(thread?.seen_s, name).toBeGreaterThan(0.1);
        expect(thread?.gil_wait_s, name).toBeGreaterThan(0.2);
      }
      expect(threads.map(({ name }) => name)).toContain('heartbeat');
      // One that computes alone waits for nobody.
      const alone = parse((await runCli(args(target.pid))).stdout);
      for (const { gil_wait_s } of alone.threads) expect(gil_wait_s).toBeLessThan(0.2);
    });

    it('by the clock has those who wait, each as long as the others', async () => {
      const output = join(folder, `${target.pid}.pprof`);
      const args = ['profile', String(target.pid), '-d', '2', '-m', 'wall', '-o', output];
      const { code, stdout, stderr } = await runCli(args);
      expect(code, stderr).toBe(0);
      expect(stdout).toMatch(/^pid \d+: /);
      const { samples, sampleTypes } = readPprof(readFileSync(output));
      expect(sampleTypes).toEqual(['samples/count', 'wall/nanoseconds']);
      const outermost = new Set(
        samples.flatMap(({ stack }) => stack.map((at) => at.split(' ')[0])),
      );
      for (const name of ['hot', 'wait_for_nothing', '<module>']) expect(outermost).toContain(name);
      const looks = new Map<string, number>();
      for (const { thread, values } of samples)
        looks.set(thread, (looks.get(thread) ?? 0) + (values[0] ?? 0));
      expect(looks.size).toBe(3);
    });

    it('of who holds the GIL has the worker alone', async () => {
      const args = ['profile', String(target.pid), '-d', '2', '-m', 'gil', '--json'];
      const { stdout } = await runCli(args);
      const document = parse(stdout);
      expect(document.quality.samples).toBeGreaterThan(0);
      expect(part(document, 'work')).toBeGreaterThan(0.9);
      expect(part(document, 'wait_for_nothing')).toBe(0);
    });
  },
);

describe.each(interpreters().map(({ path, version }) => ({ path, version })))(
  'the stack of an asyncio task of CPython $version',
  ({ path }) => {
    it('goes on in the tasks that wait for it, down to the first', async () => {
      const target = await startReady(path, [join(TARGETS, 'python', 'async_callers.py')]);
      onTestFinished(() => target.stop());
      const args = ['profile', String(target.pid), '-d', '4', '--max-overhead', '50'];
      const { code, stdout, stderr } = await runCli([...args, '-f', 'collapsed']);
      expect(code, stderr).toBe(0);
      const chains = stdout
        .split('\n')
        .map((line) =>
          line
            .replace(/ \d+$/, '')
            .split(';')
            .map((at) => at.split(' ')[0]),
        )
        .map((names) => names.filter((name) => /^(?:root|branch|leaf|burn)$/.test(name ?? '')))
        .map((names) => names.join(';'));
      expect(chains).toContain('root;branch;leaf;burn');
      // Never one task under another that did not wait for it.
      expect(
        chains.filter((chain) => /leaf;(?:leaf|branch|root)|branch;branch/.test(chain)),
      ).toEqual([]);
    });
  },
);

describe('a profile', () => {
  const python = interpreters()[0]?.path ?? 'python3';
  const start = async (): Promise<Running> => {
    const target = await startReady(python, [join(TARGETS, 'python', 'cpu_shares.py')]);
    onTestFinished(() => target.stop());
    return target;
  };

  it('that is interrupted is written, and ends with 130', async () => {
    const target = await start();
    const run = startCli(['profile', String(target.pid), '-d', 'inf', '--json']);
    await run.said('profiling pid');
    run.child.kill('SIGINT');
    const { code, stdout } = await run.ended;
    expect(code).toBe(130);
    expect(parse(stdout)).toMatchObject({ interrupted: true, reason: 'interrupted' });
  });

  it('ends with its process, and says so', async () => {
    const target = await start();
    const run = startCli(['profile', String(target.pid), '-d', 'inf', '--json', '-m', 'wall']);
    await run.said('profiling pid');
    await target.stop();
    const { code, stdout, stderr } = await run.ended;
    // Killed before the first look there is nothing to write.
    if (code === 3) expect(stderr).toContain('ended before anything was seen');
    else {
      expect(code).toBe(0);
      expect(parse(stdout)).toMatchObject({ reason: 'target-gone', interrupted: false });
    }
  });

  it('of a process that is not there, or runs something else, is refused', async () => {
    const target = await start();
    await target.stop();
    const gone = await runCli(['profile', String(target.pid)]);
    expect([gone.code, gone.stdout]).toEqual([3, '']);
    expect(gone.stderr).toContain('no process has pid');
    const node = await startReady(process.execPath, ['-e', READY_NODE]);
    onTestFinished(() => node.stop());
    const withoutInspector = await runCli(['profile', String(node.pid)]);
    expect(withoutInspector.code).toBe(5);
    expect(withoutInspector.stderr).toContain('--inspect');
    const gil = await runCli(['profile', String(node.pid), '-m', 'gil']);
    expect([gil.code, gil.stdout]).toEqual([5, '']);
  });

  it.skipIf(
    process.getuid?.() !== 0 || !canRun('setpriv', '--bounding-set', '-sys_ptrace', 'true'),
  )('of a process whose memory may not be read ends with 4', async () => {
    const target = await start();
    const command = ['setpriv', '--bounding-set', '-sys_ptrace', process.execPath];
    const { code, stderr } = await runCli(['profile', String(target.pid)], { command });
    expect(code, stderr).toBe(4);
    expect(stderr).toMatch(/^trace: pid \d+ cannot be profiled: E(?:ACCES|PERM)/);
  });

  it('of Node is taken by V8 through an inspector that --inspect opens and closes', async () => {
    // What V8 has inlined before it is profiled counts as its caller.
    const flags = [`--inspect-port=${await freePort()}`, '--no-turbo-inlining'];
    const node = await startReady(process.execPath, [...flags, '-e', READY_NODE]);
    onTestFinished(() => node.stop());
    const args = ['profile', String(node.pid), '-d', '3', '--inspect', '--json'];
    const { code, stdout, stderr } = await runCli(args);
    expect(code, stderr).toBe(0);
    const document = parse(stdout);
    expect(document.functions.map((one) => one.function)).toContain('burnHere');
    expect(document.functions.map((one) => one.function)).not.toContain('(idle)');
    const waiting = await runCli([...args, '-m', 'wall']);
    expect(parse(waiting.stdout).functions.map((one) => one.function)).toContain('(idle)');
  });
});

/** Works for a half of the time. */
const READY_NODE = `
function burnHere() {
  const end = Date.now() + 50;
  let sum = 0;
  while (Date.now() < end) for (let i = 0; i < 1000; i++) sum += i * i;
  return sum;
}
setInterval(burnHere, 100);
console.log('READY ' + process.pid + ' 0');
`;
