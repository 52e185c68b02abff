import { type Layout, SessionDocument, type Shape } from './document.ts';

/** Fields of a diagnosis that an approval is of. */
export const DIAGNOSIS_KEYS: readonly string[] = [
  'symptom',
  'root_cause',
  'places',
  'why_this_happens',
  'proposed_fix',
  'files',
  'what_this_fix_will_change',
  'what_this_fix_will_not_fix',
];

/** The sections of a session's file and the fields that are known in each, in the order in which a new file has them. GSD's are all among them. */
const SHAPE: Shape = {
  current_focus: [
    'hypothesis',
    'test',
    'expecting',
    'next_action',
    'reasoning_checkpoint',
    'tdd_checkpoint',
  ],
  symptoms: [
    'expected',
    'actual',
    'errors',
    'reproduction',
    'started',
    'worked_before',
    'changed',
    'frequency',
    'versions',
    'logs',
  ],
  environment: [],
  reproduction: ['command', 'runs', 'seen_failing', 'output', 'no_repro'],
  hypotheses: [],
  eliminated: [],
  evidence: [],
  attempts: [],
  diagnosis: [...DIAGNOSIS_KEYS, 'hash', 'approved_by', 'approved_at', 'approved_commit'],
  resolution: [
    'root_cause',
    'fix',
    'verification',
    'files_changed',
    'abandoned_because',
    'specialist_hint',
    'confirmed_by',
  ],
};

/** What is done first in any session. */
export const FIRST_ACTION = 'gather initial evidence';

/** GSD's and ours: a frontmatter, and a section for each part. */
export const DEBUG_FILE: Layout = { shape: SHAPE, headings: {}, head: null };

/** A worklog: a title, what is known in bold below it, and its own headings for the same parts. */
export const WORKLOG: Layout = {
  shape: { problem: ['trigger'], ...SHAPE },
  headings: {
    symptoms: 'Expected vs Actual',
    reproduction: 'Reproduction Steps',
    evidence: 'Investigation Log',
    diagnosis: 'Root Cause',
    resolution: 'Fix',
  },
  head: { created: 'Date', status: 'Status', environment: 'Environment' },
};

/** Whether a file's text is a worklog: its title says `Debug:`. */
export function isWorklog(text: string): boolean {
  return /^\ufeff?\s{0,64}# Debug:/.test(text.slice(0, 256));
}

/** The document that a file holds, of whichever form it is. */
export function openDocument(text: string): SessionDocument {
  return new SessionDocument(text, isWorklog(text) ? WORKLOG : DEBUG_FILE);
}
