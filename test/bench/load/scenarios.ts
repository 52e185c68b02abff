import type { Seconds } from '../../../src/core/types.ts';
import type { TruthSettings } from '../../load/truth-server/truth-server.ts';

/** What is asked of the load generators. */

export type ScenarioName =
  | '256 streams'
  | '32 streams'
  | '1,024 slow streams'
  | '1,024 fast streams'
  | '16 tokens a packet'
  | '16 tokens a packet, short answers'
  | 'constant arrivals'
  | 'Poisson arrivals';

export interface Scenario {
  readonly name: ScenarioName;
  readonly settings: TruthSettings;
  readonly load:
    | { readonly kind: 'closed'; readonly concurrency: number }
    | { readonly kind: 'open'; readonly rate: number; readonly poisson: boolean };
  readonly tokens: number;
  readonly seconds: Seconds;
  /** Lateness of the server (p99 of writes or of reads) beyond which a run is void; null where nothing absolute is read off it. */
  readonly latenessLimit: Seconds | null;
}

const TOKENS = 64;
const LONG_ANSWER = 512;
const FAST: TruthSettings = { ttft: 20, itl: 5, jitter: 0.3, tokens: TOKENS };
const SECONDS: Seconds = 5;

const closed = (concurrency: number): Scenario['load'] => ({ kind: 'closed', concurrency });

export const SCENARIOS: Readonly<Record<ScenarioName, Scenario>> = {
  '256 streams': {
    name: '256 streams',
    settings: FAST,
    load: closed(256),
    tokens: TOKENS,
    seconds: SECONDS,
    latenessLimit: 1e-3,
  },
  '32 streams': {
    name: '32 streams',
    settings: FAST,
    load: closed(32),
    tokens: TOKENS,
    seconds: SECONDS,
    latenessLimit: 0.5e-3,
  },
  '1,024 slow streams': {
    name: '1,024 slow streams',
    settings: { ...FAST, ttft: 200, itl: 25 },
    load: closed(1024),
    tokens: TOKENS,
    // An answer takes 1.8 s.
    seconds: 8,
    latenessLimit: 0.5e-3,
  },
  '1,024 fast streams': {
    name: '1,024 fast streams',
    settings: FAST,
    load: closed(1024),
    tokens: TOKENS,
    seconds: SECONDS,
    latenessLimit: null,
  },
  '16 tokens a packet': {
    name: '16 tokens a packet',
    settings: { ttft: 0, itl: 0, tokens: LONG_ANSWER, tokensPerPacket: 16 },
    load: closed(32),
    tokens: LONG_ANSWER,
    seconds: SECONDS,
    latenessLimit: null,
  },
  // Four packets an answer: it is requests that are counted here more than tokens.
  '16 tokens a packet, short answers': {
    name: '16 tokens a packet, short answers',
    settings: { ttft: 0, itl: 0, tokens: TOKENS, tokensPerPacket: 16 },
    load: closed(32),
    tokens: TOKENS,
    seconds: SECONDS,
    latenessLimit: null,
  },
  'constant arrivals': {
    name: 'constant arrivals',
    settings: FAST,
    load: { kind: 'open', rate: 100, poisson: false },
    tokens: TOKENS,
    seconds: 10,
    latenessLimit: 0.5e-3,
  },
  'Poisson arrivals': {
    name: 'Poisson arrivals',
    settings: FAST,
    load: { kind: 'open', rate: 100, poisson: true },
    tokens: TOKENS,
    seconds: 10,
    latenessLimit: 0.5e-3,
  },
};
