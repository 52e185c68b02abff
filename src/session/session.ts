import {
  type Fields,
  type Session,
  type SessionAttempt,
  type SessionEvidence,
  type SessionHypothesis,
  type Status,
  STATUSES,
} from '../core/session.ts';
import type { SessionDocument } from './document.ts';
import { openDocument } from './shape.ts';
import { decodeList } from '../core/session-value.ts';

/** Reads a file's text. Total: what a file does not say is empty, an unknown status is the first one that fits. */
export function readSession(slug: string, text: string): Session {
  return sessionOf(slug, openDocument(text));
}

/** The session that a document holds. */
export function sessionOf(slug: string, document: SessionDocument): Session {
  const focus = document.fields('current_focus');
  const resolution = document.fields('resolution');
  return {
    slug,
    status: statusOf(document.property('status')),
    trigger: document.property('trigger') || document.field('problem', 'trigger'),
    goal:
      document.property('goal') === 'find_root_cause_only'
        ? 'find_root_cause_only'
        : 'find_and_fix',
    created: document.property('created'),
    updated: document.property('updated'),
    focus: {
      hypothesis: focus['hypothesis'] ?? '',
      test: focus['test'] ?? '',
      expecting: focus['expecting'] ?? '',
      nextAction: focus['next_action'] ?? '',
    },
    symptoms: document.fields('symptoms'),
    reproduction: document.fields('reproduction'),
    tdd: document.nested('current_focus', 'tdd_checkpoint'),
    hypotheses: document.entries('hypotheses').map(hypothesisOf),
    eliminated: document.entries('eliminated'),
    evidence: document.entries('evidence').map(evidenceOf),
    attempts: document.entries('attempts').map(attemptOf),
    diagnosis: document.fields('diagnosis'),
    resolution,
    filesChanged: decodeList(resolution['files_changed'] ?? ''),
  };
}

/** Whether enough is known of what is wrong to look for its cause. */
export function hasSymptoms(symptoms: Fields): boolean {
  return (symptoms['actual'] ?? '') !== '' || (symptoms['errors'] ?? '') !== '';
}

/** Hypotheses that are neither confirmed nor eliminated, the likeliest first. */
export function openHypotheses({ hypotheses }: Session): readonly SessionHypothesis[] {
  return hypotheses.filter(({ state }) => state === 'open').toSorted((a, b) => a.rank - b.rank);
}

/** Statuses that GSD's other programs write, as they read ours. */
function statusOf(text: string): Status {
  const word = text
    .trim()
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_');
  const known = STATUSES.find((status) => status === word);
  if (known !== undefined) return known;
  if (/^(?:fixed|closed|done|complete)/.test(word)) return 'resolved';
  return word.startsWith('root_cause') ? 'diagnosed' : word === '' ? 'gathering' : 'investigating';
}

function hypothesisOf(entry: Fields, index: number): SessionHypothesis {
  const state = entry['state'] ?? '';
  return {
    id: entry['id'] ?? entry['hypothesis_id'] ?? `H${index + 1}`,
    claim: entry['claim'] ?? entry['hypothesis'] ?? '',
    confirms: entry['confirms'] ?? '',
    refutes: entry['refutes'] ?? '',
    state: state === 'confirmed' || state === 'eliminated' ? state : 'open',
    rank: Number.parseInt(entry['rank'] ?? '', 10) || index + 1,
  };
}

function evidenceOf(entry: Fields): SessionEvidence {
  return {
    timestamp: entry['timestamp'] ?? '',
    checked: entry['checked'] ?? '',
    found: entry['found'] ?? '',
    implication: entry['implication'] ?? '',
    hypothesis: entry['hypothesis'] ?? '',
    link: entry['link'] ?? '',
  };
}

function attemptOf(entry: Fields, index: number): SessionAttempt {
  const outcome = entry['outcome'] ?? '';
  return {
    id: entry['id'] ?? `A${index + 1}`,
    timestamp: entry['timestamp'] ?? '',
    change: entry['change'] ?? '',
    hypothesis: entry['hypothesis'] ?? '',
    approach: entry['approach'] ?? '',
    before: entry['before'] ?? '',
    after: entry['after'] ?? '',
    outcome: outcome === 'worked' || outcome === 'failed' ? outcome : 'unmeasured',
    flags: entry['flags'] ?? '',
  };
}
