import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import type { Bytes, Seconds } from '../../src/core/types.ts';
import { printable } from '../../src/core/text.ts';
import { environmentVariable } from '../../src/platform/environ.ts';
import { readCommandLine } from '../../src/platform/proc.ts';
import { listeningSockets, type ListeningSocket } from '../../src/platform/sockets.ts';
import { isRecord } from '../../src/core/record.ts';

/**
 * Finding an inspector that a Node process has open already. Only ports that the process itself listens on are asked, and of those only
 * ones with a reason to be an inspector's: a stray request would show in the access log of the application.
 */

/** An inspector to connect to. */
export interface OpenInspector {
  /** `ws://host:port/<uuid>` */
  readonly url: string;
  readonly port: number;
  /** Node's random name for this inspector: another one, opened later on the same port, has another. */
  readonly id: string;
  /** As `/json/version` gives it: `v20.20.2`. */
  readonly version: string;
}

export type InspectorResult =
  | { readonly ok: true; readonly inspector: OpenInspector }
  | { readonly ok: false; readonly reason: string; readonly remedy: string | null };

/** Node's default (`--inspect`, SIGUSR1). */
const DEFAULT_PORT = 9229;
/** The inspector answers on a thread of its own, so a blocked loop does not delay it. */
const REQUEST_TIMEOUT: Seconds = 1;
const RESPONSE_LIMIT: Bytes = 64 * 1024;
/** With `--inspect=0` the port is anybody's guess: at most this many of the process's loopback ports are asked. */
const GUESS_LIMIT = 8;

/** `--inspect=9333`, `--inspect-brk=0.0.0.0:9333`, `--inspect-port 9230` (cluster gives each of its workers one). */
const PORT_OPTION =
  /--(?:inspect(?:-brk|-wait)?|inspect-port|debug-port)[= ](?:[^\s=]*:)?(\d{1,5})(?=\s|$)/g;

/** The same options with the host. */
const ADDRESS_OPTION = /--(?:inspect(?:-brk|-wait)?|inspect-port|debug-port)[= ](\S+)/g;

const RESTART = 'Let trace open it for the run with --inspect, or start it with node --inspect.';

/** How Node is told where its inspector is to listen, and what it is to publish of it. */
export interface InspectorOptions {
  /** Null: not given, so loopback. */
  readonly host: string | null;
  /** Null: anybody's guess, because it was given as 0 or the command line was overwritten. */
  readonly port: number | null;
  /** The words of command line and NODE_OPTIONS that matter to an inspector. */
  readonly words: readonly string[];
}

/** Where a Node process would open its inspector, by its command line and NODE_OPTIONS as they were at its start. */
export function inspectorOptions(pid: number): InspectorOptions {
  const given = [nodeOptions(pid), ...ownOptions(readCommandLine(pid))].join(' ');
  let host: string | null = null;
  let port: number | null = inspectorPorts(pid).has(0) ? null : DEFAULT_PORT;
  for (const [, address = ''] of given.matchAll(ADDRESS_OPTION)) {
    const [, named, number] = /^(?:(.*):)?(\d{1,5})$/.exec(address) ?? [null, address, null];
    if (named !== undefined && named !== '') host = named;
    if (number !== null && number !== undefined)
      port = Number(number) === 0 ? null : Number(number);
  }
  return { host, port, words: given.split(/\s+/).filter((word) => word.startsWith('--')) };
}

/** The arguments before the script are Node's own; the others are the program's. */
function ownOptions(words: readonly string[]): readonly string[] {
  const end = words.findIndex((word, at) => at > 0 && !word.startsWith('-'));
  // A flag's value that is a word of its own looks like the script: then what follows is looked at too, on the safe side.
  const isValue =
    end > 0 && /^--(?:inspect-port|debug-port|require|import|env-file)$/.test(words[end - 1] ?? '');
  return end === -1 || isValue ? words : words.slice(0, end);
}

/** Looks for an open inspector of this process; opens none. Never throws. */
export async function findOpenInspector(pid: number): Promise<InspectorResult> {
  let sockets: readonly ListeningSocket[];
  try {
    if (readlinkSync(`/proc/${pid}/ns/net`) !== readlinkSync('/proc/self/ns/net'))
      return refused(
        'it lives in another network namespace',
        `Run trace inside it: nsenter -t ${pid} -n trace attach ${pid}`,
      );
    sockets = listeningSockets(pid);
  } catch (error) {
    return refused(`its sockets cannot be listed (${messageOf(error)})`, null);
  }
  let last = refused('it has no inspector open', RESTART);
  for (const socket of likely(sockets, inspectorPorts(pid))) {
    const result = await askInspector(socket);
    if (result.ok) return result;
    last = result;
  }
  return last;
}

