import type { Fields, Goal } from '../core/session.ts';
import { hasSymptoms } from './session.ts';
import { encodeList } from '../core/session-value.ts';
import { FIRST_ACTION, openDocument } from './shape.ts';

/** A new session's file. */

/** What a session begins with. */
export interface Beginning {
  /** What the user said or pasted, verbatim; untrusted. */
  readonly trigger: string;
  readonly goal: Goal;
  readonly now: Date;
  /** Of what is wrong, as far as it is known. */
  readonly symptoms: Fields;
  /** Of the machine that it begins on. */
  readonly environment?: Fields;
  /** What people and agents wrote down for each other; untrusted. */
  readonly notes?: string;
  /** Whether the symptoms are somebody else's words. */
  readonly outside: boolean;
  /** The title of a worklog; null for a file of the usual form. */
  readonly worklog: string | null;
}

/** The comments say to a person with an editor what the tool keeps to; GSD's files have them too. */
const NEW_FILE = `## Current Focus
<!-- OVERWRITE: what is being done now -->

## Symptoms
<!-- Fixed once gathered -->

## Hypotheses
<!-- Three to five, ranked; what would confirm and what would refute each -->

## Eliminated
<!-- APPEND only: what was ruled out, and by what -->

## Evidence
<!-- APPEND only -->

## Attempts
<!-- APPEND only: changes that were tried -->

## Resolution
<!-- OVERWRITE as understanding grows -->
`;

const NEW_WORKLOG = `
## Problem

## Reproduction Steps

## Expected vs Actual

## Hypotheses

## Investigation Log

## Root Cause

## Fix
`;

const FIRST_SYMPTOMS = ['expected', 'actual', 'errors', 'reproduction', 'started'];

/** The text of the file. */
export function newSession(beginning: Beginning): string {
  const {
    trigger,
    goal,
    now,
    symptoms,
    environment = {},
    notes = '',
    outside,
    worklog,
  } = beginning;
  const document = openDocument(
    worklog === null ? NEW_FILE : `# Debug: ${lineOf(worklog)}\n${NEW_WORKLOG}`,
  );
  const at = now.toISOString();
  const status = hasSymptoms(symptoms) ? 'investigating' : 'gathering';
  if (worklog === null) {
    document.setProperty('status', status);
    document.setProperty('trigger', trigger);
    document.setProperty('goal', goal);
    document.setProperty('created', at);
    document.setProperty('updated', at);
  } else {
    document.setProperty('created', at);
    document.setProperty('status', status);
    document.setProperty('environment', Object.values(environment).slice(0, 2).join('; '));
    document.setProperty('goal', goal);
    document.setField('problem', 'trigger', trigger, { outside: true });
  }
  document.setField('current_focus', 'hypothesis', '');
  document.setField('current_focus', 'test', '');
  document.setField('current_focus', 'expecting', '');
  document.setField('current_focus', 'next_action', FIRST_ACTION);
  const keys = [...new Set([...FIRST_SYMPTOMS, ...Object.keys(symptoms)])];
  for (const key of keys) document.setField('symptoms', key, symptoms[key] ?? '', { outside });
  for (const [key, value] of Object.entries(environment))
    document.setField('environment', key, value);
  if (notes !== '') document.setField('environment', 'notes', notes, { outside: true });
  for (const key of ['root_cause', 'fix', 'verification']) document.setField('resolution', key, '');
  document.setField('resolution', 'files_changed', encodeList([]), { list: true });
  return document.toString();
}

/** On one line, as a heading has it. */
const lineOf = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, 120) || 'untitled';
