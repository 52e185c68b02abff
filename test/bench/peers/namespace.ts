import { spawn } from 'node:child_process';
import { canRun } from '../../programs.ts';

/*
 * perf and blocksnoop read tracepoints below /sys/kernel. Where nobody has mounted tracefs perf mounts it itself and leaves it so. Here it
 * is mounted in a mount namespace of the bench's own, which targets and tools share (blocksnoop's Austin does not start across two):
 * the machine stays as it was.
 */

const MOUNT =
  'mount -t debugfs debugfs /sys/kernel/debug && { mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; } && echo ready && exec cat';

/** Stands before a command that is to run in the namespace; empty without root. Ends with this process. */
export async function enterNamespace(): Promise<readonly string[]> {
  if (process.getuid?.() !== 0 || !canRun('unshare', '--mount', 'true')) return [];
  const holder = spawn('unshare', ['--mount', 'sh', '-c', MOUNT], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    holder.stdout.once('data', () => resolve());
    holder.once('error', reject);
    holder.once('close', () => reject(new Error('no tracefs can be mounted in a namespace')));
  });
  // Its standard input ends with us, and with it the namespace.
  holder.unref();
  return ['nsenter', '--mount', '--target', String(holder.pid), '--'];
}
