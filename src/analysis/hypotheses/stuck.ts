import type { FindingKind } from '../../core/types.ts';
import {
  either,
  type Explanation,
  HINT,
  measured,
  pidOf,
  placeText,
  SOME,
  STRONG,
  type Subject,
  SURE,
} from './explanation.ts';

/** Work is there and nothing moves: who waits for whom. */

export const STUCK_KINDS: ReadonlySet<FindingKind> = new Set(['deadlock', 'wedge']);

export function explainStuck(subject: Subject): readonly Explanation[] {
  const { main } = subject;
  const text = `${main.mechanism ?? ''} ${main.summary}`;
  const seen = (pattern: RegExp): boolean => pattern.test(text);
  const cycle = seen(/cycle|lock.?order|each other/i);
  const pool = seen(/pool|exhaust|checked out|slots/i);
  const lost = seen(/lost|wake|nobody|idle|never set/i);
  const hung = seen(/kernel|spin|100 ?%|D state|hung/i);
  const where = placeText(main);
  const at = where === '' ? '' : `, at ${where}`;
  const all = [
    {
      mechanism: 'lock-order',
      claim: `two of them hold what the other waits for${at}`,
      confirming: 'taking the locks in one order everywhere ends it',
      refuting: 'it stands still with one task, or one thread, too',
      prior: -0.2,
      clues: [
        ...either(
          cycle,
          { summary: 'a cycle of waits was seen', weight: SURE },
          { summary: 'no cycle of waits was seen', weight: -SOME },
        ),
      ],
    },
    {
      mechanism: 'pool-exhaustion',
      claim: `everything in a pool is taken, and those who hold it wait for more of it${at}`,
      confirming:
        'a larger pool moves the number of requests at which it stops; releasing earlier ends it',
      refuting: 'it stops at the same point with a pool twice as large',
      prior: -0.2,
      clues: either(
        pool,
        { summary: 'all of a pool was taken while others waited for it', weight: SURE },
        { summary: 'no pool was seen to be empty', weight: -SOME },
      ),
    },
    {
      mechanism: 'lost-wakeup',
      claim: `what they wait for has happened already, and nobody tells them${at}`,
      confirming: 'setting the event, or notifying all, by hand lets it go on',
      refuting: 'what they wait for is still to come',
      prior: -0.2,
      clues: either(
        lost,
        { summary: 'nothing was left that would wake them', weight: STRONG + HINT },
        { summary: 'something was still at work that might wake them', weight: -HINT },
      ),
    },
    {
      mechanism: 'dependency',
      claim: 'something outside (a database, another server, a disk, a GPU) does not answer',
      confirming: 'asked directly, it does not answer either',
      refuting: 'asked directly, it answers at once',
      prior: 0,
      clues: [
        ...either(hung, {
          summary: 'a call outside was seen that did not return',
          weight: STRONG + HINT,
        }),
        ...either(cycle || pool, {
          summary: 'those who wait, wait for each other',
          weight: -STRONG,
        }),
      ],
    },
    {
      mechanism: 'slow-not-stuck',
      claim: 'it moves, but slower than anybody waited',
      confirming: 'longer watched, something finishes',
      refuting: 'for minutes nothing finishes',
      prior: -0.5,
      clues: either(main.confidence === 'confirmed', {
        summary: 'nothing at all moved for as long as was watched',
        weight: -STRONG,
      }),
    },
  ];
  const duration = measured(main, 'duration_s') ?? measured(main, 'stalled_s');
  const again = duration === null ? '-d 2m' : `-d ${Math.max(60, Math.round(duration * 3))}s`;
  return all.map((one) => ({
    ...one,
    test:
      one.mechanism === 'dependency' || one.mechanism === 'slow-not-stuck'
        ? `trace attach ${pidOf(subject)} ${again}`
        : `trace repro new ${subject.recording}#H1 --call module:function --oracle no-progress`,
  }));
}
