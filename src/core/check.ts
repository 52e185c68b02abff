/** Whether something works here: fully, in part, or not at all. */
export type CheckStatus = 'ok' | 'limited' | 'missing';

/** One line of `trace doctor`. Text may come from outside: untrusted until rendered. */
export interface Check {
  /** Stable, kebab-case: what scripts look for. */
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found, with its values. */
  readonly detail: string;
  /** The command or change that makes it work, one a line; null when nothing is to be done. */
  readonly remedy: string | null;
}

/** A check that found nothing wrong. */
export function passed(name: string, detail: string): Check {
  return { name, status: 'ok', detail, remedy: null };
}
