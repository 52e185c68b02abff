import { it } from 'vitest';
import type { Running } from '../targets/harness.ts';
import { type AskedRow, ask, watch, WATCH_S, type WatchRow } from './peers/watch.ts';
import { installPeers } from './peers/install.ts';
import { glanceTable } from './peers/glance.ts';
import { enterNamespace } from './peers/namespace.ts';
import {
  askedTable,
  comparedTable,
  pauseTable,
  starterTable,
  WATCH_NOTE,
  watchTable,
  workTable,
} from './peers/pages.ts';
import { worseList } from './peers/worse.ts';
import {
  report,
  silenceClinic,
  starterRound,
  startersOf,
  type StarterRow,
} from './peers/restart.ts';
import { type PauseSlot, pauseRound, roundLimit, workRound, type WorkRow } from './peers/rounds.ts';
import { startHeartbeat } from './peers/heartbeat.ts';
import { askedTools, type Runtime, type Tool, toolsOf } from './peers/tools.ts';
import { publish, rowsOf, setting } from './measurements.ts';
import { startNodeWork, startPythonWork } from './work.ts';

/*
 * trace beside other tools, on the same targets: what they can say, how right it is, what they cost themselves, whether they hold the
 * target up, and what it gets done meanwhile. Twelve minutes on a quiet machine; broken off, it goes on with the row it was at.
 */

const WATCHES = setting('TRACEWRIGHT_BENCH_PEER_WATCHES', 1);
const ASKED = setting('TRACEWRIGHT_BENCH_PEER_ASKED', 2);
const ROUNDS = setting('TRACEWRIGHT_BENCH_PEER_ROUNDS', 3);
const PAUSE_ROUNDS = setting('TRACEWRIGHT_BENCH_PEER_PAUSE_ROUNDS', 2);
const START_ROUNDS = setting('TRACEWRIGHT_BENCH_PEER_START_ROUNDS', 2);
const RUNTIMES = ['python', 'node'] as const;
const PAGE = 'benchmarks.md';

silenceClinic();
const behind = await enterNamespace();
const peers = await installPeers();
const tools = toolsOf(peers);
const asked = askedTools(peers);
const starters = startersOf(peers);
const toolsFor = (runtime: Runtime): readonly Tool[] =>
  tools.filter(({ runtimes }) => runtimes.includes(runtime));
/** py-spy does the same work with and without --nonblocking; that it does not stop is looked at under pauses. */
const workTools = (runtime: Runtime): readonly Tool[] =>
  toolsFor(runtime).filter(({ name }) => !name.includes('--nonblocking'));

interface Watched extends WatchRow {
  readonly runtime: Runtime;
  readonly saturated: boolean;
}

function watched(): Promise<Watched[]> {
  const cases = RUNTIMES.flatMap((runtime) =>
    [false, true].flatMap((saturated) => {
      const some = saturated ? workTools(runtime) : toolsFor(runtime);
      return some.map((tool) => ({ runtime, saturated, tool }));
    }),
  );
  return rowsOf(`peers-watch-${WATCH_S}`, cases.length * WATCHES, async (index) => {
    // Every other repetition in the opposite order.
    const turned = Math.floor(index / cases.length) % 2 === 1 ? cases.toReversed() : cases;
    const one = turned[index % cases.length];
    if (one === undefined) throw new Error('no such case');
    const { runtime, saturated } = one;
    return { runtime, saturated, ...(await watch(one, behind)) };
  });
}

async function askedRows(): Promise<AskedRow[]> {
  const rows = await rowsOf('peers-asked', asked.length * ASKED, async (index) => {
    const tool = asked[index % asked.length];
    if (tool === undefined) throw new Error('no such tool');
    return ask(tool);
  });
  return rows.flat();
}

/** A target of its own for each round: another process has another memory layout. */
async function onTarget<T>(
  target: Promise<Running>,
  use: (target: Running) => Promise<T>,
): Promise<T> {
  const running = await target;
  try {
    return await use(running);
  } finally {
    await running.stop();
  }
}

async function pauses(runtime: Runtime): Promise<PauseSlot[]> {
  const some = toolsFor(runtime);
  const rows = await rowsOf(`peers-pause-${runtime}`, PAUSE_ROUNDS, () =>
    onTarget(startHeartbeat(runtime, roundLimit(some.length), behind), (target) =>
      pauseRound({ tools: some, behind }, target),
    ),
  );
  return rows.flat();
}

function work(runtime: Runtime): Promise<WorkRow[]> {
  const some = workTools(runtime);
  const start = runtime === 'python' ? startPythonWork : startNodeWork;
  return rowsOf(`peers-work-${runtime}`, ROUNDS, () =>
    onTarget(start(roundLimit(some.length), behind), (target) =>
      workRound({ tools: some, behind }, target),
    ),
  );
}

const reports = (): Promise<StarterRow[]> =>
  rowsOf('peers-reports', starters.length, async (index) => {
    const starter = starters[index];
    if (starter === undefined) throw new Error('no such tool');
    return report(starter);
  });
const starts = (): Promise<WorkRow[]> =>
  rowsOf('peers-starts', START_ROUNDS, () => starterRound(starters));

it('accuracy and own CPU, attached', async () => {
  const rows = await watched();
  for (const runtime of RUNTIMES)
    for (const saturated of [false, true]) {
      const some = rows.filter((row) => row.runtime === runtime && row.saturated === saturated);
      const what = runtime === 'python' ? 'a Python service (asyncio)' : 'a Node service (http)';
      publish(
        `Blocks of ${what}, ${saturated ? 'saturated' : 'mostly idle'}: found, named, own CPU`,
        `${WATCH_NOTE}\n\n${watchTable(some)}`,
        PAGE,
      );
    }
});

it('right when asked', async () => {
  publish('Asked during a block', askedTable(await askedRows()), PAGE);
});

it('pauses of the target', async () => {
  const rows = { python: await pauses('python'), node: await pauses('node') };
  publish('Pauses of the target', pauseTable(rows), PAGE);
});

it('work of a saturated target', async () => {
  const rows = { python: await work('python'), node: await work('node') };
  publish('Throughput of a saturated target', workTable(rows), PAGE);
});

it('tools that start the target', async () => {
  publish('Tools that need a restart', starterTable(await reports(), await starts()), PAGE);
});

it('at a glance, and where trace is worse', async () => {
  const rows = {
    watched: await watched(),
    asked: await askedRows(),
    work: { python: await work('python'), node: await work('node') },
    pauses: { python: await pauses('python'), node: await pauses('node') },
    starts: await starts(),
  };
  publish('Where trace is worse', worseList(rows), PAGE, 'first');
  publish('At a glance', glanceTable(rows), PAGE, 'first');
  publish('What is compared', comparedTable(peers, rows.watched), PAGE, 'first');
});
