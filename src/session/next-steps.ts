import type { Session } from '../core/session.ts';
import { openHypotheses } from './session.ts';

/** What comes next in a session, each with the command that does it. The order is that of the gates: characterise, hypothesise, gather, diagnose, fix, verify. */

/** Rivals that an investigation needs before one of them can win. */
export const LEAST_HYPOTHESES = 3;

export function nextSteps(session: Session): readonly string[] {
  switch (session.status) {
    case 'gathering':
      return [
        'say what is wrong: trace session symptoms --actual … --expected … --errors … --repro …, or edit Symptoms in the file',
      ];
    case 'investigating':
      return whileInvestigating(session);
    case 'diagnosed':
      return session.goal === 'find_root_cause_only'
        ? ['the root cause is what was wanted: trace session resolve']
        : ['trace session approve, or trace session reject --because …'];
    case 'fixing':
      return ["change it, then: trace session attempt 'what was changed'"];
    case 'verifying':
    case 'awaiting_human_verify':
      return ['trace session resolve --confirmed-by <who>'];
    case 'resolved':
      return [];
    case 'abandoned':
      return [`trace session reopen ${session.slug}`];
    default:
      return session.status satisfies never;
  }
}

function whileInvestigating(session: Session): readonly string[] {
  const open = openHypotheses(session);
  if (session.hypotheses.length < LEAST_HYPOTHESES) {
    const missing = LEAST_HYPOTHESES - session.hypotheses.length;
    return [
      `${missing} more ${missing === 1 ? 'hypothesis' : 'hypotheses'}: trace session hypothesis add 'claim' --confirms … --refutes …`,
    ];
  }
  const confirmed = session.hypotheses.find(({ state }) => state === 'confirmed');
  if (confirmed !== undefined) return ['trace session diagnose'];
  const [first] = open;
  if (first === undefined) return ['all were eliminated: trace session hypothesis add …'];
  return session.focus.hypothesis === ''
    ? [`trace session focus ${first.id} --test … --expecting …`]
    : [
        `test it, then: trace session evidence add --checked … --found … --implication …`,
        `trace session hypothesis confirm ${first.id} --evidence …, or trace session hypothesis eliminate ${first.id} --evidence …`,
      ];
}
