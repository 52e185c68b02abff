import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/* What reading GPUs costs trace: the collector alone, beside a fake nvidia-smi that answers from a capture of an H100. */

const run = promisify(execFile);
const SETTLE_S = 5;
const MEASURE_S = setting('TRACEWRIGHT_BENCH_S', 60);
const GPUS = [1, 8, 16];
/** The issue's own limit, for one GPU. */
const LIMIT = 0.01;

interface Row {
  readonly gpus: number;
  readonly own: number;
  readonly samples: number;
  readonly memory: number;
}

async function measure(gpus: number): Promise<Row> {
  const values = Array.from({ length: gpus }, (_, index) => ({
    index: String(index),
    'pci.bus_id': `00000000:${(index + 1).toString(16).toUpperCase().padStart(2, '0')}:00.0`,
    uuid: `GPU-${index}`,
  }));
  const processes = values.map((_, index) => [4711, 5000, index] as const);
  const smi = new FakeSmi({ capture: CAPTURE.h100, values, processes });
  const child = join(import.meta.dirname, 'gpu-in-child.mjs');
  const { stdout } = await run(process.execPath, [
    child,
    smi.program,
    String(SETTLE_S),
    String(MEASURE_S),
  ]);
  return { gpus, ...(JSON.parse(stdout) as Omit<Row, 'gpus'>) };
}

it('costs less than a hundredth of a core', async () => {
  const rows = await rowsOf('gpu', GPUS.length, (index) => measure(GPUS[index] ?? 1));
  publish(
    'GPUs',
    `The collector alone, one reading a second, over ${MEASURE_S} s after the first ${SETTLE_S} s; user and system time of its process, the starts of \`nvidia-smi\` every 10 s in it, what that program itself takes not.

${table(
  ['GPUs', 'share of a core', 'samples a second', 'resident memory'],
  rows.map(({ gpus, own, samples, memory }) => [
    String(gpus),
    percent(own, 2),
    (samples / (SETTLE_S + MEASURE_S)).toFixed(0),
    `${Math.round(memory / 2 ** 20)} MiB`,
  ]),
)}`,
  );
  expect(rows[0]?.own).toBeLessThan(LIMIT);
});
