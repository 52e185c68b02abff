import type { ExitCode } from '../../core/exit-code.ts';
import { usageError } from '../../core/errors.ts';
import type { Session } from '../../core/session.ts';
import { renderDiagnosis } from '../../report/session/diagnosis.ts';
import { renderSessionJson, sessionDocument } from '../../report/session/document.ts';
import { EXIT } from '../../core/exit-code.ts';
import { forgetApproval } from '../../session/approval-record.ts';
import { missingForDiagnosis } from '../../session/gates.ts';
import { parsePlace, problemOfPlace, quotedPlace } from '../../session/place.ts';
import { specialistOf } from '../../session/specialist.ts';
import { sessionOf } from '../../session/session.ts';
import { encodeList } from '../../core/session-value.ts';
import { encodeFields } from '../../session/value.ts';
import type { Command, CommandContext, OptionValues, Usage } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { filledIn, type FormField } from './editor.ts';
import {
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  surfaceOf,
  textOf,
} from './opening.ts';

const help = `trace session diagnose - present the cause, before anything is changed

Usage:
  trace session diagnose --root-cause <text> --place <file:line=quote> ...

Presents what is wrong, where, why, and what the fix will change and will not,
for a person to approve. It needs three hypotheses, one of them confirmed with
evidence and a rival eliminated, and places that exist: the file is there, the
line within it, and the quoted text stands in it. Without a flag a terminal
opens your editor.

Options:
      --symptom <text>       what is seen (default: the session's)
      --root-cause <text>    what is wrong, with values
      --place <file:line>    where; file:line=quote checks what stands there;
                             repeatable
      --why <text>           why this makes the symptom
      --fix <text>           what is to be changed
      --file <path>          a file that the fix changes; repeatable
      --changes <text>       what the fix will change
      --not-fixed <text>     what it will not fix
${SESSION_HELP}
Exit codes:
  0    presented
  1    refused: what is missing is named
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session diagnose --root-cause 'the balance is read before the await' \\
      --place 'account.py:37=balance = self.balance' --why 'two calls read it' \\
      --fix 'lock around both' --file account.py --changes 'calls queue' \\
      --not-fixed 'several processes'

More: docs/session.md
`;

/** `trace session diagnose` as its help shows it. */
export const sessionDiagnoseUsage: Usage = {
  name: 'session diagnose',
  summary: 'Present the cause, before anything is changed',
  help,
  options: {
    ...SESSION_OPTIONS,
    symptom: { type: 'string' },
    'root-cause': { type: 'string' },
    place: { type: 'string', multiple: true },
    why: { type: 'string' },
    fix: { type: 'string' },
    file: { type: 'string', multiple: true },
    changes: { type: 'string' },
    'not-fixed': { type: 'string' },
  },
  completes: { argument: [], values: { dir: 'folder', file: 'file', place: 'file' } },
};

/** `trace session diagnose`. */
export const sessionDiagnoseCommand: Command = { ...sessionDiagnoseUsage, run };

/** What each field is given by, and whether a session that wants no fix has it. */
const TEXTS = [
  { key: 'root_cause', flag: 'root-cause', isOfFix: false },
  { key: 'why_this_happens', flag: 'why', isOfFix: false },
  { key: 'proposed_fix', flag: 'fix', isOfFix: true },
  { key: 'what_this_fix_will_change', flag: 'changes', isOfFix: true },
  { key: 'what_this_fix_will_not_fix', flag: 'not-fixed', isOfFix: true },
] as const;

/** What a terminal asks for in an editor. */
const FORM: readonly FormField[] = [
  { flag: 'root-cause', hint: 'what is wrong, with lines, values, shapes' },
  { flag: 'place', hint: 'file:line=quote, as in account.py:37=balance', isList: true },
  { flag: 'why', hint: 'why this makes the symptom' },
  { flag: 'fix', hint: 'what is to be changed' },
  { flag: 'file', hint: 'a file that the fix changes', isList: true },
  { flag: 'changes', hint: 'what the fix will change' },
  { flag: 'not-fixed', hint: 'what it will not fix' },
];

