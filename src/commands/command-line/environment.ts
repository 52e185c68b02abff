import { createInterface } from 'node:readline';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { endByHangUp } from '../../platform/own-signals.ts';
import type { Environment, LineInput, StopSignal, TextInput, TextOutput } from './command.ts';

/** The environment of this very process. */
export function processEnvironment(): Environment {
  return {
    stdin: textInput(),
    stdout: textOutput(process.stdout),
    stderr: textOutput(process.stderr),
    env: process.env,
    get cwd() {
      return workingFolder();
    },
    onStop: onStopSignal,
  };
}

/** Asked for when it is needed: what needs none works in one that is gone. */
function workingFolder(): string {
  try {
    return process.cwd();
  } catch (cause) {
    const why = errorCode(cause) === 'ENOENT' ? 'is not there any more' : 'cannot be used';
    throw new TraceError('ERR_WORKING_FOLDER', `the working folder ${why}`, {
      exitCode: EXIT.notFound,
      remedy: 'Change to one that is there.',
      cause,
    });
  }
}

/** Looks at stdin when it is asked for, and not before: opening it holds the process. */
function textInput(): TextInput {
  return {
    get isTTY() {
      return process.stdin.isTTY === true;
    },
    async text(limit) {
      let text = '';
      process.stdin.setEncoding('utf8');
      try {
        for await (const part of process.stdin) {
          text += String(part);
          if (text.length >= limit) break;
        }
      } catch (error) {
        if (!isTerminalGone(error)) throw error;
      }
      return text.slice(0, limit);
    },
    lines: linesOfStdin,
  };
}

function linesOfStdin(): LineInput {
  const reader = createInterface({ input: process.stdin });
  const lines = reader[Symbol.asyncIterator]();
  return {
    async next() {
      try {
        const { value, done } = await lines.next();
        return done === true ? null : value;
      } catch (error) {
        if (isTerminalGone(error)) return null;
        throw error;
      }
    },
    close: () => reader.close(),
  };
}

/** A terminal that was closed: there is nothing more to read from it. */
function isTerminalGone(error: unknown): boolean {
  return errorCode(error) === 'EIO';
}

function textOutput(stream: NodeJS.WriteStream): TextOutput {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader went away (`trace … | head`): what is left has nobody to read it, which is no failure of ours.
    if (error.code === 'EPIPE' || stream !== process.stdout) return;
    // A full disk: a script must not take half a result for a whole one.
    process.stderr.write(`trace: the result could not be written: ${error.message}\n`);
    process.on('exit', () => (process.exitCode = EXIT.invalid));
  });
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.isTTY === true ? stream.columns : undefined;
    },
    write(text) {
      if (stream.writable) stream.write(text);
    },
  };
}

function onStopSignal(stop: (signal: StopSignal) => void): () => void {
  let letGo = (): void => {};
  const release = onEachStop((signal) => {
    if (signal === 'SIGHUP') endByHangUp();
    // Who listens to the next one is there before we let go: in between, a signal would have its
    // default action and end trace.
    stop(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM');
    letGo = takeSecond();
    release();
  });
  return () => {
    release();
    letGo();
  };
}

/** One for all who listen: after the second signal nothing keeps a person from ending trace. */
let isSecondTaken = false;

/**
 * Has the second signal end nothing by itself: what the first one ended is still to be reported.
 */
function takeSecond(): () => void {
  if (isSecondTaken) return () => {};
  isSecondTaken = true;
  const release = onEachStop(() => release());
  return () => {
    release();
    isSecondTaken = false;
  };
}

function onEachStop(heard: (signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP') => void): () => void {
  const handlers = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => {
    const handler = (): void => heard(signal);
    process.on(signal, handler);
    return { signal, handler };
  });
  return () => {
    for (const { signal, handler } of handlers) process.removeListener(signal, handler);
  };
}
