import { type DatabaseLook, type DatabaseSession, toDatabaseLook } from '../core/database-look.ts';
import { DATABASE_SNAPSHOT } from '../core/semconv-database.ts';
import { printable } from '../core/text.ts';
import type {
  Detector,
  Evidence,
  RecordingView,
  Seconds,
  Severity,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';

/**
 * TRC122 database-locks: sessions of a database server wait for a lock that another session keeps. Assumes that the server is asked once a second
 * (`--postgres-url`); a wait is as long as the server says, or where it is too old for that as long as looks in a row saw it. Locks that change
 * hands within a second are how databases work, and are left alone.
 */

const CODE = 'TRC122';
/** A wait that long is logged by servers that log waits (log_lock_waits after deadlock_timeout, 1 s). */
const NOTABLE: Seconds = 1;
/** A person waits no longer without wondering; a statement that has something to do is given this. */
const GRAVE: Seconds = 3;
/** The usual limit of a request (nginx's 60 s, pools' 30 s): who waits so long is given up on. */
const DIRE: Seconds = 30;
/** Looks are a second apart: further apart, something else was in between. */
const SAME_WAIT: Seconds = 2.5;
/** Findings, those with the longest waits; links of a chain that are told; waiting sessions that are. */
const FINDINGS = 5;
const CHAIN = 6;

/** The end of a chain: the one session that does not wait, with those that wait for it in the end. */
interface Jam {
  readonly server: string;
  readonly root: DatabaseSession;
  /** From who waits longest to the root. */
  readonly chain: readonly DatabaseSession[];
  readonly waited: Seconds;
  readonly at: Seconds;
  readonly first: Seconds;
  readonly last: Seconds;
  readonly looks: number;
  readonly waiters: number;
}

export const databaseLocks: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const jams = jamsOf(view).filter(({ waited }) => waited >= NOTABLE);
    const worst = jams.toSorted((a, b) => b.waited - a.waited).slice(0, FINDINGS);
    for (const jam of worst) yield findingOf(jam, jams.length);
  },
};

/** By who keeps the others waiting; the look with its longest wait tells the chain. */
function jamsOf(view: RecordingView): readonly Jam[] {
  const jams = new Map<string, Jam>();
  const seen = new Map<string, { readonly since: Seconds; last: Seconds }>();
  for (const { at, body } of view.snapshots(DATABASE_SNAPSHOT.locks)) {
    const look = toDatabaseLook(body);
    if (look === undefined) continue;
    for (const [root, chains] of chainsOf(look)) {
      const timed = chains.map((chain) => ({
        chain,
        waited: waitedOf(chain[0], { look, at, seen }),
      }));
      const longest = timed.reduce((a, b) => (b.waited > a.waited ? b : a));
      const last = longest.chain.at(-1);
      if (last === undefined) continue;
      const key = `${look.server}\n${root}`;
      const known = jams.get(key);
      const isLonger = known === undefined || longest.waited >= known.waited;
      jams.set(key, {
        server: look.server,
        root: isLonger ? last : known.root,
        chain: isLonger ? longest.chain : known.chain,
        waited: isLonger ? longest.waited : known.waited,
        at: isLonger ? at : known.at,
        first: known?.first ?? at,
        last: at,
        looks: (known?.looks ?? 0) + 1,
        waiters: Math.max(known?.waiters ?? 0, chains.length),
      });
    }
  }
  return [...jams.values()];
}

/** Of each session that waits, whom it waits for and so on up to one that does not; in a cycle there is none, and it is TRC123's. */
export function chainsOf(look: DatabaseLook): ReadonlyMap<number, readonly DatabaseSession[][]> {
  const sessions = new Map(look.sessions.map((session) => [session.pid, session]));
  const roots = new Map<number, DatabaseSession[][]>();
  for (const session of look.sessions) {
    if (session.wait === null) continue;
    const chain = chainFrom(session, sessions);
    const root = chain?.at(-1);
    if (chain === null || root === undefined) continue;
    roots.set(root.pid, [...(roots.get(root.pid) ?? []), chain]);
  }
  return roots;
}

function chainFrom(
  from: DatabaseSession,
  sessions: ReadonlyMap<number, DatabaseSession>,
): DatabaseSession[] | null {
  const chain = [from];
  const passed = new Set([from.pid]);
  for (let at = from; at.wait !== null;) {
    // Who waits for the same in front of it is not who has it: what does not wait itself comes first.
    const next = at.wait.by
      .flatMap((pid) => sessions.get(pid) ?? [])
      .toSorted((a, b) => Number(a.wait !== null) - Number(b.wait !== null))
      .find(({ pid }) => !passed.has(pid));
    if (next === undefined) return null;
    passed.add(next.pid);
    chain.push(next);
    at = next;
  }
  return chain;
}

/** As the server says; else as long as it was found waiting for the same sessions in one look after the other. */
function waitedOf(
  session: DatabaseSession | undefined,
  {
    look,
    at,
    seen,
  }: {
    readonly look: DatabaseLook;
    readonly at: Seconds;
    readonly seen: Map<string, { readonly since: Seconds; last: Seconds }>;
  },
): Seconds {
  const wait = session?.wait;
  if (session === undefined || wait === null || wait === undefined) return 0;
  if (wait.waited !== null) return wait.waited;
  const key = [look.server, session.pid, session.query, wait.lock, wait.relation, ...wait.by].join(
    '\n',
  );
  const known = seen.get(key);
  if (known === undefined || at - known.last > SAME_WAIT) {
    seen.set(key, { since: at, last: at });
    return 0;
  }
  known.last = at;
  return at - known.since;
}