async function run(context: CommandContext): Promise<ExitCode> {
  const { environment } = context;
  const { cwd } = environment;
  const opened = openSession(context);
  const { store, file } = opened;
  const before = store.read(file);
  const isPresented = (before.diagnosis['root_cause'] ?? '') !== '';
  // One that is there is presented as it stands, and what is missing before any is said before somebody writes.
  const isWritten = !isPresented && missingForDiagnosis(before).length === 0;
  const form = FORM.filter(
    ({ flag }) =>
      before.goal !== 'find_root_cause_only' ||
      !(flag === 'file' || TEXTS.some((one) => one.flag === flag && one.isOfFix)),
  );
  const values = isWritten ? await filledIn(context, form) : context.values;
  await store.update(file, (document, session) => {
    const isOfCauseAlone = session.goal === 'find_root_cause_only';
    const missing = [...missingForDiagnosis(session)];
    const texts = TEXTS.filter(({ isOfFix }) => !isOfFix || !isOfCauseAlone);
    for (const { key, flag } of texts)
      if ((textOf(values, flag) ?? session.diagnosis[key] ?? '') === '') missing.push(`--${flag}`);
    const places = manyOf(values, 'place');
    const there = (places.length === 0 ? (session.diagnosis['places'] ?? '') : '').trim();
    if (places.length === 0 && there === '') missing.push("--place 'file:line=quote'");
    const parsed = places.map((text) => {
      const place = parsePlace(text);
      if (place === null)
        throw usageError(`${text} is no place`, "--place 'account.py:37=balance = self.balance'");
      return place;
    });
    missing.push(...parsed.flatMap((place) => problemOfPlace(place, cwd) ?? []));
    const files = manyOf(values, 'file');
    if (!isOfCauseAlone && files.length === 0 && (session.diagnosis['files'] ?? '') === '')
      missing.push('--file, the files that the fix changes');
    if (missing.length > 0) throw gateError('no diagnosis yet', missing);
    const set = (key: string, value: string): void => document.setField('diagnosis', key, value);
    set(
      'symptom',
      textOf(values, 'symptom') ?? session.diagnosis['symptom'] ?? session.symptoms['actual'] ?? '',
    );
    for (const { key, flag } of texts) {
      const value = textOf(values, flag);
      if (value !== null) set(key, value);
    }
    if (parsed.length > 0) {
      const quoted = encodeList(parsed.map((place) => quotedPlace(place, cwd)));
      document.setField('diagnosis', 'places', quoted, { list: true });
    }
    if (files.length > 0)
      document.setField('diagnosis', 'files', encodeList(files), { list: true });
    for (const key of ['hash', 'approved_by', 'approved_at', 'approved_commit']) set(key, '');
    forgetApproval({ path: file.path, env: environment.env });
    document.setField(
      'resolution',
      'root_cause',
      textOf(values, 'root-cause') ?? session.diagnosis['root_cause'] ?? '',
    );
    document.setField(
      'resolution',
      'specialist_hint',
      specialistOf({ ...session, diagnosis: document.fields('diagnosis') }),
    );
    const checkpoint = checkpointOf(sessionOf(session.slug, document));
    document.setField('current_focus', 'reasoning_checkpoint', checkpoint, { nested: true });
    document.setProperty('status', 'diagnosed');
  });
  const session = store.read(file);
  environment.stdout.write(
    values['json'] === true
      ? renderSessionJson('diagnose', toolVersion(), {
          session: sessionDocument({ session, path: file.path, isResolved: false }),
        })
      : renderDiagnosis(session, surfaceOf(context)),
  );
  return EXIT.ok;
}

/** What the diagnosis rests on, in GSD's words: whoever goes on with the session has it before any fix. */
function checkpointOf({ hypotheses, evidence, diagnosis }: Session): string {
  const winner = hypotheses.find(({ state }) => state === 'confirmed');
  const seen = evidence.filter(({ hypothesis }) => hypothesis === winner?.id);
  return encodeFields({
    hypothesis: winner?.claim ?? '',
    confirming_evidence: seen.map(({ found }) => found).join('; '),
    falsification_test: winner?.refutes ?? '',
    fix_rationale: diagnosis['why_this_happens'] ?? '',
    blind_spots: diagnosis['what_this_fix_will_not_fix'] ?? '',
  });
}

function manyOf(values: OptionValues, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? value.map(String) : [];
}
