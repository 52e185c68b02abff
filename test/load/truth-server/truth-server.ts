import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Seconds } from '../../../src/core/types.ts';
import { keptFolder } from '../../environments.ts';
import { startGroup } from '../../process-group.ts';
import { FULL } from '../../programs.ts';
import { runHeard } from '../../set-up-progress.ts';
import { decodeLog, type TruthLog } from './truth-log.ts';

/** The endpoint that knows the truth (main.go): built on first use, kept in the cache under the hash of its source. */

const HERE = import.meta.dirname;
/** A cold build of the standard library on a busy machine; it takes a second from a warm cache. */
const BUILD_LIMIT_MS = 300_000;
const READY_LIMIT_MS = 20_000;
/** A server is killed then, whatever became of the test that started it. */
const LIFETIME: Seconds = 600;

/** False where its tests are left out: there is no Go, and this is no full run. In a full run without Go they fail. */
export const isWanted: boolean = FULL || spawnSync('go', ['version']).status === 0;

/** As settings.go has them; what is left out is by default. Times in milliseconds but `retryAfter`, which is in seconds. */
export interface TruthSettings {
  readonly ttft?: number;
  readonly itl?: number;
  readonly jitter?: number;
  readonly seed?: number;
  readonly tokens?: number;
  readonly tokensPerPacket?: number;
  readonly role?: number;
  readonly slots?: number;
  readonly internalErrorEvery?: number;
  readonly rateLimitEvery?: number;
  readonly retryAfter?: number;
  readonly cutEvery?: number;
  readonly errorEventEvery?: number;
  readonly stallEvery?: number;
  readonly stall?: number;
}

export interface TruthServer {
  readonly pid: number;
  readonly url: string;
  /** Answers like this from now on, and starts a new log. */
  configure(settings: TruthSettings): Promise<void>;
  log(): Promise<TruthLog>;
  stop(): Promise<void>;
}

/** The binary. Without Go that is an error. */
export async function truthServerProgram(): Promise<string> {
  const sources = readdirSync(HERE).filter((name) => /\.go$|^go\.mod$/.test(name));
  const hash = createHash('sha256');
  for (const name of sources.toSorted()) hash.update(readFileSync(join(HERE, name)));
  const name = `truth-server-${hash.digest('hex').slice(0, 12)}-${process.arch}`;
  const setUp = {
    what: 'the truth server, built by Go',
    cost: '6 MB; half a minute where Go has built nothing yet',
  };
  const folder = await keptFolder(name, setUp, (making, listen) => {
    const flags = ['-v', '-trimpath', '-buildvcs=false', '-o', join(making, 'truth-server')];
    return runHeard('go', ['build', ...flags, '.'], {
      cwd: HERE,
      timeout: BUILD_LIMIT_MS,
      listen,
      env: { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off' },
    });
  });
  return join(folder, 'truth-server');
}

/** Starts one on a free port. `behind` is what it is started by: `taskset`, `chrt` and their flags. */
export async function startTruthServer(behind: readonly string[] = []): Promise<TruthServer> {
  const program = await truthServerProgram();
  const { child, stop } = startGroup([...behind, program], { lifetime: LIFETIME });
  const said: string[] = [];
  createInterface(child.stderr).on('line', (line) => said.push(line));
  try {
    const { pid, port } = await new Promise<{ pid: number; port: number }>((resolve, reject) => {
      const fail = (why: string): void =>
        reject(new Error(`truth-server: ${why}\n${said.join('\n')}`));
      const timer = setTimeout(() => fail('not ready in time'), READY_LIMIT_MS);
      child.on('error', (error) => fail(error.message));
      child.on('close', (code) => fail(`ended with ${String(code)}`));
      createInterface(child.stdout).once('line', (line) => {
        clearTimeout(timer);
        const [, ofServer, ofPort] = /^READY (\d+) (\d+)$/.exec(line) ?? [];
        resolve({ pid: Number(ofServer), port: Number(ofPort) });
      });
    });
    const url = `http://127.0.0.1:${port}`;
    return {
      pid,
      url,
      async configure(settings) {
        const body = JSON.stringify(settings);
        const answer = await fetch(`${url}/truth/settings`, { method: 'POST', body });
        if (!answer.ok) throw new Error(`truth-server refuses ${body}`);
      },
      async log() {
        const answer = await fetch(`${url}/truth/log`);
        return decodeLog(new Uint8Array(await answer.arrayBuffer()));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
