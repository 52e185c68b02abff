import type { Environment, StopSignal } from '../../src/commands/command-line/command.ts';

/** An environment whose outputs are strings and whose signals are sent by the test. */
export interface FakeEnvironment extends Environment {
  readonly out: () => string;
  readonly err: () => string;
  send(signal: StopSignal): void;
}

export function fakeEnvironment(
  options: {
    cwd?: string;
    env?: Readonly<Record<string, string>>;
    /** What is piped in. */
    stdin?: string;
    /** What a person types, who sits at a terminal then. */
    typed?: readonly string[];
  } = {},
): FakeEnvironment {
  const written = { out: '', err: '' };
  const listeners = new Set<(signal: StopSignal) => void>();
  const output = (to: 'out' | 'err') => ({
    isTTY: options.typed !== undefined,
    columns: undefined,
    write: (text: string) => {
      written[to] += text;
    },
  });
  const typed = [...(options.typed ?? [])];
  return {
    stdin: {
      isTTY: options.typed !== undefined,
      text: (limit) => Promise.resolve((options.stdin ?? '').slice(0, limit)),
      lines: () => ({ next: () => Promise.resolve(typed.shift() ?? null), close: () => {} }),
    },
    stdout: output('out'),
    stderr: output('err'),
    env: options.env ?? {},
    cwd: options.cwd ?? '/',
    onStop(stop) {
      listeners.add(stop);
      return () => listeners.delete(stop);
    },
    out: () => written.out,
    err: () => written.err,
    send(signal) {
      // As in the process: each hears one signal, and who begins to listen meanwhile hears the next.
      const heard = [...listeners];
      listeners.clear();
      for (const listener of heard) listener(signal);
    },
  };
}
