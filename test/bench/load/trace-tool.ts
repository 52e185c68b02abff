import { join } from 'node:path';
import { MAIN } from '../../e2e/cli.ts';
import { parseTraceReport, seenRequests } from '../../load/clients/trace.ts';
import { TRACE } from './bars.ts';
import type { Asked, LoadTool } from './tools.ts';

/** `trace load` as it is measured here: with recording, spans and request log. */

const WARMUP_S = 1;

export const trace: LoadTool = {
  name: TRACE,
  can: () => true,
  command({ scenario: { load, seconds, tokens }, url, folder }) {
    const arrival =
      load.kind === 'closed'
        ? ['-c', String(load.concurrency), '--ramp', `${WARMUP_S / 2}s`]
        : ['-r', String(load.rate), '--burstiness', load.poisson ? '1' : 'inf'];
    const prompts = ['--isl', '64', '--osl', String(tokens)];
    const time = ['-d', `${seconds}s`, '--warmup', `${WARMUP_S}s`];
    const output = ['-o', join(folder, 'recording'), '--request-log', join(folder, 'requests')];
    const what = ['load', url, '-m', 'truth', ...arrival, ...prompts, ...time, ...output];
    return { command: [process.execPath, MAIN, ...what, '--json', '--yes'] };
  },
  reported({ folder }: Asked, stdout) {
    const { ttft, itl, lateness, requests } = parseTraceReport(stdout);
    const seen = seenRequests(join(folder, 'requests'));
    return { ttft, itl, lateness, seen, warmup: 0, failed: requests.failed };
  },
};
