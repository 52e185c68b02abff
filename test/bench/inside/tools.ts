import { join } from 'node:path';
import {
  installPython314,
  locatePython,
  npmPackages,
  pythonEnvironment,
} from '../../environments.ts';
import { MAIN } from '../../e2e/cli.ts';

/*
 * Tools that say what is inside a process, each with the question it is asked and how its answer is read. What a tool does not claim to know
 * is not looked for: text that happens to hold a name would count.
 */

const PINS = join(import.meta.dirname, 'requirements.txt');
const MEMLAB = '2.0.5';
/** What `--inspect` does to a Node process. */
const INSPECTOR = 'a signal that opens its inspector, closed at the end';
/** The stretch that tools are given which look twice, or for a while, seconds. */
const STRETCH_S = 3;

/** What can be asked of a process, by the columns of the table. */
export const QUESTIONS = {
  tasks: 'suspended tasks',
  chain: 'await chain',
  parents: 'who awaits them',
  gil: 'has the GIL',
  waits: 'waits for the GIL',
  container: 'container that grew',
  type: 'what it holds',
  place: 'where allocated',
  busy: 'what computes',
} as const;
export type Question = keyof typeof QUESTIONS;

/** Whether the text answers a question rightly. */
type Answers = Partial<Record<Question, (text: string) => boolean>>;

export interface InsideTool {
  readonly name: string;
  readonly version: string;
  /** What it wants of the process before, or leaves in it; empty: nothing. */
  readonly wants: string;
  readonly target: Target;
  /** A command for `sh`, run in `folder`, which is for its files. */
  script(at: { readonly pid: number; readonly port: number; readonly folder: string }): string;
  readonly answers: Answers;
}

/** How a target is started. */
export interface Target {
  readonly name: string;
  /** `folder`: the one for the files of this run. */
  command(folder: string): readonly string[];
}

const has =
  (...parts: readonly (string | RegExp)[]) =>
  (text: string): boolean =>
    parts.every((part) => (typeof part === 'string' ? text.includes(part) : part.test(text)));

const REQUESTS = 20;
const allRequests = (text: string): boolean =>
  new Set(text.match(/\brequest-\d+\b/g)).size === REQUESTS;
const CHAIN = has('handle_request', 'load_user', 'run_query');

interface TaskDocument {
  readonly tasks: readonly { id: string; name: string; parents: readonly string[] }[];
}

/** Whether `--json` of trace tasks names the report as what awaits the first requests. */
function namesParent(text: string): boolean {
  const { tasks } = JSON.parse(text) as TaskDocument;
  const report = tasks.find(({ name }) => name === 'report')?.id ?? '';
  const child = tasks.find(({ name }) => name === 'request-0');
  return child?.parents.includes(report) ?? false;
}

const TASKS: Answers = { tasks: allRequests, chain: CHAIN, parents: namesParent };
const BUSY: Answers = { busy: has('compute') };
const program = join(import.meta.dirname, '..', '..', 'targets');
const trace = `'${process.execPath}' '${MAIN}'`;

