import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { interpreters, locatePython, npmPackages, pythonEnvironment } from '../../environments.ts';
import { canRun, install, program } from '../../programs.ts';

/*
 * The tools that trace is compared with, installed into the cache at pinned versions. One that cannot be installed or does not start is
 * no failure of the bench but a line of its result: why not stands in the table.
 */

const PINS = join(import.meta.dirname, 'requirements.txt');
const AUSTIN_3_PINS = join(import.meta.dirname, 'requirements-austin-3.txt');
/** What blocksnoop runs on, newest first; its own requirement is 3.12. */
const BLOCKSNOOP_PYTHONS = ['3.13', '3.12'];
const CLINIC = '13.0.0';
const MEMLAB = '2.0.5';
const ZERO_X = '6.0.0';

/** A tool as installed here. */
export interface Peer {
  readonly version: string;
  /** Null when it does not run here. */
  readonly path: string | null;
  readonly reason: string | null;
}
export type PeerName = 'py-spy' | 'austin' | 'blocksnoop' | 'perf' | 'clinic' | '0x';
export type Peers = Readonly<Record<PeerName, Peer>> & {
  /** The folder with the newest Austin that starts here: blocksnoop looks for one on its PATH. */
  readonly austinFolder: string;
};

/** Installs what is missing; minutes the first time, nothing after that. */
export async function installPeers(): Promise<Peers> {
  const python = interpreters()[0]?.path;
  const fromPip = (name: string, program: string, pins: string, args: readonly string[]) =>
    tried(async () => {
      const { bin } = await pythonEnvironment([name], python, pins);
      return checked(join(bin, program), args);
    });
  const newest = await fromPip('austin-dist', 'austin', PINS, ['-V']);
  const three = await fromPip('austin-dist', 'austin', AUSTIN_3_PINS, ['-V']);
  return {
    'py-spy': await fromPip('py-spy', 'py-spy', PINS, ['--version']),
    // The parser here reads Austin 3's text; 4 writes a binary form.
    austin: withNote(three, newest),
    austinFolder: dirname(newest.path ?? three.path ?? ''),
    blocksnoop: await tried(() => blocksnoop(newest)),
    perf: await tried(perf),
    clinic: await clinicPeer(),
    '0x': await fromNpm('0x', ZERO_X),
  };
}

/** clinic alone. */
export function clinicPeer(): Promise<Peer> {
  return fromNpm('clinic', CLINIC);
}

/** memlab alone; of its browser nothing is fetched. */
export function memlabPeer(): Promise<Peer> {
  process.env['PUPPETEER_SKIP_DOWNLOAD'] = '1';
  return fromNpm('memlab', MEMLAB);
}

function fromNpm(name: string, version: string): Promise<Peer> {
  return tried(async () => {
    const folder = await npmPackages(`${name}-${version}`, [`${name}@${version}`], {
      cost: '160 MB',
    });
    return checked(join(folder, 'node_modules', '.bin', name), ['--version'], version);
  });
}

async function tried(make: () => Promise<Peer>): Promise<Peer> {
  try {
    return await make();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { version: '?', path: null, reason: `not installed: ${reason.split('\n')[0] ?? ''}` };
  }
}

/** Asks a program for its version: what it says, or why it does not start. */
function checked(path: string, args: readonly string[], known?: string): Peer {
  const run = spawnSync(path, args, {
    encoding: 'utf8',
    env: { ...process.env, NO_INSIGHT: '1', NO_UPDATE_NOTIFIER: '1' },
  });
  const said = `${run.stdout}\n${run.stderr}`;
  if (run.status !== 0) {
    const line = said.trim().split('\n')[0] ?? '';
    const why = run.error?.message ?? line.slice(line.indexOf(': ') + 2);
    return {
      version: known ?? '?',
      path: null,
      reason: why.replaceAll(path, 'the program').replaceAll('`', "'"),
    };
  }
  return { version: known ?? /\d+(\.\d+)+/.exec(said)?.[0] ?? '?', path, reason: null };
}

function withNote(used: Peer, newest: Peer): Peer {
  if (used.path === null || newest.path !== null) return used;
  return { ...used, reason: `4.0.0, the newest, does not start here: ${newest.reason ?? ''}` };
}

async function blocksnoop(newestAustin: Peer): Promise<Peer> {
  const version = '0.11.1';
  const python = BLOCKSNOOP_PYTHONS.map((one) => locatePython(one)).find((one) => one !== null);
  const refused = (reason: string): Peer => ({ version, path: null, reason });
  if (python === undefined || python === null)
    return refused('it runs on Python 3.12 and later, none here');
  if (process.getuid?.() !== 0 || !canRun('unshare', '--mount', 'true'))
    return refused('needs root, for eBPF');
  const { bin } = await pythonEnvironment(['blocksnoop'], python.path, PINS);
  const peer = checked(join(bin, 'blocksnoop'), ['--help'], version);
  if (peer.path === null || newestAustin.path !== null) return peer;
  return {
    ...peer,
    reason: `its stacks come from Austin 4, which does not start here (${newestAustin.reason ?? ''}); with Austin 3.7 they are null`,
  };
}

async function perf(): Promise<Peer> {
  if (process.getuid?.() !== 0 || !canRun('unshare', '--mount', 'true'))
    return { version: '?', path: null, reason: 'needs root, for tracepoints' };
  const found = await program('perf');
  return checked(found.isWanted ? found.path() : await install('perf'), ['--version']);
}