/** The ports its command line and NODE_OPTIONS give the inspector (0: any), with the default. */
function inspectorPorts(pid: number): ReadonlySet<number> {
  const words = readCommandLine(pid);
  const text = [...words, nodeOptions(pid)].join(' ');
  const ports = new Set([DEFAULT_PORT]);
  // A program that sets its title overwrites its command line, and with it what it said of the inspector: any port may be it.
  const program = programName(pid);
  const isIntact = words.some(
    (word) => basename(word).startsWith('node') || basename(word) === program,
  );
  if (!isIntact) ports.add(0);
  for (const match of text.matchAll(PORT_OPTION)) ports.add(Number(match[1]));
  return ports;
}

function programName(pid: number): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, '');
  } catch {
    return 'node';
  }
}

function nodeOptions(pid: number): string {
  return environmentVariable(pid, 'NODE_OPTIONS') ?? '';
}

function likely(
  sockets: readonly ListeningSocket[],
  ports: ReadonlySet<number>,
): readonly ListeningSocket[] {
  const named = sockets.filter(({ port }) => ports.has(port));
  if (!ports.has(0)) return named;
  const loopback = sockets.filter(
    ({ host, port }) =>
      !ports.has(port) && (host.startsWith('127.') || host === '::1' || host === '0:0:0:0:0:0:0:1'),
  );
  return [...named, ...loopback.slice(0, GUESS_LIMIT)];
}

/** What answers on a socket of the process, as an inspector would. Never throws. */
export async function askInspector({
  host,
  family,
  port,
}: ListeningSocket): Promise<InspectorResult> {
  const address = family === 6 ? `[${host}]:${port}` : `${host}:${port}`;
  try {
    const version = await getJson(host, port, '/json/version');
    const browser = isRecord(version) ? version['Browser'] : undefined;
    const node =
      typeof browser === 'string' ? /^node\.js\/(v[\w.-]{1,40})$/.exec(browser)?.[1] : null;
    if (node === undefined || node === null)
      return refused(
        `what answers on its port ${port} is not Node's inspector (${printable(String(browser), 40)})`,
        null,
      );
    const list = await getJson(host, port, '/json/list');
    const targets: readonly unknown[] = Array.isArray(list) ? list : [];
    for (const target of targets) {
      // Only the id is taken from the answer: host and port are those of the process's own socket.
      const id = isRecord(target) && target['type'] === 'node' ? target['id'] : undefined;
      if (typeof id === 'string' && /^[\w-]{1,64}$/.test(id))
        return { ok: true, inspector: { url: `ws://${address}/${id}`, port, id, version: node } };
    }
    return refused(`its inspector on port ${port} lists no target to connect to`, null);
  } catch (error) {
    return refused(`port ${port} does not answer as an inspector (${messageOf(error)})`, null);
  }
}

/** One GET of a small JSON document; rejects when it is late, large, malformed or not 200. */
async function getJson(host: string, port: number, path: string): Promise<unknown> {
  const { get } = await import('node:http');
  const text = await new Promise<string>((resolve, reject) => {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT * 1e3);
    const request = get({ host, port, path, agent: false, signal }, (response) => {
      if (response.statusCode !== 200) {
        request.destroy(new Error(`status ${response.statusCode}`));
        return;
      }
      const parts: Buffer[] = [];
      let size = 0;
      response.on('data', (part: Buffer) => {
        size += part.length;
        if (size > RESPONSE_LIMIT) request.destroy(new Error('answer too long'));
        else parts.push(part);
      });
      response.on('end', () => {
        // Node's inspector leaves the connection open: who counts its clients would find this one.
        request.destroy();
        resolve(Buffer.concat(parts).toString('utf8'));
      });
      response.on('error', reject);
    });
    request.on('error', reject);
  });
  return JSON.parse(text);
}

function refused(reason: string, remedy: string | null): Extract<InspectorResult, { ok: false }> {
  return { ok: false, reason, remedy };
}

function messageOf(error: unknown): string {
  return printable(error instanceof Error ? error.message : String(error), 120);
}
