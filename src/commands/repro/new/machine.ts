import { describeHost } from '../../../platform/host.ts';
import { runBriefly } from '../../../platform/run-briefly.ts';
import { printable } from '../../../core/text.ts';
import type { Seconds } from '../../../core/types.ts';
import type { Machine } from '../../../../repro/generate/readme.ts';

/** nvidia-smi takes a second where the driver has to be loaded. */
const LIMIT: Seconds = 10;

/** This machine, for the README of a reproduction. */
export async function thisMachine(): Promise<Machine> {
  const { kernel, architecture } = describeHost();
  const run = await runBriefly('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader'], LIMIT);
  const gpus = run.ended === 'exit' && run.code === 0 ? run.output.trim().split('\n') : [];
  return {
    system: `Linux ${kernel} ${architecture}`,
    gpus: gpus.filter((name) => name !== '').map((name) => printable(name, 80)),
  };
}