function findingOf(jam: Jam, jams: number): UnnumberedFinding {
  const { root, chain, waited, waiters, server } = jam;
  const [waiter] = chain;
  const relation = chain.map(({ wait }) => wait?.relation ?? null).find((one) => one !== null);
  const idle = isIdle(root);
  const owner = root.owner ?? chain.find((one) => one.owner !== null)?.owner ?? null;
  const what = relation === undefined ? 'a lock' : `a lock of ${printable(relation ?? '', 80)}`;
  const who = waiters === 1 ? 'a session waits' : `up to ${waiters} sessions wait`;
  return {
    code: CODE,
    kind: 'lock-contention',
    mechanism: idle ? 'idle in transaction' : 'database lock',
    severity: severityOf(waited, idle),
    confidence: root.state === null ? 'likely' : 'confirmed',
    pid: owner,
    summary: `${who} for ${what} in the database, one for ${formatSeconds(waited)}: ${nameOf(root)} has it${doing(root)}`,
    where: [],
    evidence: [
      {
        kind: 'chain',
        summary: `${printable(server, 100)}, ${jam.looks} looks: ${chain
          .slice(0, CHAIN)
          .map((one) => one.pid)
          .join(' waits for ')}${chain.length > CHAIN ? ' and so on' : ''}`,
        data: { server, pids: chain.map(({ pid }) => pid), looks_count: jam.looks },
      },
      ...chain.slice(0, CHAIN).map((one) => sessionEvidence(one)),
      ...(jams > FINDINGS
        ? [
            {
              kind: 'more',
              summary: `${jams} sessions kept others waiting; the ${FINDINGS} worst are told`,
            },
          ]
        : []),
    ],
    measure: {
      longest_wait_s: waited,
      waiters_count: waiters,
      looks_count: jam.looks,
      first_seen_s: jam.first,
      last_seen_s: jam.last,
      ...(root.inTransaction === null ? {} : { transaction_s: root.inTransaction }),
    },
    remedy: remedyOf(root, waiter),
  };
}

function severityOf(waited: Seconds, idle: boolean): Severity {
  if (waited >= DIRE) return 'critical';
  // What is idle gives nothing back until its client comes to it.
  return waited >= GRAVE || idle ? 'warning' : 'note';
}

function isIdle({ state }: DatabaseSession): boolean {
  return state?.startsWith('idle in transaction') === true;
}

function doing({ state, inState, pid }: DatabaseSession): string {
  if (pid === 0) return ', a prepared transaction (pg_prepared_xacts)';
  if (state === null) return ', and what it does may not be seen';
  const since = inState === null ? '' : ` for ${formatSeconds(inState)}`;
  return state === 'active'
    ? `, in a statement that has run${since}`
    : `, ${printable(state, 40)}${since}`;
}

function nameOf({ pid, application, user, owner }: DatabaseSession): string {
  const named = application ?? user;
  const of = owner === null ? '' : ` of pid ${owner}`;
  return `session ${pid}${named === null ? '' : ` (${printable(named, 60)})`}${of}`;
}

function sessionEvidence(session: DatabaseSession): Evidence {
  const { wait, query, pid, owner, inTransaction } = session;
  const statement = query === null ? '' : `: ${printable(query, 240)}`;
  const held =
    inTransaction === null ? '' : `, in its transaction for ${formatSeconds(inTransaction)}`;
  const data = { pid, ...(owner === null ? {} : { owner_pid: owner }) };
  if (wait === null)
    return {
      kind: 'holds',
      summary: `${nameOf(session)}${doing(session)}${held}${statement}`,
      data,
    };
  const on = wait.relation === null ? '' : ` of ${printable(wait.relation, 80)}`;
  const waited = wait.waited === null ? '' : ` for ${formatSeconds(wait.waited)}`;
  return {
    kind: 'waits-for',
    summary: `${nameOf(session)} waits${waited} for ${printable(wait.mode, 40)} (${printable(wait.lock, 40)}${on})${statement}`,
    data,
  };
}

function remedyOf(root: DatabaseSession, waiter: DatabaseSession | undefined): string {
  if (root.pid === 0)
    return 'COMMIT PREPARED or ROLLBACK PREPARED what pg_prepared_xacts lists; nobody else ends it';
  if (isIdle(root))
    return `end the transaction before anything else is waited for (a request, a queue, a person): commit or roll back on every path, also of errors; idle_in_transaction_session_timeout ends forgotten ones. SELECT pg_terminate_backend(${root.pid}) ends this one`;
  const isStrong = waiter?.wait?.mode === 'AccessExclusiveLock';
  return isStrong
    ? 'change tables with SET lock_timeout and try again: while such a change waits, all that comes after it waits too'
    : 'make the transaction that has it shorter: what takes long before or after it, changes in smaller parts';
}
