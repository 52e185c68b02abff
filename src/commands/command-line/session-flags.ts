import type { OptionTable } from './command.ts';

/** Flags of the verbs whose results are written into a debugging session: docs/session.md. */
export const LOGGED_OPTIONS: OptionTable = {
  session: { type: 'string' },
  'no-session': { type: 'boolean' },
};
