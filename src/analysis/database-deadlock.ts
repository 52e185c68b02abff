import {
  type DatabaseLook,
  type DatabaseSession,
  type DeadlockMember,
  type DeadlockReport,
  toDatabaseLook,
  toDeadlockReport,
} from '../core/database-look.ts';
import { DATABASE_SNAPSHOT } from '../core/semconv-database.ts';
import { printable } from '../core/text.ts';
import type { Detector, RecordingView, Seconds, UnnumberedFinding } from '../core/types.ts';

/**
 * TRC123 database-deadlock: transactions that wait for each other. The server ends one of them after a second (deadlock_timeout): its log says so
 * (`--postgres-log`), and a look at its locks in that second finds the circle (`--postgres-url`). Deadlocks of the same statements are one finding.
 */

const CODE = 'TRC123';
/** A report of the log from before the run is news for a day. */
const NEWS: Seconds = 86_400;
const FINDINGS = 5;
const MEMBERS = 6;

/** Deadlocks of the same statements. */
interface Kind {
  readonly members: readonly DeadlockMember[];
  readonly relation: string | null;
  /** The watched processes that are in it. */
  readonly owners: Set<number>;
  readonly sources: Set<string>;
  count: number;
  /** In the run or within a day before it. */
  recent: number;
  /** In the run. */
  during: number;
  last: Seconds | null;
}

export const databaseDeadlock: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const kinds = kindsOf(view).toSorted((a, b) => b.recent - a.recent || b.count - a.count);
    for (const kind of kinds.slice(0, FINDINGS)) yield findingOf(kind, kinds.length);
  },
};

function kindsOf(view: RecordingView): readonly Kind[] {
  const kinds = new Map<string, Kind>();
  const take = (members: readonly DeadlockMember[], relation: string | null): Kind => {
    const key = members
      .map(({ statement, wants }) => statement ?? wants?.replaceAll(/\d+/g, '#') ?? '?')
      .toSorted()
      .join('\n');
    const kind = kinds.get(key) ?? {
      members,
      relation,
      owners: new Set<number>(),
      sources: new Set<string>(),
      count: 0,
      recent: 0,
      during: 0,
      last: null,
    };
    kinds.set(key, kind);
    return kind;
  };
  const logged = new Set<string>();
  for (const { at, body } of view.snapshots(DATABASE_SNAPSHOT.deadlock)) {
    const report = toDeadlockReport(body);
    if (report === undefined) continue;
    const kind = take(report.members, report.relation);
    kind.count++;
    if (isRecent(report, view.start.startedAt)) kind.recent++;
    if (!report.isOld) kind.during++;
    kind.sources.add(`the log ${printable(report.log, 80)}`);
    kind.last = report.at ?? (report.isOld ? kind.last : at);
    if (!report.isOld) logged.add(circleKey(report.members));
  }
  // A circle lasts until the server ends it, and may be in several looks.
  const seen = new Set<string>();
  for (const { at, body } of view.snapshots(DATABASE_SNAPSHOT.locks)) {
    const look = toDatabaseLook(body);
    for (const circle of look === undefined ? [] : circlesOf(look)) {
      const members = circle.map(memberOf);
      const relation = circle.map(({ wait }) => wait?.relation ?? null).find((one) => one !== null);
      const kind = take(members, relation ?? null);
      kind.sources.add('its locks, at the time');
      for (const { owner } of circle) if (owner !== null) kind.owners.add(owner);
      const key = circleKey(members);
      // The log has counted it, or another look.
      if (!logged.has(key) && !seen.has(key)) {
        kind.count++;
        kind.recent++;
        kind.during++;
        kind.last = at;
      }
      seen.add(key);
    }
  }
  return [...kinds.values()];
}

/** Sessions live for long, and may be in the same circle again: with what they wait for it is this one. */
function circleKey(members: readonly DeadlockMember[]): string {
  return members
    .map(({ pid, statement }) => `${pid} ${statement ?? ''}`)
    .toSorted()
    .join('\n');
}

/** A report that was there before the run, and whose time is not known, may be of any time. */
function isRecent({ isOld, at }: DeadlockReport, startedAt: Seconds): boolean {
  return !isOld || (at !== null && startedAt - at < NEWS);
}

/** Sessions each of which waits for the next, and the last for the first; each circle once. */
function circlesOf(look: DatabaseLook): readonly (readonly DatabaseSession[])[] {
  const sessions = new Map(look.sessions.map((session) => [session.pid, session]));
  const done = new Set<number>();
  const circles: DatabaseSession[][] = [];
  for (const from of look.sessions) {
    const path: DatabaseSession[] = [];
    let at: DatabaseSession | undefined = from;
    while (at?.wait != null && !done.has(at.pid) && !path.includes(at)) {
      path.push(at);
      at = at.wait.by.flatMap((pid) => sessions.get(pid) ?? []).find(({ wait }) => wait !== null);
    }
    const begins = at === undefined ? -1 : path.indexOf(at);
    if (begins !== -1) circles.push(path.slice(begins));
    for (const { pid } of path) done.add(pid);
  }
  return circles;
}

function memberOf({ pid, wait, query }: DatabaseSession): DeadlockMember {
  const wants = wait === null ? null : `${wait.mode} on ${wait.lock}`;
  return { pid, wants, blockedBy: wait?.by[0] ?? null, statement: query };
}

function findingOf(kind: Kind, kinds: number): UnnumberedFinding {
  const { members, relation, count, recent, during, owners } = kind;
  const told = members.slice(0, MEMBERS);
  const statements = told.map(({ statement }) => `'${printable(statement ?? '?', 100)}'`);
  const times = count === 1 ? 'a deadlock' : `${count} deadlocks`;
  const on = relation === null ? '' : ` on ${printable(relation, 80)}`;
  const old = during === 0 ? ', before this run' : '';
  const [pid = null] = owners;
  return {
    code: CODE,
    kind: 'deadlock',
    mechanism: 'transactions in opposite order',
    severity: recent > 0 ? 'warning' : 'note',
    confidence: 'confirmed',
    pid,
    summary: `the database ended ${times} of transactions${on}${old}: ${statements.join(' and ')} waited for each other`,
    where: [],
    evidence: [
      {
        kind: 'deadlock',
        summary: `told by ${[...kind.sources].join(' and ')}${kind.last === null ? '' : `, last at ${new Date(kind.last * 1e3).toISOString()}`}`,
        data: { pids: told.map((one) => one.pid) },
      },
      ...told.map((one) => ({
        kind: 'waits-for',
        summary: `session ${one.pid} wanted ${printable(one.wants ?? 'a lock', 120)}${one.blockedBy === null ? '' : `, which session ${one.blockedBy} had`}: ${printable(one.statement ?? '?', 240)}`,
        data: { pid: one.pid },
      })),
      ...(kinds > FINDINGS
        ? [
            {
              kind: 'more',
              summary: `deadlocks of ${kinds} pairs of statements; the ${FINDINGS} most frequent are told`,
            },
          ]
        : []),
    ],
    measure: { deadlocks_count: count, recent_count: recent, sessions_count: members.length },
    remedy:
      'take locks in the same order everywhere (sort rows by their key before changing them; SELECT … ORDER BY id FOR UPDATE), keep transactions short, and try again on SQLSTATE 40P01. trace repro new --sql makes it happen on a copy',
  };
}
