import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { relative, resolve } from 'node:path';
import { programFor } from '../../src/platform/find-program.ts';
import { reproFile } from '../../src/platform/standalone.ts';
import type { Point } from './course.ts';
import type { Program } from './program.ts';

/** Two accesses to one thing with an `await` between: what a wait there lets others come in between. */
export interface Between {
  /** Relative to where the program runs. */
  readonly path: string;
  readonly line: number;
  /** `balance` of `self.balance`. */
  readonly name: string;
  readonly before: { readonly kind: 'read' | 'write'; readonly line: number };
  readonly after: { readonly kind: 'read' | 'write'; readonly line: number };
}

/** A source is parsed in a fraction of it. */
const LIMIT_MS = 30_000;
const LARGEST = 2 ** 20;

/** For each point what lies around it in the program's own source; null where nothing is recognised. The program's own interpreter parses Python. */
export async function accessesAround(
  program: Program,
  points: readonly Point[],
): Promise<readonly (Between | null)[]> {
  const asked = points.map(({ frames }) => frames.map(placeOf));
  const [command, args] =
    program.language === 'python'
      ? [program.interpreter, ['-c', reproFile('schedules/python/places.py')]]
      : [process.execPath, [placesOfNode()]];
  const answer = await ask(command, args, { cwd: program.cwd, text: JSON.stringify(asked) });
  return points.map((_, at) => readBetween(answer?.[at], program.cwd));
}

function placesOfNode(): string {
  return createRequire(import.meta.url).resolve('#repro/schedules/node/places.mjs');
}

function placeOf(frame: string): readonly [string, number] {
  const at = frame.lastIndexOf(':');
  return [frame.slice(0, at), Number(frame.slice(at + 1))];
}

function ask(
  command: string,
  args: readonly string[],
  { cwd, text }: { readonly cwd: string; readonly text: string },
): Promise<readonly unknown[] | null> {
  return new Promise((done) => {
    const program = programFor(command, process.env);
    if (program === null) {
      done(null);
      return;
    }
    const options = { cwd, timeout: LIMIT_MS, maxBuffer: LARGEST };
    const child = execFile(program, args, options, (error, output) => {
      // Without it the place is still told, only not what lies around it.
      if (error !== null) return done(null);
      const value: unknown = JSON.parse(output);
      return done(Array.isArray(value) ? value : null);
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(text);
  });
}

function readBetween(value: unknown, cwd: string): Between | null {
  if (!Array.isArray(value)) return null;
  const [path, line, name, first, from, second, to]: unknown[] = value;
  if (typeof path !== 'string' || typeof name !== 'string') return null;
  const access = (kind: unknown, at: unknown) => ({
    kind: kind === 'write' ? ('write' as const) : ('read' as const),
    line: Number(at),
  });
  return {
    path: relative(cwd, resolve(cwd, path)),
    line: Number(line),
    name: name.split('.').at(-1) ?? name,
    before: access(first, from),
    after: access(second, to),
  };
}
