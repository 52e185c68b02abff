import { afterEach } from 'vitest';
import type { Wire, WireOptions } from '../../../src/load/contracts.ts';
import type { Timeouts } from '../../../src/load/plan.ts';
import { openWire } from '../../../src/load/wire/wire.ts';
import { ask, type NotedExchange } from './exchange.ts';
import {
  type ScriptedServer,
  type ScriptedServerOptions,
  type SeenRequest,
  startScripted,
  type Step,
} from './scripted-server.ts';

/** Limits that no test reaches. */
export const LONG: Timeouts = { connect: 10, firstByte: null, stall: null, total: 15 };

/** Servers and wires of a file's tests; whatever a test opened is closed after it. */
export interface WireTests {
  readonly serve: (
    script: (request: SeenRequest) => readonly Step[],
    options?: ScriptedServerOptions,
  ) => Promise<ScriptedServer>;
  readonly wireTo: (server: ScriptedServer, options?: Partial<WireOptions>) => Wire;
  /** What a client sees of this answer, sent in these steps. */
  readonly seen: (steps: readonly Step[], options?: Partial<WireOptions>) => Promise<NotedExchange>;
}

/** To be called once in a file. */
export function wireTests(): WireTests {
  const wires: Wire[] = [];
  const servers: ScriptedServer[] = [];
  afterEach(async () => {
    for (const wire of wires.splice(0)) wire.close();
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });
  const serve: WireTests['serve'] = async (script, options) => {
    const server = await startScripted(script, options);
    servers.push(server);
    return server;
  };
  const wireTo: WireTests['wireTo'] = (server, options = {}) => {
    const wire = openWire({
      endpoint: server.endpoint,
      timeouts: LONG,
      streaming: true,
      keepText: true,
      ...options,
    });
    wires.push(wire);
    return wire;
  };
  const seen: WireTests['seen'] = async (steps, options) => {
    const server = await serve(() => steps);
    return ask(wireTo(server, options));
  };
  return { serve, wireTo, seen };
}
