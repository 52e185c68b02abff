import type { LoadApi, Slo } from '../core/load-types.ts';
import type { Ratio, Seconds } from '../core/types.ts';

/** What a run is to do, decided: plain data, cloned into every worker. */

/** Where requests go. The name was resolved once, before the run: a load test is not a test of DNS. */
export interface EndpointPlan {
  /** As it is shown: no credentials in it. */
  readonly url: string;
  readonly address:
    | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
    | { readonly kind: 'unix'; readonly path: string };
  /** Null: plain. */
  readonly tls: {
    readonly servername: string;
    readonly verify: boolean;
    readonly ca: string | null;
  } | null;
  /** Value of the Host header. */
  readonly authority: string;
  /** Path and query. */
  readonly path: string;
  readonly api: LoadApi;
  /** Further request headers, `Authorization` among them; never stored or shown. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** When requests are sent. */
export type Arrival =
  | {
      /** Each of `concurrency` slots sends its next request when its last is over. */
      readonly kind: 'closed';
      readonly concurrency: number;
      /** The slots begin one after the other over this long. */
      readonly rampUp: Seconds;
    }
  | {
      /** Requests (of several turns: conversations) a second, whatever the server does. `rateTo` differs from `rate` in a ramp (linear in time). */
      readonly kind: 'open';
      readonly rate: number;
      readonly rateTo: number;
      /** Shape of the gamma distribution of gaps: 1 is Poisson, below is burstier; `null` is constant gaps. */
      readonly burstiness: number | null;
    }
  | {
      /** At the times that the data name, times `1 / speed`. */
      readonly kind: 'replay';
      readonly speed: number;
    };

/** One level of a sweep, one step of a ramp, or the whole run. */
export interface StagePlan {
  readonly label: string;
  readonly arrival: Arrival;
  /** Of an open loop or a replay: more than these are never under way. */
  readonly maxConcurrency: number | null;
  /** Whichever comes first ends it; both null only in a replay. */
  readonly duration: Seconds | null;
  readonly requests: number | null;
  /**
   * It begins at the moment at which the stage before stops sending, whose requests are still under way: steps of a ramp, where a pause
   * would be a disturbance. Otherwise it begins when that one has drained.
   */
  readonly continuous?: boolean;
}

/** One sort of prompt in a mix. */
export interface PromptClass {
  readonly name: string;
  readonly weight: number;
  readonly prompts:
    | {
        /** Words made up from the seed; lengths are normal around the means, in tokens (about: the server's usage tells). */
        readonly kind: 'synthetic';
        readonly inputTokens: number;
        readonly inputDeviation: number;
        readonly outputTokens: number | null;
        readonly outputDeviation: number;
        /** Leading tokens that all requests share (of `prefixes` different ones). */
        readonly prefixTokens: number;
        readonly prefixes: number;
        /** Lengths are spread evenly over mean ± deviation instead (vLLM's --random-range-ratio). */
        readonly spread?: 'uniform';
      }
    | {
        /** A JSON Lines file: `{"prompt": …}`, `{"messages": […]}`, `{"text_input": …}`, or a whole request body in `{"body": …}`; `timestamp` (ms) for replay. */
        readonly kind: 'file';
        readonly path: string;
        /** `sequential` begins again at the end, `once` (a replay) does not. */
        readonly order: 'sequential' | 'random' | 'once';
        readonly outputTokens: number | null;
      };
}

export interface PromptPlan {
  readonly classes: readonly PromptClass[];
  /** Turns of a conversation; 1 for single requests. Each turn carries what was said before. */
  readonly turns: number;
  /** Pause of the user between turns. */
  readonly thinkTime: Seconds;
  /** Each prompt asks for a mark to be repeated, and an answer with another one's is a failure; not with several turns. */
  readonly checkNonce?: boolean;
}

/** What a request body says besides the prompt. */
export interface BodyPlan {
  readonly model: string;
  readonly stream: boolean;
  /** `ignore_eos`, so that exactly the asked tokens come (vLLM, SGLang, llama.cpp). */
  readonly ignoreEos: boolean;
  /** What the limit of output tokens is called in `chat`; `max_tokens` where nothing is said, which every server knows. */
  readonly outputLimit?: 'max_tokens' | 'max_completion_tokens';
  /** Merged into every body, last. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export interface Timeouts {
  readonly connect: Seconds;
  /** Null: only the total counts. */
  readonly firstByte: Seconds | null;
  /** Longest silence in the middle of an answer; null: only the total counts. */
  readonly stall: Seconds | null;
  readonly total: Seconds;
}

/** Requests that are sent and not measured: so many, or for so long. */
export type Warmup = { readonly requests: number } | { readonly duration: Seconds };

/** The whole run. */
export interface LoadPlan {
  readonly runId: string;
  readonly part: { readonly index: number; readonly of: number };
  readonly endpoint: EndpointPlan;
  readonly prompts: PromptPlan;
  readonly body: BodyPlan;
  readonly stages: readonly StagePlan[];
  /** Before the first stage (and after each change of level, for `duration`): sent, not measured. */
  readonly warmup: Warmup | null;
  readonly timeouts: Timeouts;
  /** How long requests under way may take at the end, and at Ctrl-C. */
  readonly drain: Seconds;
  readonly seed: number;
  readonly workers: number;
  readonly slos: readonly Slo[];
  /** Null: no `traceparent` is sent. */
  readonly trace: {
    /** 32 hex digits. */
    readonly traceId: string;
    /**
     * Share of requests whose `traceparent` has the sampled flag and whose span is kept; `thinning` where nobody knows how many there
     * will be. Which ones: `isSampled` in trace-context.ts.
     */
    readonly sample: Ratio | 'thinning';
  } | null;
}
