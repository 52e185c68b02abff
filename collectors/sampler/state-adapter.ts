import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { parseSyscall } from '../../src/platform/proc-parse.ts';
import type { SamplerPlan } from './messages.ts';
import type { AdapterResult } from './runtime-adapter.ts';
import { threadName } from './thread-name.ts';
import type { Turn, TurnWatch } from './turn-watch.ts';

/** poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, io_uring_enter, epoll_pwait2 on x86_64: where event loops wait. */
const WAITING: ReadonlySet<number> = new Set([7, 23, 232, 270, 271, 281, 426, 441]);

/**
 * A loop whose turns cannot be told apart: only whether its thread waits. It never shows a turn that lasts, since a saturated healthy
 * loop looks exactly like a blocked one from here (measured: 16 "blocks" in 10 s of a healthy Node server).
 */
export class StateWatch implements TurnWatch {
  readonly kind = 'unknown';
  readonly basis = 'iteration';
  readonly counters = null;
  readonly idleTotal = null;
  readonly age: Seconds = 0;
  idle = true;
  lost = false;
  turnId = 0;
  readonly #syscall: Pick<KeptFile, 'text'>;

  constructor(syscall: Pick<KeptFile, 'text'>) {
    this.#syscall = syscall;
  }

  sample(): void {
    const text = this.#syscall.text();
    const call = text === null ? null : parseSyscall(text);
    this.lost = call === null;
    if (call === null) return;
    this.idle = call.kind === 'syscall' && WAITING.has(call.number);
    if (!this.idle) this.turnId++;
  }

  stay(): void {}

  takeClosed(): Turn | null {
    return null;
  }

  openTurn(): Turn | null {
    return null;
  }

  confirm(): boolean {
    return false;
  }
}

/** How busy the main thread is, where nothing better can be had. */
export function openStateAdapter(plan: SamplerPlan): AdapterResult {
  const { pid } = plan;
  const syscall = KeptFile.open(`/proc/${pid}/task/${pid}/syscall`, 256);
  if (syscall === null) {
    return { ok: false, reason: 'its system calls cannot be read', remedy: null };
  }
  let found = false;
  return {
    ok: true,
    adapter: {
      discover() {
        if (found) return [];
        found = true;
        const thread = { tid: pid, name: threadName(pid, pid), kind: 'unknown' } as const;
        return [{ thread, watch: new StateWatch(syscall), soughtFrom: monotonicNow() }];
      },
      round: () => [],
      stack: null,
      holdUp: null,
      missing: 'it runs no event loop',
      rejected: () => ({}),
      bytesRead: () => 0,
      close: () => syscall.close(),
    },
  };
}
