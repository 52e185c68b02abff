/** One thing that was looked for. Text may come from outside: untrusted until rendered. */
export interface EnvironmentFact {
  /** Stable, snake_case. */
  readonly name: string;
  /** Null where it is not there or could not be told; then `reason` says why. */
  readonly value: string | null;
  readonly reason: string | null;
}

/** What a part is given. */
export interface Surroundings {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}
