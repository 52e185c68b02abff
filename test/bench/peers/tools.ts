import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openRecording } from '../../../src/recording/reader.ts';
import { MAIN } from '../../e2e/cli.ts';
import { scoreInput } from '../../truth/from-recording.ts';
import type { SeenSpan } from '../../truth/score.ts';
import type { TruthBlock } from '../../truth/truth.ts';
import {
  alignClaims,
  type Claim,
  claimsOfAustin,
  claimsOfBlocksnoop,
  claimsOfPerf,
  claimsOfPySpy,
} from './claims.ts';
import type { Peers } from './install.ts';

export type Runtime = 'python' | 'node';

/** What a finished run of a tool left. */
export interface Output {
  readonly pid: number;
  readonly folder: string;
  readonly stdout: string;
  readonly truth: readonly TruthBlock[];
}

/** A tool that attaches to a running process, as it is measured here. */
export interface Tool {
  readonly name: string;
  readonly runtimes: readonly Runtime[];
  /** What runs until SIGINT, in the namespace of the targets; `folder` is empty and for its output. */
  command(pid: number, folder: string): readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The blocks in its output, on CLOCK_MONOTONIC. */
  spans(output: Output): Promise<readonly SeenSpan[]>;
}

/** 100 samples a second, py-spy's default; Austin's own default is 10,000. */
const RATE = 100;

const trace: Tool = {
  name: 'trace attach',
  runtimes: ['python', 'node'],
  command: (pid, folder) => {
    const output = ['--json', '-o', join(folder, 'recording')];
    return [process.execPath, MAIN, 'attach', String(pid), '-d', '0', ...output];
  },
  async spans({ pid, folder, truth }) {
    const input = scoreInput(await openRecording(join(folder, 'recording')), pid, truth);
    const shift = input.anchor.mono - input.anchor.wall;
    return input.spans.map((span) => ({ ...span, from: span.from + shift, to: span.to + shift }));
  },
};

/** The tools that run here, trace first. */
export function toolsOf(peers: Peers): readonly Tool[] {
  const tools: Tool[] = [trace];
  const { 'py-spy': pySpy, austin, blocksnoop, perf, austinFolder } = peers;
  if (pySpy.path !== null) tools.push(pySpyRecord(pySpy.path), pySpyRecord(pySpy.path, true));
  if (austin.path !== null) {
    const { path } = austin;
    tools.push({
      name: `austin, ${RATE} Hz`,
      runtimes: ['python'],
      command: (pid, folder) => {
        const interval = ['-i', `${1e3 / RATE}ms`];
        return [path, ...interval, '-p', String(pid), '-o', join(folder, 'out')];
      },
      spans: (output) => claimed(output, (text) => claimsOfAustin(text, output.pid)),
    });
  }
  if (blocksnoop.path !== null) {
    const { path } = blocksnoop;
    tools.push({
      name: 'blocksnoop',
      runtimes: ['python'],
      command: (pid) => [path, '--json', '-t', '50', String(pid)],
      env: { PATH: `${austinFolder}:${process.env['PATH'] ?? ''}` },
      spans: (output) => claimed(output, claimsOfBlocksnoop),
    });
  }
  if (perf.path !== null) {
    const { path } = perf;
    tools.push({
      name: 'perf trace, epoll only',
      runtimes: ['python', 'node'],
      command: (pid, folder) => {
        const what = ['-T', '-e', 'epoll_wait,epoll_pwait', '-p', String(pid)];
        return [path, 'trace', ...what, '-o', join(folder, 'out')];
      },
      spans: (output) => claimed(output, (text) => claimsOfPerf(text, output.pid)),
    });
  }
  return tools;
}

/** With `--idle`: without it py-spy leaves out threads that sleep, and with them every block that does not compute. */
function pySpyRecord(path: string, nonblocking = false): Tool {
  return {
    name: `py-spy record, ${RATE} Hz${nonblocking ? ', --nonblocking' : ''}`,
    runtimes: ['python'],
    command: (pid, folder) => [
      path,
      'record',
      `--pid=${pid}`,
      `--rate=${RATE}`,
      '--idle',
      '--format=chrometrace',
      `--output=${join(folder, 'out')}`,
      ...(nonblocking ? ['--nonblocking'] : []),
    ],
    spans: (output) => claimed(output, claimsOfPySpy),
  };
}

async function claimed(
  { folder, stdout, truth }: Output,
  read: (text: string) => readonly Claim[],
): Promise<readonly SeenSpan[]> {
  const file = join(folder, 'out');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : stdout;
  const claims = read(text);
  return alignClaims(claims, truth).map(({ from, to, function: name }) => {
    return {
      from,
      to,
      durationMin: to - from,
      durationMax: to - from,
      function: name,
      starved: false,
    };
  });
}

/** A tool that is asked once and says where the target is at that moment. */
export interface Asked {
  readonly name: string;
  readonly command: (pid: number) => readonly string[];
}

export function askedTools({ 'py-spy': pySpy, austin }: Peers): readonly Asked[] {
  const asked: Asked[] = [];
  if (pySpy.path !== null) {
    const { path } = pySpy;
    const dump = (pid: number): readonly string[] => [path, 'dump', '--pid', String(pid)];
    asked.push(
      { name: 'py-spy dump', command: dump },
      { name: 'py-spy dump --nonblocking', command: (pid) => [...dump(pid), '--nonblocking'] },
    );
  }
  if (austin.path !== null) {
    const { path } = austin;
    asked.push({ name: 'austin --where', command: (pid) => [path, '-w', String(pid)] });
  }
  return asked;
}
