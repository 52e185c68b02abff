import type { Ask, Message } from './body.ts';

/** Conversations that were abandoned (a turn failed) are forgotten when so many others went on since. */
const MOST_SESSIONS = 100_000;

/** What was said so far in each conversation under way. */
export class Sessions {
  readonly #said = new Map<number, readonly Message[]>();

  /** What is to be sent for this turn: what was said before, and this. The first turn begins anew. */
  ask(session: number, turn: number, ask: Ask): readonly Message[] {
    const said = turn === 0 ? [] : (this.#said.get(session) ?? []);
    const now = typeof ask === 'string' ? [{ role: 'user', content: ask }] : ask;
    return this.#keep(session, [...said, ...now]);
  }

  answered(session: number, text: string): void {
    const said = this.#said.get(session);
    if (said !== undefined) this.#keep(session, [...said, { role: 'assistant', content: text }]);
  }

  end(session: number): void {
    this.#said.delete(session);
  }

  #keep(session: number, said: readonly Message[]): readonly Message[] {
    // Taken out and put back, the one that was touched last is the last in order.
    this.#said.delete(session);
    this.#said.set(session, said);
    const [oldest] = this.#said.keys();
    if (this.#said.size > MOST_SESSIONS && oldest !== undefined) this.#said.delete(oldest);
    return said;
  }
}
