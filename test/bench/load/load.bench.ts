import { createHash } from 'node:crypto';
import { it } from 'vitest';
import { tinyTokenizer } from '../../servers/install.ts';
import { publish, rowsOf, setting } from '../measurements.ts';
import { barTable } from './bars.ts';
import { installLoadPeers } from './install.ts';
import { type LoadFailure, type LoadRow, measure, stepAside } from './measure.ts';
import { accuracyTable, arrivalTable, latenessTable, peerTable, scenarioText } from './pages.ts';
import { type Scenario, SCENARIOS } from './scenarios.ts';
import { peerTools, undici } from './tools.ts';
import { trace } from './trace-tool.ts';
import { worseList } from './worse.ts';

/*
 * `trace load` beside other load generators, each alone on a core, against a server that knows the truth. Half an hour on a quiet machine, as
 * root; broken off, it goes on with the row it was at.
 */

const ROUNDS = setting('TRACEWRIGHT_BENCH_LOAD_ROUNDS', 3);
/** Regular expressions, to look at a part: it is printed then, and not published. */
const ONLY_TOOLS = new RegExp(process.env['TRACEWRIGHT_BENCH_LOAD_TOOLS'] ?? '');
const ONLY_SCENARIOS = new RegExp(process.env['TRACEWRIGHT_BENCH_LOAD_SCENARIOS'] ?? '');
const isWhole = ONLY_TOOLS.source === '(?:)' && ONLY_SCENARIOS.source === '(?:)';

function show(
  title: string,
  body: string,
  page: 'benchmarks.md' | 'measurements.md' = 'benchmarks.md',
): void {
  if (isWhole) publish(title, body, page);
  else console.log(`\n## ${title}\n\n${body}\n`);
}

const peers = await installLoadPeers();
const tools = [trace, undici, ...peerTools(peers, await tinyTokenizer())].filter(({ name }) =>
  ONLY_TOOLS.test(name),
);
const scenarios = Object.values(SCENARIOS).filter(({ name }) => ONLY_SCENARIOS.test(name));
const cases = scenarios.flatMap((scenario) =>
  tools.filter((tool) => tool.can(scenario)).map((tool) => ({ scenario, tool })),
);

/** Round by round, all tools of a scenario one after the other, every other round in the opposite order. */
async function rows(): Promise<(LoadRow | LoadFailure)[]> {
  stepAside();
  const asked = [...scenarios.map(({ name }) => name), ...tools.map(({ name }) => name)];
  const name = `load-${createHash('sha256').update(asked.join('\n')).digest('hex').slice(0, 8)}`;
  return rowsOf(name, cases.length * ROUNDS, (index) => {
    const turned = Math.floor(index / cases.length) % 2 === 1 ? cases.toReversed() : cases;
    const one = turned[index % cases.length];
    if (one === undefined) throw new Error('no such case');
    return measure(one.tool, one.scenario);
  });
}

const isRow = (row: LoadRow | LoadFailure): row is LoadRow => !('failure' in row);

function sectionOf(scenario: Scenario, measured: readonly LoadRow[]): void {
  const some = measured.filter((row) => row.scenario === scenario.name);
  const text = scenario.load.kind === 'open' ? arrivalTable(some) : accuracyTable(some);
  show(`Load: ${scenario.name}`, `${scenarioText(scenario)}\n\n${text}`);
}

it('load generators', async () => {
  const all = await rows();
  const measured = all.filter(isRow);
  const failures = all.filter((row): row is LoadFailure => !isRow(row));
  show('Load generators: what is compared', peerTable(peers, failures));
  show('Load generators: what trace load promises', barTable(measured));
  show('Load generators: where trace load is worse', worseList(measured));
  for (const scenario of scenarios) sectionOf(scenario, measured);
  show('Load: lateness of the truth server', latenessTable(measured), 'measurements.md');
});
