import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '../../src/core/random.ts';
import type { Bytes, Seconds } from '../../src/core/types.ts';
import { type CliOptions, runCli } from '../e2e/cli.ts';

/*
 * A folder in which trace is run on damaged input, time after time: each case is drawn by a seed,
 * and nothing outside the case's own folder may change.
 */

/** A run of trace on input that is damaged already. */
export interface Attempt extends CliOptions {
  readonly args: readonly string[];
}

/** One way in for hostile input. */
export interface Entrance {
  readonly name: string;
  /** Makes what is good in `folder`, once. */
  prepare(folder: string): Promise<void>;
  /**
   * Damages the copy of it in `folder`, and says what is run there. `outside` is a file that trace
   * has no business with.
   */
  damage(folder: string, outside: string, random: () => number): Promise<Attempt>;
  /** What follows the run: what was started for it ends. */
  after?(): Promise<void>;
  /** Ends what `prepare` started. */
  close?(): Promise<void>;
}

/** What went wrong in a case. */
export interface Breach {
  readonly entrance: string;
  readonly seed: number;
  readonly args: readonly string[];
  readonly what: string;
}

/** Over this a run hangs. */
const HANG: Seconds = 10;
const MEMORY_LIMIT: Bytes = 300 * 1024 * 1024;
const PEAK = join(import.meta.dirname, 'peak.mjs');
/** What a command before trace ends with when it could not put the damaged file in its place. */
export const NOT_RUN = 99;
/** A bug in trace. */
const INTERNAL = 70;
const SHOWN = 400;

/** Runs cases of one entrance in a folder of its own. */
export class Arena {
  readonly #entrance: Entrance;
  readonly #root: string = mkdtempSync(join(tmpdir(), 'tracewright-attack-'));
  readonly #good: string = join(this.#root, 'good');
  readonly #outside: string = join(this.#root, 'outside');
  readonly #peak: string = join(this.#root, 'peak');

  constructor(entrance: Entrance) {
    this.#entrance = entrance;
    mkdirSync(this.#good);
    mkdirSync(this.#outside);
    writeFileSync(join(this.#outside, 'file'), 'not for trace\n', { mode: 0o600 });
  }

  prepare(): Promise<void> {
    return this.#entrance.prepare(this.#good);
  }

  /** One case; null when trace took it. */
  async attempt(seed: number): Promise<Breach | null> {
    const random = seededRandom(seed);
    const folder = join(this.#root, 'case');
    cpSync(this.#good, folder, { recursive: true });
    rmSync(this.#peak, { force: true });
    const outside = stateOf(this.#outside);
    try {
      const file = join(this.#outside, 'file');
      const { args, ...options } = await this.#entrance.damage(folder, file, random);
      const env = {
        HOME: join(folder, 'home'),
        XDG_STATE_HOME: join(folder, 'state'),
        XDG_CONFIG_HOME: join(folder, 'config'),
        NODE_OPTIONS: `--import=${PEAK}`,
        ATTACK_PEAK_FILE: this.#peak,
        ...options.env,
      };
      const { code, signal, stderr } = await runCli(args, {
        limitS: HANG,
        cwd: folder,
        ...options,
        env,
      });
      if (code === NOT_RUN) throw new Error(`trace was not run: ${stderr}`);
      const what = [
        ...(signal === null ? [] : [`ended by ${signal} (SIGKILL: after ${HANG} s)`]),
        ...(code === INTERNAL ? [`a bug in trace: ${stderr.slice(0, SHOWN)}`] : []),
        ...this.#memory(),
        ...(stateOf(this.#outside) === outside ? [] : ['changed a file outside']),
      ].join(', ');
      return what === '' ? null : { entrance: this.#entrance.name, seed, args, what };
    } finally {
      await this.#entrance.after?.();
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    await this.#entrance.close?.();
    rmSync(this.#root, { recursive: true, force: true });
  }

  /** One that was killed wrote nothing. */
  #memory(): readonly string[] {
    if (!existsSync(this.#peak)) return [];
    const peaks = readFileSync(this.#peak, 'utf8').split('\n').filter(Boolean).map(Number);
    const peak = Math.max(...peaks) * 1024;
    return peak > MEMORY_LIMIT ? [`used ${Math.round(peak / 1024 / 1024)} MiB`] : [];
  }
}

/** Content, kind, rights, owner and time of change of everything below a folder. */
function stateOf(folder: string): string {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted();
  return names
    .map((name) => {
      const path = join(folder, name);
      const { mode, uid, gid, nlink, size, mtimeMs } = statSync(path);
      return [name, mode, uid, gid, nlink, size, mtimeMs, readFileSync(path, 'utf8')].join(' ');
    })
    .join('\n');
}
