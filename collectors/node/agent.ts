import type * as Fs from 'node:fs';
import type * as Inspector from 'node:inspector';
import type * as Hooks from 'node:perf_hooks';
import type * as Timers from 'node:timers';
import type * as V8 from 'node:v8';

/**
 * What trace runs inside a Node process, through its inspector: the whole of it. The text of `installAgent` is what is evaluated, so it may
 * use nothing from outside itself. It leaves nothing on any global object, throws nothing, and removes itself: trace has to renew its
 * lease. Runs on Node 20 and later, also where `process`, `require` or the built-ins were replaced or frozen.
 */

export interface AgentSettings {
  /** The inspector to close when the lease has run out; null leaves it, because somebody else opened it. */
  readonly inspector: { readonly port: number; readonly id: string } | null;
  /** The lease is looked at this often, and is over after so many looks without a renewal. */
  readonly tickMs: number;
  readonly leaseTicks: number;
}

/** What the agent says of the process when it is asked. Numbers are V8's own: bytes and milliseconds. */
export interface AgentReading {
  readonly spaces: readonly {
    readonly name: string;
    readonly size: number;
    readonly used: number;
    readonly available: number;
    readonly physical: number;
  }[];
  readonly limit: number;
  readonly external: number;
  readonly malloced: number;
  readonly contexts: number;
  readonly detachedContexts: number;
  /** `performance.now()` of the process at the reading. */
  readonly now: number;
  /** Kind (V8's bits), begin and duration by `performance.now()` of each pause since the last reading. */
  readonly pauses: readonly (readonly [kind: number, from: number, duration: number])[];
  /** Pauses not kept because nobody asked for a long time. */
  readonly lost: number;
}

/**
 * One profile after the other, the next begun before the one before is ended: V8 walks the heap when the first begins and never again (0.2 ms
 * against 220 to 360 ms for a restart at 240 MiB). The ended one comes as the event `Profiler.consoleProfileFinished`.
 */
export interface ProfileTurn {
  /** Title of the profile that ended; null at the first. */
  readonly ended: string | null;
  /** How long it held the loop, in milliseconds. */
  readonly heldMs: number;
}

/** Methods are called by name through the inspector; each gives plain data. */
export interface Agent {
  /** `closable`: an inspector that trace opened can be closed from inside. */
  describe(): { readonly closable: boolean; readonly heap: boolean; readonly pauses: boolean };
  renew(): boolean;
  /** {@link ProfileTurn}; null where profiles cannot be had this way. */
  rotateProfile(): ProfileTurn | null;
  /** Ends the present profile without another. */
  endProfile(): ProfileTurn | null;
  read(): AgentReading | null;
  /** Ends everything but the inspector. */
  remove(): boolean;
  /** Ends everything; the inspector closes a moment later, for its client must be gone by then. */
  leave(): boolean;
}

/**
 * Installs the agent and gives its handle, null where Node's modules cannot be had. A lease that runs out removes everything, but the
 * inspector only when no client is connected: closing it waits for clients, and one that is stopped (Ctrl-Z) would hold the loop.
 */
