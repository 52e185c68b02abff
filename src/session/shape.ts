import type { Shape } from './document.ts';

/** The sections of a session's file and the fields that are known in each, in the order in which a new file has them. GSD's are all among them. */
export const SHAPE: Shape = {
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
  diagnosis: [
    'symptom',
    'root_cause',
    'places',
    'why_this_happens',
    'proposed_fix',
    'files',
    'what_this_fix_will_change',
    'what_this_fix_will_not_fix',
    'hash',
    'approved_by',
    'approved_at',
    'approved_commit',
  ],
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
