import type { Fields, Session } from '../../core/session.ts';
import { escapeUnsafe } from '../json.ts';

/** Sessions as JSON: docs/schema/session.schema.json. */

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;

/** A session and where it stands. */
export interface SessionRow {
  readonly session: Session;
  readonly path: string;
  readonly isResolved: boolean;
}

/** One document for stdout, with a line feed. `rest` is what the verb adds. */
export function renderSessionJson(
  command: string,
  toolVersion: string,
  rest: Readonly<Record<string, unknown>>,
): string {
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: `session ${command}`,
    ...rest,
  };
  return `${escapeUnsafe(JSON.stringify(document, null, 2))}\n`;
}

/** A session with everything in it. */
export function sessionDocument({
  session,
  path,
  isResolved,
}: SessionRow): Record<string, unknown> {
  const { focus, hypotheses, evidence, attempts, filesChanged } = session;
  return {
    slug: session.slug,
    path,
    resolved: isResolved,
    status: session.status,
    goal: session.goal,
    trigger: session.trigger,
    created: session.created,
    updated: session.updated,
    focus: {
      hypothesis: focus.hypothesis,
      test: focus.test,
      expecting: focus.expecting,
      next_action: focus.nextAction,
    },
    symptoms: session.symptoms,
    reproduction: session.reproduction,
    tdd: session.tdd,
    hypotheses,
    eliminated: session.eliminated,
    evidence,
    attempts,
    diagnosis: session.diagnosis,
    resolution: { ...(session.resolution satisfies Fields), files_changed: filesChanged },
  };
}
