/** Which part of a report a heading opens. */

/** A part of a report. `none`: before any heading; `other`: told by nobody's field, and still told. `version:x`: the version of x alone. */
export type Field =
  | 'none'
  | 'other'
  | 'checklist'
  | 'environment'
  | 'description'
  | 'expected'
  | 'actual'
  | 'reproduction'
  | 'logs'
  | 'started'
  | 'workedBefore'
  | 'changed'
  | 'frequency'
  | 'title'
  | `version:${string}`;

const NAMES: Readonly<Partial<Record<Field, string>>> = {
  title: 'title|subject',
  description:
    'describe the bug|describe the issue|describe the problem|describe the failing test|bug description|description|summary|' +
    'problem|problem description|problem statement|issue|issue description|bug|context|overview|background|what is the issue|' +
    'what is wrong|what is the problem|details',
  expected:
    'expected|expected behavior|expected behaviour|expected result|expected results|expected outcome|expected output|' +
    'what did you expect|what did you expect to happen|what did you expect to see|what you expected|what should happen|' +
    'what you expected to happen|expectation',
  actual:
    'actual|actual behavior|actual behaviour|actual result|actual results|actual outcome|actual output|observed|observed behavior|' +
    'observed behaviour|current behavior|current behaviour|what happened|what actually happened|what did you see instead|' +
    'what happens|what happened instead|what happens instead|what you see|what did you see|symptom|symptoms|seen instead|got',
  reproduction:
    'reproduction|reproduce|steps to reproduce|to reproduce|how to reproduce|how to reproduce it|reproduction steps|repro|' +
    'repro steps|steps|minimal reproduction|minimal repro|minimal reproducible example|minimal example|mre|reproducer|' +
    'reproduction script|reproduction code|repro command|command|commands|launch command|script|steps to repro|what did you do',
  logs:
    'log|logs|relevant log output|relevant logs|error log|error logs|stack trace|stacktrace|stack|traceback|full traceback|error output|' +
    'error info|error message|error messages|error|errors|server log|server logs|worker log|worker logs|log output|full log|full logs|' +
    'logs and errors|logs/errors|output|client output|decode worker logs|prefill worker logs|frontend logs|engine logs',
  environment:
    'environment|env|your current environment|current environment|system info|system information|environment info|environment information|' +
    'environment details|versions|version info|version|version information|software versions|setup|hardware|hardware and software|' +
    'collect env|deployment',
  started:
    'started|when did it start|when did this start|first seen|since when|since|start time|onset|history of failing test|timeline|' +
    'when did the problem start|when did it begin|when',
  workedBefore:
    'did it ever work|did it work before|worked before|has it ever worked|last known good|last working version|regression|' +
    'was it working before|is this a regression|ever worked|previously working|last good version',
  changed:
    'what changed|recent changes|changed|what has changed|what changed recently|changes|change',
  frequency:
    'frequency|how often|always or intermittent|reproducibility|how often does it happen|reproducible|reproduction rate|repro rate|' +
    'occurrence|consistency',
  checklist:
    'checklist|before submitting a new issue|before submitting|prerequisites|search before asking|pre submission checklist',
  other:
    'additional context|additional information|screenshots|screenshot|cc list|possible solution|workaround|notes|impact|related issues|' +
    'related|priority|basic information|motivation|anything else|analysis|possible cause|suspected cause|root cause|proposed fix|' +
    'suggested fix|suggestion|what i tried|what we tried|name of failing test|model input dumps|labels|assignee|severity|references|' +
    'acceptance criteria|next steps|state|status|team|cycle|project|reporter|comments|author|assignees|projects|milestone|number|triage|model',
};

const FIELDS: ReadonlyMap<string, Field> = new Map(
  (Object.keys(NAMES) as Field[]).flatMap((field) =>
    (NAMES[field] ?? '').split('|').map((name) => [name, field] as const),
  ),
);

/** With more behind it ("Steps to reproduce the behavior") it means the same. */
const BEGINNINGS: readonly (readonly [string, Field])[] = [
  ['steps to reproduce', 'reproduction'],
  ['how to reproduce', 'reproduction'],
  ['steps/code to reproduce', 'reproduction'],
  ['minimal repro', 'reproduction'],
  ['expected behavio', 'expected'],
  ['actual behavio', 'actual'],
  ['what did you expect', 'expected'],
  ['describe the', 'description'],
  ['the output of python collect env', 'environment'],
  ['output of python collect env', 'environment'],
  ['collect env', 'environment'],
  ['environment', 'environment'],
  ['history of', 'started'],
  ['did it ever', 'workedBefore'],
  ['did this ever', 'workedBefore'],
  ['what changed', 'changed'],
  ['how often', 'frequency'],
  ['error log', 'logs'],
  ['full log', 'logs'],
  ['stack trace', 'logs'],
];

/** Words that end a version's heading: "CUDA Version", "ai-dynamo Version". */
const VERSION_HEADING = /^([a-z][a-z0-9 ._-]{1,40}) version$/;
const SINGLE: Readonly<Record<string, Field>> = {
  'operating system': 'version:os',
  os: 'version:os',
  'gpu architecture': 'version:gpu',
  'gpu type': 'version:gpu',
  gpu: 'version:gpu',
  gpus: 'version:gpu',
};

/** A heading as it is compared: lower case, without marks, numbers, emoji and what stands in brackets. */
function normalized(label: string): string {
  return label
    .slice(0, 100)
    .toLowerCase()
    .replaceAll(/\([^()]*\)/g, ' ')
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll(/[’']s\b/g, ' is')
    .replaceAll(/[^a-z0-9/.-]+/g, ' ')
    .replaceAll(/_|(?<=\s)[-/.]+(?=\s)|^[\s./-]*(?:\d+[.)]?\s+)?|[\s./-]+$/g, ' ')
    .replaceAll(/\.py\b/g, '')
    .replaceAll(/[-\s]+/g, ' ')
    .trim();
}

/** The part that a heading of any form opens; null for a heading that means nothing to us. */
export function fieldOf(label: string): Field | null {
  const name = normalized(label);
  const exact = FIELDS.get(name) ?? SINGLE[name];
  if (exact !== undefined) return exact;
  const beginning = BEGINNINGS.find(([begin]) => name.startsWith(begin));
  if (beginning !== undefined) return beginning[1];
  const version = VERSION_HEADING.exec(name)?.[1];
  return version === undefined ? null : `version:${version}`;
}

/** Words that open a part with nothing but a colon behind them (`Expected: 200`), in running text. */
export function plainFieldOf(label: string): Field | null {
  const name = normalized(label);
  const field =
    FIELDS.get(name) ??
    BEGINNINGS.find(([begin]) => begin.includes(' reproduce') && name.startsWith(begin))?.[1] ??
    null;
  // Single words that a program prints before a colon as well.
  return AMBIGUOUS.test(label.trim()) ? null : field;
}

const AMBIGUOUS =
  /^(?:error|errors|output|when|since|got|details|model|issue|problem|bug|number|state|status|stack|change|changes|labels?|project|steps|log|related|version|notes?|script|title|team|reporter|author|comments|traceback)$/i;