/** The tools on a Python target, trace first; installs what is missing. */
export async function pythonTools(): Promise<readonly InsideTool[]> {
  const asked = locatePython('3.11');
  if (asked === null) throw new Error('this bench wants Python 3.11');
  const names = ['py-spy', 'pystack', 'memray', 'aiomonitor', 'austin-dist'];
  const { python, bin } = await pythonEnvironment(names, asked.path, PINS);
  const script = join(program, 'python', 'inside.py');
  const plain: Target = { name: `Python ${asked.version}`, command: () => [python, script] };
  const monitored: Target = { name: plain.name, command: () => [python, script, 'monitor'] };
  const newest = await installPython314();
  const on314: Target = { name: 'Python 3.14.3', command: () => [newest, script] };
  const ours = (name: string, flags: string, answers: Answers, target = plain): InsideTool => ({
    name: `trace ${name}`,
    version: 'this commit',
    wants: '',
    target,
    script: ({ pid }) => `${trace} ${name} ${pid} ${flags}`,
    answers,
  });
  const peer = (
    name: string,
    version: string,
    script: InsideTool['script'],
    answers: Answers,
    more: Partial<InsideTool> = {},
  ): InsideTool => ({ name, version, wants: '', target: plain, script, answers, ...more });
  return [
    ours('tasks', '--json', TASKS),
    ours('tasks --threads', '', {
      gil: has(/crunch has the GIL/),
      waits: has(/MainThread[^\n]*\n\s+waits for the GIL/),
      busy: has('compute'),
    }),
    ours('heap', `--interval ${STRETCH_S}s`, {
      container: has('_store grew'),
      type: has('entries of __main__.Entry'),
    }),
    ours('profile', `-d ${STRETCH_S}s`, BUSY),
    peer('py-spy dump', '0.4.3', ({ pid }) => `'${bin}/py-spy' dump --pid ${pid}`, {
      gil: has(/\(active\+gil\): "crunch"/),
      ...BUSY,
    }),
    peer('py-spy dump --native', '0.4.3', ({ pid }) => `'${bin}/py-spy' dump --native -p ${pid}`, {
      gil: has(/\(active\+gil\): "crunch"/),
      ...BUSY,
    }),
    peer(
      `py-spy record, ${STRETCH_S} s`,
      '0.4.3',
      ({ pid, folder }) =>
        `'${bin}/py-spy' record --pid ${pid} -d ${STRETCH_S} -f raw -o ${folder}/out && cat ${folder}/out`,
      BUSY,
    ),
    peer('austin --where', '3.7.0', ({ pid }) => `'${bin}/austin' -w ${pid}`, BUSY),
    peer('pystack remote', '1.7.2', ({ pid }) => `'${bin}/pystack' remote ${pid}`, {
      gil: has(/Has the GIL\][^[]*in compute/),
      waits: has(/Waiting for the GIL\][^[]*in main|Waiting for the GIL\][^[]*asyncio\.run/),
      ...BUSY,
    }),
    peer(
      'pystack remote --native',
      '1.7.2',
      ({ pid }) => `'${bin}/pystack' remote --native ${pid}`,
      {
        gil: has(/Has the GIL\][^[]*in compute/),
        waits: has(/Waiting for the GIL\][^[]*asyncio\.run/),
        ...BUSY,
      },
    ),
    peer(
      `memray attach, ${STRETCH_S} s`,
      '1.20.0',
      ({ pid, folder }) =>
        `'${bin}/memray' attach --duration ${STRETCH_S} -o ${folder}/out ${pid} && sleep ${STRETCH_S + 1} && '${bin}/memray' stats ${folder}/out`,
      { place: has('remember') },
      { wants: 'injected by gdb; memray installed where the target runs' },
    ),
    peer(
      'aiomonitor, its web page',
      '0.7.1',
      ({ port }) =>
        `u=http://127.0.0.1:${port}; l=$(curl -sS -X POST $u/api/live-tasks) && echo "$l" && ` +
        `curl -sS "$u/trace-running?task_id=$(echo "$l" | sed 's/.*"\\([0-9]*\\)", "state": "[A-Z]*", "name": "request-7".*/\\1/')"`,
      { tasks: allRequests, chain: CHAIN },
      { wants: 'a call in the code, and a restart', target: monitored },
    ),
    ours('tasks', '--json', TASKS, on314),
    peer(
      'python -m asyncio pstree',
      '3.14.3',
      ({ pid }) => `'${newest}' -m asyncio pstree ${pid}`,
      { tasks: allRequests, chain: CHAIN, parents: has(/make_report[^]*?\(T\) request-0/) },
      { wants: 'Python 3.14 on both sides', target: on314 },
    ),
  ];
}

/** The tools on a Node target. memlab reads snapshots that something else has taken. */
export async function nodeTools(): Promise<readonly InsideTool[]> {
  const folder = await npmPackages(`memlab-${MEMLAB}`, [`memlab@${MEMLAB}`], {
    cost: '100 MB',
    env: { PUPPETEER_SKIP_DOWNLOAD: '1' },
  });
  const memlab = join(folder, 'node_modules', '.bin', 'memlab');
  const script = join(program, 'node', 'inside.js');
  const name = `Node ${process.versions.node}`;
  // Any free port for its inspector: what other programs have on the usual one is no matter of these tools.
  const plain: Target = { name, command: () => [process.execPath, '--inspect-port=0', script] };
  const signalled: Target = {
    name,
    command: (folder) => [
      process.execPath,
      '--heapsnapshot-signal=SIGUSR2',
      `--diagnostic-dir=${folder}`,
      script,
    ],
  };
  const find = (files: string): string =>
    // What it found is on its standard error.
    `'${memlab}' find-leaks ${files} --trace-all-objects --work-dir work > out 2>&1; cat out`;
  const found: Answers = { container: has('--store (property)--->'), type: has('[Entry]') };
  const ours = (what: string, answers: Answers): InsideTool => ({
    name: `trace ${what}`,
    version: 'this commit',
    wants: INSPECTOR,
    target: plain,
    script: ({ pid }) => `${trace} ${what.replace(' ', ` ${pid} `)}`,
    answers,
  });
  return [
    ours(`heap --inspect --interval ${STRETCH_S}s`, { place: has(/remember/) }),
    ours(`heap --inspect --live-objects --interval ${STRETCH_S}s`, { type: has('Entry') }),
    ours(`profile --inspect -d ${STRETCH_S}s`, BUSY),
    {
      name: 'memlab find-leaks, on three snapshots by a signal',
      version: MEMLAB,
      wants: 'a restart with --heapsnapshot-signal',
      target: signalled,
      script: ({ pid }) =>
        `for one in 1 2 3; do kill -USR2 ${pid}; until [ "$(ls | grep -c heapsnapshot)" = $one ]; do sleep 0.05; done; sleep ${STRETCH_S / 3}; done; ` +
        `ls *.heapsnapshot | { read a; read b; read c; ${find('--baseline $a --target $b --final $c')}; }`,
      answers: found,
    },
    {
      name: 'memlab find-leaks, on three of trace heap --heap-snapshot',
      version: MEMLAB,
      wants: INSPECTOR,
      target: plain,
      script: ({ pid }) =>
        `for one in a b c; do ${trace} heap ${pid} --inspect --max-pause 60s --heap-snapshot $one.heapsnapshot || exit; sleep ${STRETCH_S / 3}; done; ${find('--baseline a.heapsnapshot --target b.heapsnapshot --final c.heapsnapshot')}`,
      answers: found,
    },
  ];
}
