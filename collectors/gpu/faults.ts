import { GPU_ATTR, GPU_EVENT } from '../../src/core/semconv-gpu.ts';
import { printable } from '../../src/core/text.ts';
import type { Attributes, Event, Seconds } from '../../src/core/types.ts';
import { kernelRecords } from '../../src/platform/kernel-log.ts';

/** Faults that the driver puts into words: on nvidia-smi's output in place of numbers, and in the kernel's log. */

/** What a message means. */
export interface Fault {
  readonly fault: 'lost' | 'no-handle' | 'reset-required' | 'driver' | 'xid';
  /** PCI address as nvidia-smi writes it; null where the message has none. */
  readonly busId: string | null;
  readonly xid: number | null;
  /** The message. Untrusted. */
  readonly text: string;
}

const MESSAGES: readonly { readonly fault: Fault['fault']; readonly pattern: RegExp }[] = [
  { fault: 'lost', pattern: /GPU is lost|has fallen off the bus/i },
  { fault: 'reset-required', pattern: /GPU requires reset/i },
  { fault: 'no-handle', pattern: /Unable to determine the device handle/i },
  {
    fault: 'driver',
    pattern: /couldn.t communicate with the NVIDIA driver|Failed to initialize NVML/i,
  },
];

const ADDRESS = /([0-9A-F]{4,8}):([0-9A-F]{2}):([0-9A-F]{2})(?:\.(\d))?/i;
const TEXT_LIMIT = 300;

/** The fault that a line tells of; null for any other line. */
export function faultIn(line: string): Fault | null {
  const hit = MESSAGES.find(({ pattern }) => pattern.test(line));
  return hit === undefined
    ? null
    : { fault: hit.fault, busId: addressIn(line), xid: null, text: line.slice(0, TEXT_LIMIT) };
}

/** `NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.`; null for any other record of the kernel. */
export function xidIn(text: string): Fault | null {
  const match = /^NVRM: Xid \((PCI:[0-9A-Fa-f:.]+)[^)]*\): (\d{1,4})\b/.exec(text);
  if (match === null) return null;
  return {
    fault: 'xid',
    busId: addressIn(match[1] ?? ''),
    xid: Number(match[2]),
    text: text.slice(0, TEXT_LIMIT),
  };
}

/** With eight digits for the domain and a function, as nvidia-smi has it: the kernel writes `0000:3b:00`. */
function addressIn(text: string): string | null {
  const match = ADDRESS.exec(text);
  if (match === null) return null;
  const [, domain = '', bus = '', device = '', fn = '0'] = match;
  return busKey(`${domain}:${bus}:${device}.${fn}`);
}

/** One spelling of a PCI address, to compare by. */
export function busKey(address: string): string {
  const [domain = '', ...rest] = address.trim().toUpperCase().split(':');
  return [domain.padStart(8, '0'), ...rest].join(':');
}

/** Faults that the kernel has written down since `since` (seconds of uptime), oldest first; empty where its log may not be read. */
export function kernelFaults(since: Seconds): readonly (Fault & { readonly uptime: Seconds })[] {
  const found: (Fault & { readonly uptime: Seconds })[] = [];
  for (const { at, text } of kernelRecords()) {
    if (at < since || found.length >= KERNEL_LIMIT) continue;
    const fault = xidIn(text);
    if (fault !== null) found.push({ ...fault, uptime: at });
  }
  return found;
}

/** A GPU that faults can write thousands; the first say it. */
const KERNEL_LIMIT = 64;

/** `gpu`: what is known of the GPU with that address. */
export function faultEvent(
  { fault, busId, xid, text }: Fault,
  at: Seconds,
  gpu: Attributes,
): Event {
  return {
    kind: 'event',
    at,
    name: GPU_EVENT.fault,
    severity: 'error',
    body: printable(text, TEXT_LIMIT),
    attributes: {
      ...gpu,
      [GPU_ATTR.fault]: fault,
      ...(busId === null ? {} : { [GPU_ATTR.busId]: busId }),
      ...(xid === null ? {} : { [GPU_ATTR.xid]: xid }),
    },
  };
}
