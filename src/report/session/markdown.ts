import { maskArguments } from '../../core/secrets/mask.ts';
import type { Session } from '../../core/session.ts';
import { decodeList } from '../../core/session-value.ts';

/** What a session found out, for whoever was not there: Markdown, from what the session links. Pure. */

const LIMIT = 4000;

/** In this order: execution map, instrumentation, hypotheses, isolation, reproduction, root cause, fix and regression test. */
export function renderSessionReport(session: Session): string {
  const { diagnosis, resolution, reproduction, evidence, hypotheses, attempts, symptoms } = session;
  const links = evidence.filter(({ link }) => link !== '');
  const parts: (readonly [string, readonly string[]])[] = [
    ['Symptoms', fieldsOf(symptoms)],
    ['Execution map', decodeList(diagnosis['places'] ?? '').map((place) => `- ${code(place)}`)],
    ['Instrumentation', links.map(({ link, checked }) => `- ${code(link)}: ${text(checked)}`)],
    ['Hypotheses', matrixOf(session)],
    [
      'Isolation',
      evidence
        .filter(({ hypothesis }) => hypothesis !== '')
        .map((one) => `- ${text(one.hypothesis)}: ${text(one.checked)}: ${text(one.found)}`),
    ],
    [
      'Reproduction',
      (reproduction['command'] ?? '') === ''
        ? bullet('none', reproduction['no_repro'])
        : [
            `- ${code(maskArguments(decodeList(reproduction['command'] ?? '')).join(' '))}`,
            ...bullet('seen', reproduction['seen_failing']),
          ],
    ],
    [
      'Root cause',
      [
        text(diagnosis['root_cause'] ?? resolution['root_cause'] ?? ''),
        text(diagnosis['why_this_happens'] ?? ''),
      ],
    ],
    [
      'Fix and regression test',
      [
        ...attempts.map(
          ({ id, change, before, after, outcome }) =>
            `- ${text(id)} ${outcome}: ${text(change)}; before ${text(before)}, after ${text(after)}`,
        ),
        text(resolution['verification'] ?? ''),
      ],
    ],
  ];
  const sections = parts.map(([title, lines]) => {
    const given = lines.filter((one) => one !== '');
    return `## ${title}\n\n${given.length === 0 ? 'Nothing yet.' : given.join('\n')}\n`;
  });
  const count = `${hypotheses.length} hypotheses, ${evidence.length} pieces of evidence, ${attempts.length} attempts`;
  return `# ${text(session.slug)}: ${session.status}\n\n${count}.\n\n${sections.join('\n')}`;
}

function matrixOf({ hypotheses, evidence, eliminated }: Session): readonly string[] {
  if (hypotheses.length === 0) return [];
  const rows = hypotheses
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ id, claim, confirms, refutes, state }) => {
      const by = eliminated.find((entry) => entry['hypothesis']?.startsWith(`${id}:`) === true);
      const seen = evidence.filter(({ hypothesis }) => hypothesis === id).length;
      const cells = [
        id,
        claim,
        confirms,
        refutes,
        state,
        by?.['evidence'] ?? (seen === 0 ? '' : `${seen} seen`),
      ];
      return `| ${cells.map(cell).join(' | ')} |`;
    });
  return ['| | claim | confirms | refutes | state | by |', '|---|---|---|---|---|---|', ...rows];
}

function fieldsOf(fields: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(fields).flatMap(([key, value]) => bullet(key, value));
}

const bullet = (label: string, value = ''): readonly string[] =>
  value === '' ? [] : [`- ${text(label)}: ${text(value)}`];

/** On one line, with nothing that Markdown or HTML would take for its own. */
function text(value: string): string {
  return value
    .slice(0, LIMIT)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\\`*_[\]<>#|]/g, '\\$&')
    .trim();
}

const cell = (value: string): string => text(value).slice(0, 300);

function code(value: string): string {
  const plain = value.slice(0, LIMIT).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
  return `\`\` ${plain.replaceAll('`', "'")} \`\``;
}
