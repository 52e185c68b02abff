import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openRecording } from '../../src/recording/reader.ts';
import { processState, startCli } from '../e2e/cli.ts';
import { type RunningTarget, startTarget } from '../targets/harness.ts';
import { publish, rowsOf, setting, table } from './measurements.ts';

/* `kill -9` of trace at random moments: the target and the machine are as before, and what was recorded can be read. */

const KILLS = setting('TRACEWRIGHT_BENCH_KILLS', 50);
/** From the very start of the process to well into the run. */
const LATEST_S = 4;

interface Row {
  readonly afterS: number;
  readonly recording: string;
  readonly spans: number;
}

/** What trace could have left behind in the target, in the kernel, or on the machine; `scratch` was its temporary folder. */
function remains(target: RunningTarget, scratch: string): unknown {
  const threads = readdirSync(`/proc/${target.pid}/task`).map(Number);
  const maps = readFileSync(`/proc/${target.pid}/maps`, 'utf8').split('\n');
  return {
    threads: threads.length,
    stopped: threads
      .map((tid) => processState(tid))
      .filter(({ state, tracer }) => !/[RSD]/.test(state) || tracer !== 0),
    descriptors: readdirSync(`/proc/${target.pid}/fd`).length,
    mappedFiles: maps.filter((line) => / \//.test(line)).length,
    temporary: readdirSync(scratch),
    processes: processesNaming(scratch),
    instances: existsSync(TRACING_INSTANCES) ? readdirSync(TRACING_INSTANCES) : [],
  };
}

const TRACING_INSTANCES = '/sys/kernel/tracing/instances';

/** Processes with this in their environment: whatever trace started inherits it. */
function processesNaming(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text);
      } catch {
        return false; // it ended meanwhile, or is another user's
      }
    });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    get({ host: '127.0.0.1', port, path: '/', agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode === 200));
    }).on('error', () => resolve(false));
  });
}

/** Several looks, since a request under way opens a descriptor of the target for a moment. */
async function settles(look: () => unknown, wanted: unknown): Promise<unknown> {
  let seen = look();
  for (let tries = 0; tries < 50 && JSON.stringify(seen) !== JSON.stringify(wanted); tries++) {
    await wait(20);
    seen = look();
  }
  return seen;
}

it('can be killed at any moment', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kill-9-'));
  const target = await startTarget('asyncio', {
    kinds: ['sleep', 'spin'],
    durations: [80],
    reps: 100_000,
    startS: 0,
    seconds: 3_000,
  });
  await wait(500);
  const scratch = mkdtempSync(join(folder, 'tmp-'));
  const before = remains(target, scratch);
  const rows = await rowsOf<Row>(`survival-${KILLS}`, KILLS, async (index) => {
    const path = join(folder, String(index));
    const run = startCli(['attach', String(target.pid), '-d', '60', '-o', path], {
      env: { TMPDIR: scratch },
    });
    const afterS = Math.random() * LATEST_S;
    await wait(afterS * 1e3);
    run.child.kill('SIGKILL');
    expect((await run.ended).signal).toBe('SIGKILL');
    expect(await settles(() => remains(target, scratch), before)).toEqual(before);
    expect(await answers(target.port)).toBe(true);
    if (!existsSync(path)) return { afterS, recording: 'not begun', spans: 0 };
    try {
      const view = await openRecording(path);
      return {
        afterS,
        recording: 'read',
        spans: view.spans('tracewright.eventloop.blocked').length,
      };
    } catch (error) {
      return {
        afterS,
        recording:
          error instanceof Error ? error.message.replaceAll(path, '<recording>') : String(error),
        spans: 0,
      };
    }
  });
  await target.stop();
  rmSync(folder, { recursive: true });
  const outcomes = new Map<string, Row[]>();
  for (const row of rows)
    outcomes.set(row.recording, [...(outcomes.get(row.recording) ?? []), row]);
  publish(
    'Killed with kill -9',
    `${rows.length} times at a random moment of the first ${LATEST_S} s. Each time the target had the threads, descriptors and mapped files it had before, none of them stopped or traced, and answered; no process, temporary file or tracing instance was left.

${table(
  ['recording', 'times', 'killed after', 'blocks in it'],
  [...outcomes].map(([recording, group]) => [
    recording,
    String(group.length),
    `${Math.min(...group.map((row) => row.afterS)).toFixed(1)}–${Math.max(...group.map((row) => row.afterS)).toFixed(1)} s`,
    String(group.reduce((sum, row) => sum + row.spans, 0)),
  ]),
)}`,
  );
});
