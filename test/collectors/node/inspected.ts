import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { listeningSockets } from '../../../src/platform/sockets.ts';

/** `fixtures/inspected.cjs`, running: a Node program whose inspector is opened by trace. */
export interface Inspected {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Gives a command and waits for its answer. */
  ask(command: string): Promise<unknown>;
  /** What it wrote on standard error. */
  errors(): string;
  stop(): Promise<void>;
}

/** How the program's surroundings are changed before its inspector is opened. */
export type Surroundings =
  | 'plain'
  | 'process'
  | 'noProcess'
  | 'require'
  | 'timers'
  | 'everything'
  | 'frozen';

const PROGRAM = join(import.meta.dirname, 'fixtures', 'inspected.cjs');

export async function startInspected(
  surroundings: Surroundings = 'plain',
  options: { readonly node?: string; readonly flags?: readonly string[] } = {},
): Promise<Inspected> {
  // A port of its own: the default one may be another's on a machine on which several things are tested.
  const args = [
    `--inspect-port=${await freePort()}`,
    ...(options.flags ?? []),
    PROGRAM,
    surroundings,
  ];
  const child = spawn(options.node ?? process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const { pid } = child;
  if (pid === undefined) throw new Error('the program did not start');
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async (): Promise<unknown> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`the program ended:\n${errors}`);
    return JSON.parse(value) as unknown;
  };
  await answer();
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    pid,
    child,
    errors: () => errors,
    ask: (command) => {
      child.stdin.write(`${command}\n`);
      return answer();
    },
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** A port of loopback that nobody has at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Everything of an inspection that shows from outside and inside. */
export async function remains(target: Inspected): Promise<unknown> {
  return {
    listening: listeningSockets(target.pid).map(({ port }) => port),
    profiled: isBeingProfiled(target.pid),
    inside: await target.ask('state'),
  };
}

/** V8 runs its profiler on a thread of this name, cut to 15 characters. */
export function isBeingProfiled(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).some((tid) => {
    try {
      return readFileSync(`/proc/${pid}/task/${tid}/comm`, 'latin1').startsWith('v8:ProfEvntProc');
    } catch {
      return false; // ended since the folder was listed
    }
  });
}
