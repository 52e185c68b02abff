import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where trace keeps what outlives a run: `$XDG_STATE_HOME/tracewright`, by default below
 * `~/.local/state`. Null for a user without a home: no folder that others share takes its place.
 */
export function stateDirectory(
  env: Environment,
  systemHome: () => string | null = homeBySystem,
): string | null {
  const xdg = env['XDG_STATE_HOME'];
  // The XDG specification has relative paths ignored.
  if (xdg !== undefined && xdg.startsWith('/')) return `${xdg}/tracewright`;
  const home = homeOf(env) ?? systemHome();
  return home === null ? null : `${home}/.local/state/tracewright`;
}

/** The same for what cannot do without it. Throws a TraceError that says what to set. */
export function requireStateDirectory(
  env: Environment,
  systemHome: () => string | null = homeBySystem,
): string {
  const folder = stateDirectory(env, systemHome);
  if (folder !== null) return folder;
  const who = `uid ${process.geteuid?.()}`;
  throw new TraceError(
    'ERR_NO_STATE_FOLDER',
    `there is no folder for trace to keep its state in: HOME is not set, and ${who} has no home`,
    { exitCode: EXIT.usage, remedy: 'Set XDG_STATE_HOME to a folder that is yours alone.' },
  );
}

/** HOME, unless it is somebody else's, as `sudo -E` leaves it. */
function homeOf(env: Environment): string | null {
  const home = env['HOME'];
  return home !== undefined && home.startsWith('/') && !isForeign(home) ? home : null;
}

function homeBySystem(): string | null {
  try {
    const { homedir } = userInfo();
    return homedir.startsWith('/') ? homedir : null;
  } catch {
    return null; // A uid that the system has no name for.
  }
}

function isForeign(home: string): boolean {
  try {
    const { uid } = statSync(home);
    return uid !== 0 && uid !== process.geteuid?.();
  } catch {
    return false; // It cannot be used either; what comes of that is said where it is.
  }
}
