import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import {
  installPackages,
  interpreters,
  keptFolder,
  locatePython,
  pythonEnvironment,
} from '../../environments.ts';
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
  const { bin } = await pythonEnvironment(['py-spy', 'austin-dist'], python, PINS);
  const three = await pythonEnvironment(['austin-dist'], python, AUSTIN_3_PINS);
  const newest = checked(join(bin, 'austin'), ['-V']);
  const clinic = await keptFolder(`clinic-${CLINIC}`, (folder) =>
    installPackages(folder, [`clinic@${CLINIC}`]),
  );
  const zeroX = await keptFolder(`0x-${ZERO_X}`, (folder) =>
    installPackages(folder, [`0x@${ZERO_X}`]),
  );
  const npmBin = (folder: string, name: string): string =>
    join(folder, 'node_modules', '.bin', name);
  return {
    'py-spy': checked(join(bin, 'py-spy'), ['--version']),
    // The parser here reads Austin 3's text; 4 writes a binary form.
    austin: withNote(checked(join(three.bin, 'austin'), ['-V']), newest),
    austinFolder: newest.path === null ? three.bin : bin,
    blocksnoop: await blocksnoop(newest),
    perf: await perf(),
    clinic: checked(npmBin(clinic, 'clinic'), ['--version'], CLINIC),
    '0x': checked(npmBin(zeroX, '0x'), ['--version'], ZERO_X),
  };
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
  try {
    const found = await program('perf');
    return checked(found.isWanted ? found.path() : await install('perf'), ['--version']);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { version: '?', path: null, reason };
  }
}
