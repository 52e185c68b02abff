import type { Session } from '../core/session.ts';
import { decodeList } from '../core/session-value.ts';

/** Who should look next, by what the evidence touches: a name that an agent can read. The first that fits. */

interface Specialist {
  readonly name: string;
  /** In what was found, and in the names of the files. */
  readonly words: RegExp;
}

const SPECIALISTS: readonly Specialist[] = [
  {
    name: 'jax-logic-auditor',
    words: /\bjax\b|\bflax\b|\bjit(?:ted)?\b|\bvmap\b|\bpmap\b|tracer ?leak/i,
  },
  {
    name: 'paper-alignment-auditor',
    words: /\bpaper\b|\bequation\b|\bhyperparameter|\barxiv\b|\bablation\b/i,
  },
  {
    name: 'data-flow-tracer',
    words:
      /\bshape\b|\bdtype\b|\btensor\b|\bNaN\b|\bKV[ -]?cache\b|\btokeni[sz]er\b|\bcrosstalk\b|another request/i,
  },
  {
    name: 'failure-mode-researcher',
    words:
      /\bknown issue\b|\bupstream\b|\bregression\b|\b(?:since|after) (?:the )?(?:upgrade|update)\b|\bversion \d/i,
  },
];

const LANGUAGES: readonly { readonly name: string; readonly files: RegExp }[] = [
  { name: 'typescript-expert', files: /\.[cm]?tsx?\b/ },
  { name: 'javascript-expert', files: /\.[cm]?jsx?\b/ },
  { name: 'python-expert', files: /\.pyi?\b/ },
  { name: 'rust-expert', files: /\.rs\b/ },
  { name: 'go-expert', files: /\.go\b/ },
  { name: 'cuda-expert', files: /\.cuh?\b/ },
  { name: 'cpp-expert', files: /\.(?:c|cc|cpp|h|hpp)\b/ },
];

/** The name, empty where nothing says. */
export function specialistOf(session: Session): string {
  const { evidence, diagnosis } = session;
  const text = [
    ...evidence.map(({ checked, found, implication }) => `${checked} ${found} ${implication}`),
    diagnosis['root_cause'] ?? '',
    diagnosis['why_this_happens'] ?? '',
  ].join('\n');
  const bySubject = SPECIALISTS.find(({ words }) => words.test(text));
  if (bySubject !== undefined) return bySubject.name;
  const files = [...decodeList(diagnosis['files'] ?? ''), ...decodeList(diagnosis['places'] ?? '')];
  return LANGUAGES.find((one) => files.some((file) => one.files.test(file)))?.name ?? '';
}
