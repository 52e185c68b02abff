import type { LoadApi, RequestError } from '../../core/load-types.ts';
import type { PreparedRequest, RequestSource } from '../contracts.ts';
import type { BodyPlan, PromptClass, PromptPlan } from '../plan.ts';
import { type Ask, BodyWriter } from './body.ts';
import { Dataset } from './dataset.ts';
import { foreignAnswer, withNonce } from './nonce.ts';
import { randomOf, STREAM } from './random.ts';
import type { RecordedPrompt } from './record.ts';
import { Sessions } from './sessions.ts';
import { syntheticPrompt } from './synthetic.ts';

/**
 * The prompts of a run. The same plan, seed and index give the same bytes in any worker. Throws a TraceError when a data set cannot be
 * used; `prepare` throws one for a line beyond those that were checked.
 */
export function openPrompts(
  plan: PromptPlan,
  body: BodyPlan,
  api: LoadApi,
  seed: number,
): RequestSource {
  return new Prompts(plan, new BodyWriter(body, api), seed);
}

/** Reads the data sets of a plan before the run: a TraceError names the line of a mistake. */
export function checkPrompts(plan: PromptPlan): void {
  for (const { prompts } of plan.classes) {
    if (prompts.kind !== 'file') continue;
    const dataset = new Dataset(prompts, 0);
    try {
      dataset.check(plan.turns);
    } finally {
      dataset.close();
    }
  }
}

/** One class of a mix, opened. */
interface OpenClass extends PromptClass {
  readonly dataset: Dataset | null;
}

/** What one request asks. */
interface Asked {
  readonly ask: Ask;
  readonly outputTokens: number | null;
}

class Prompts implements RequestSource {
  readonly wantsAnswers: boolean;
  readonly #plan: PromptPlan;
  readonly #writer: BodyWriter;
  readonly #seed: number;
  readonly #classes: readonly OpenClass[];
  readonly #weight: number;
  readonly #sessions = new Sessions();

  constructor(plan: PromptPlan, writer: BodyWriter, seed: number) {
    this.#plan = plan;
    this.#writer = writer;
    this.#seed = seed;
    this.wantsAnswers = plan.turns > 1 || plan.checkNonce === true;
    this.#classes = plan.classes.map((one) => ({
      ...one,
      dataset: one.prompts.kind === 'file' ? new Dataset(one.prompts, seed) : null,
    }));
    this.#weight = plan.classes.reduce((sum, { weight }) => sum + weight, 0);
  }

  prepare(index: number): PreparedRequest | null {
    const { turns } = this.#plan;
    const session = Math.floor(index / turns);
    const turn = index % turns;
    const chosen = this.#choose(session);
    if (chosen === undefined) return null;
    const base = {
      index,
      promptClass: chosen.name,
      session: turns > 1 ? session : null,
      turn: turns > 1 ? turn : null,
    };
    const record = chosen.dataset?.at(session);
    if (record === null) return null;
    const due = record?.due ?? null;
    if (record?.kind === 'body') return { ...base, due, body: this.#writer.complete(record.body) };
    const { ask, outputTokens } =
      record === undefined
        ? this.#made(chosen, index, turn)
        : recorded(record, turn, chosen.prompts.outputTokens);
    const marked = this.#plan.checkNonce === true ? withNonce(ask, this.#seed, index) : ask;
    const whole = turns > 1 ? this.#sessions.ask(session, turn, marked) : marked;
    return { ...base, due, body: this.#writer.write(whole, outputTokens) };
  }

  answered(request: PreparedRequest, text: string): RequestError | null {
    const { index, session, turn } = request;
    if (session !== null && turn !== null) {
      if (turn === this.#plan.turns - 1) this.#sessions.end(session);
      else this.#sessions.answered(session, text);
    }
    return this.#plan.checkNonce === true ? foreignAnswer(text, { seed: this.#seed, index }) : null;
  }

  /** The class of a request, the same for all turns of a conversation. */
  #choose(session: number): OpenClass | undefined {
    const [only, another] = this.#classes;
    if (another === undefined) return only;
    let at = randomOf(this.#seed, STREAM.promptClass, session).uniform() * this.#weight;
    return this.#classes.find(({ weight }) => (at -= weight) < 0) ?? only;
  }

  #made({ prompts }: OpenClass, index: number, turn: number): Asked {
    if (prompts.kind === 'file') return { ask: '', outputTokens: null };
    // A prefix stands at the beginning of a conversation.
    const { text, outputTokens } = syntheticPrompt(
      turn === 0 ? prompts : { ...prompts, prefixTokens: 0 },
      this.#seed,
      index,
    );
    return { ask: text, outputTokens };
  }
}

function recorded(record: RecordedPrompt, turn: number, outputTokens: number | null): Asked {
  return {
    ask: record.turns[turn] ?? '',
    outputTokens: outputTokens ?? record.outputTokens,
  };
}