export function installAgent(settings: AgentSettings, consoleRequire: unknown): Agent | null {
  /** Pauses kept between two readings: a minute of the busiest collector seen. */
  const KEPT = 2000;
  /** What is read of a socket table, 28,000 rows; with more nobody can tell, and the port stays until `trace cleanup`. */
  const TABLE_LIMIT = 4 * 1024 * 1024;
  /** Ticks between two looks at the sockets once the lease is over: a look costs up to 8 µs a socket. */
  const LOOK_EVERY_TICKS = 8;
  /** Our client hangs up as soon as it is answered: well within this. */
  const CLOSE_AFTER_MS = 100;

  const load = <T>(name: string): T | null => {
    try {
      const found: unknown = process.getBuiltinModule(name);
      if (found) return found as T;
    } catch {
      // Older than 20.16, or `process` is something else.
    }
    try {
      return (consoleRequire as (id: string) => T)(`node:${name}`);
    } catch {
      return null;
    }
  };

  const debugEnd = (): (() => void) | null => {
    try {
      const end = (process as { _debugEnd?: unknown })._debugEnd;
      return typeof end === 'function' ? (end as () => void) : null;
    } catch {
      return null;
    }
  };

  try {
    const inspector = load<typeof Inspector>('inspector');
    const timers = load<typeof Timers>('timers');
    const fs = load<typeof Fs>('fs');
    const v8 = load<typeof V8>('v8');
    const hooks = load<typeof Hooks>('perf_hooks');
    if (timers === null) return null;

    let pauses: [number, number, number][] = [];
    let lost = 0;
    let observer: Hooks.PerformanceObserver | null = null;
    let ticker: NodeJS.Timeout | null = null;
    let missed = 0;
    let profiles = 0;

    /** Where the module cannot be had, Node's own way of closing, which asks no name: then the caller has made sure. */
    const blindClose = debugEnd();
    const canClose = inspector !== null || blindClose !== null;

    const isOurs = (): boolean => {
      const id = settings.inspector?.id;
      if (inspector === null) return id !== undefined && canClose;
      const url = inspector.url();
      return typeof id === 'string' && typeof url === 'string' && url.endsWith(`/${id}`);
    };

    /** Whether anybody is connected to the inspector's port; true where that cannot be told. */
    const hasClient = (): boolean => {
      if (fs === null || settings.inspector === null || inspector === null) return true;
      const port = settings.inspector.port.toString(16).toUpperCase().padStart(4, '0');
      const established = new RegExp(`^ *\\d+: [0-9A-F]+:${port} [0-9A-F]+:[0-9A-F]{4} 01 `, 'm');
      for (const file of ['/proc/self/net/tcp', '/proc/self/net/tcp6']) {
        let table: string;
        try {
          table = fs.readFileSync(file, 'latin1');
        } catch {
          if (file.endsWith('6')) continue;
          return true;
        }
        if (table.length > TABLE_LIMIT || established.test(table)) return true;
      }
      return false;
    };

    const turnProfile = (goOn: boolean): ProfileTurn | null => {
      try {
        if (ticker === null || inspector === null || hooks === null) return null;
        const began = hooks.performance.now();
        const ended = profiles === 0 ? null : `tracewright ${profiles}`;
        if (goOn) inspector.console.profile(`tracewright ${++profiles}`);
        if (ended !== null) inspector.console.profileEnd(ended);
        return { ended, heldMs: hooks.performance.now() - began };
      } catch {
        return null;
      }
    };

    const removeOwn = (): void => {
      try {
        if (ticker !== null) timers.clearInterval(ticker);
      } catch {
        // Replaced since; the ticker finds nothing to do any more.
      }
      ticker = null;
      try {
        observer?.disconnect();
      } catch {
        // It was ended by somebody else.
      }
      observer = null;
      pauses = [];
    };

    const close = (): void => {
      try {
        if (!isOurs()) return;
        if (inspector === null) blindClose?.();
        else inspector.close();
      } catch {
        // Closed already.
      }
    };

    /** Closing waits for clients: without one it takes a millisecond. */
    const tick = (): void => {
      try {
        if (ticker === null || ++missed < settings.leaseTicks) return;
        if ((missed - settings.leaseTicks) % LOOK_EVERY_TICKS !== 0) return;
        if (settings.inspector !== null && isOurs() && hasClient()) return;
        removeOwn();
        close();
      } catch {
        // Tried again at the next tick, unless it was removed.
      }
    };

    try {
      if (hooks !== null) {
        observer = new hooks.PerformanceObserver((list) => {
          try {
            const entries = list.getEntries();
            for (let i = 0; i < entries.length; i++) {
              const entry = entries[i];
              if (entry === undefined) continue;
              const { detail } = entry as { readonly detail?: { readonly kind?: number } };
              if (pauses.length >= KEPT) lost++;
              else pauses.push([detail?.kind ?? 0, entry.startTime, entry.duration]);
            }
          } catch {
            lost++;
          }
        });
        observer.observe({ entryTypes: ['gc'] });
      }
    } catch {
      observer = null;
    }
    ticker = timers.setInterval(tick, settings.tickMs);
    ticker.unref();

    return {
      describe: () => ({
        closable: settings.inspector === null || isOurs(),
        heap: v8 !== null,
        pauses: observer !== null,
      }),
      renew: () => {
        missed = 0;
        return ticker !== null;
      },
      rotateProfile: () => turnProfile(true),
      endProfile: () => turnProfile(false),
      read: () => {
        try {
          if (v8 === null || ticker === null) return null;
          missed = 0;
          const whole = v8.getHeapStatistics();
          const spaces: AgentReading['spaces'][number][] = [];
          const list = v8.getHeapSpaceStatistics();
          for (let i = 0; i < list.length; i++) {
            const space = list[i];
            if (space === undefined) continue;
            spaces.push({
              name: space.space_name,
              size: space.space_size,
              used: space.space_used_size,
              available: space.space_available_size,
              physical: space.physical_space_size,
            });
          }
          const reading = {
            spaces,
            limit: whole.heap_size_limit,
            external: whole.external_memory,
            malloced: whole.malloced_memory,
            contexts: whole.number_of_native_contexts,
            detachedContexts: whole.number_of_detached_contexts,
            now: hooks === null ? 0 : hooks.performance.now(),
            pauses,
            lost,
          };
          pauses = [];
          lost = 0;
          return reading;
        } catch {
          return null;
        }
      },
      remove: () => {
        removeOwn();
        return true;
      },
      leave: () => {
        removeOwn();
        try {
          if (settings.inspector === null || !isOurs()) return false;
          timers.setTimeout(close, CLOSE_AFTER_MS).unref();
          return true;
        } catch {
          return false;
        }
      },
    };
  } catch {
    return null;
  }
}

/** The expression that installs it, `require` being the inspector console's own. */
export function agentExpression(settings: AgentSettings): string {
  return `(${installAgent.toString()})(${JSON.stringify(settings)}, typeof require === 'function' ? require : null)`;
}

/**
 * The expression that closes an inspector which the agent never came to guard, by the three ways there are; true when one was found. It
 * closes a moment after it was evaluated, for the same reason as the agent does.
 */
export function closeExpression(id: string): string {
  return `(${closeSoon.toString()})(${JSON.stringify(id)}, typeof require === 'function' ? require : null)`;
}

function closeSoon(id: string, consoleRequire: unknown): boolean {
  const CLOSE_AFTER_MS = 100;
  const load = <T>(name: string): T | null => {
    try {
      const found: unknown = process.getBuiltinModule(name);
      if (found) return found as T;
    } catch {
      // Older than 20.16, or `process` is something else.
    }
    try {
      return (consoleRequire as (id: string) => T)(`node:${name}`);
    } catch {
      return null;
    }
  };
  try {
    const inspector = load<typeof Inspector>('inspector');
    const timers = load<typeof Timers>('timers');
    const end = inspector === null ? (process as { _debugEnd?: unknown })._debugEnd : null;
    if (inspector === null && typeof end !== 'function') return false;
    const close = (): void => {
      try {
        if (inspector === null) (end as () => void)();
        else if (inspector.url()?.endsWith(`/${id}`) === true) inspector.close();
      } catch {
        // Closed already.
      }
    };
    if (inspector !== null && inspector.url()?.endsWith(`/${id}`) !== true) return false;
    // Without timers at once: our client answers, and the order itself is not.
    if (timers === null) close();
    else timers.setTimeout(close, CLOSE_AFTER_MS).unref();
    return true;
  } catch {
    return false;
  }
}
