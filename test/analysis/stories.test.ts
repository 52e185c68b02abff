import { describe, expect, it } from 'vitest';
import { tell } from '../../src/analysis/stories.ts';
import { toFinding } from '../../src/core/otlp-records.ts';
import type {
  Finding,
  FindingKind,
  MechanismOf,
  Place,
  UnnumberedFinding,
} from '../../src/core/types.ts';
import { renderJson } from '../../src/report/json.ts';
import { buildReport } from '../../src/report/report.ts';
import { renderTerminal } from '../../src/report/terminal.ts';
import { sampleView } from '../report/sample-report.ts';

const place = (name: string): Place => ({
  function: name,
  file: '/srv/app.py',
  line: 1,
  module: null,
  thread: null,
  share: 1,
});

type Change = Partial<Omit<Finding, 'kind' | 'facts'>>;

function finding<Kind extends FindingKind>(
  kind: Kind,
  change: Change & { readonly mechanism?: MechanismOf<Kind> | null } = {},
): UnnumberedFinding {
  return {
    code: 'TRC1',
    kind,
    mechanism: null,
    severity: 'warning',
    confidence: 'likely',
    pid: 42,
    summary: kind,
    where: [],
    evidence: [{ kind: 'x', summary: 'x' }],
    measure: {},
    remedy: null,
    ...change,
  } as UnnumberedFinding;
}

/** As `effect < cause`, in the order of the list. */
function told(...findings: readonly UnnumberedFinding[]): readonly string[] {
  const all = tell(findings);
  return all.map(({ finding: { kind }, because }) =>
    because === null ? kind : `${kind} < ${all[because.cause]?.finding.kind}`,
  );
}

describe('findings that are one story', () => {
  it('go from the leak over the garbage collector to slow requests, the cause first', () => {
    expect(
      told(
        finding('loop-blocked', { severity: 'critical', mechanism: 'gc', where: [place('f')] }),
        finding('fd-leak'),
        finding('slow-requests', { where: [place('f')] }),
        finding('memory-leak'),
      ),
    ).toEqual([
      'memory-leak',
      'loop-blocked < memory-leak',
      'slow-requests < loop-blocked',
      'fd-leak',
    ]);
  });

  it('go from the leak over the limit to the end of the process and to its clients', () => {
    expect(
      told(
        finding('request-errors', { pid: null, mechanism: 'reset' }),
        finding('process-exit', { mechanism: 'out of memory (cgroup)' }),
        finding('memory-limit', { mechanism: 'oom-kill' }),
        finding('memory-leak'),
      ),
    ).toEqual([
      'memory-leak',
      'memory-limit < memory-leak',
      'process-exit < memory-limit',
      'request-errors < process-exit',
    ]);
  });

  it.each<[string, readonly UnnumberedFinding[]]>([
    [
      'lie in different places',
      [
        finding('loop-blocked', { where: [place('f')] }),
        finding('slow-requests', { where: [place('g')] }),
      ],
    ],
    ['are of different processes', [finding('memory-leak'), finding('memory-limit', { pid: 43 })]],
    [
      'have different mechanisms',
      [finding('memory-leak'), finding('loop-blocked', { mechanism: 'file-io' })],
    ],
    [
      'are of a process that was asked to end',
      [
        finding('process-exit', { severity: 'note', mechanism: 'SIGTERM' }),
        finding('request-errors', { mechanism: 'reset' }),
      ],
    ],
    [
      'rest on a cause that nobody is sure of',
      [finding('memory-leak', { confidence: 'inconclusive' }), finding('memory-limit')],
    ],
  ])('are two where they %s', (_, findings) => {
    expect(told(...findings)).toEqual(findings.map(({ kind }) => kind));
  });

  it('with two causes in one run keep to their own', () => {
    const all = tell([
      finding('loop-blocked', { where: [place('f')] }),
      finding('loop-blocked', { where: [place('g')] }),
      finding('slow-requests', { where: [place('g')] }),
    ]);
    expect(
      all.map(({ finding: { where }, because }) => [where[0]?.function, because?.cause]),
    ).toEqual([
      ['f', undefined],
      ['g', undefined],
      ['g', 1],
    ]);
  });

  it('keep every finding', () => {
    const kinds: readonly FindingKind[] = ['wedge', 'deadlock', 'task-leak', 'memory-leak', 'race'];
    expect(tell(kinds.map((kind) => finding(kind)))).toHaveLength(kinds.length);
    expect(tell([])).toEqual([]);
  });
});

describe('a story in the report', () => {
  const [cause, effect] = [
    { ...finding('memory-leak'), id: 'F1' },
    { ...finding('memory-limit'), id: 'F2', because: { finding: 'F1', why: 'it fills it' } },
  ] as const;
  const report = buildReport(sampleView(), [cause, effect], { recording: null });

  it('is told at both ends', () => {
    const text = renderTerminal(report, { color: false, width: 100, unicode: true });
    expect(text).toMatch(
      /F1 [\s\S]*leads to +F2 memory-limit[\s\S]*F2 [\s\S]*because +of F1: it fills it/,
    );
  });

  it('stands in the JSON document', () => {
    const { findings } = JSON.parse(renderJson(report)) as { findings: unknown };
    expect(findings).toMatchObject([
      { id: 'F1', consequences: ['F2'] },
      { id: 'F2', because: { finding: 'F1', why: 'it fills it' } },
    ]);
  });

  it('survives the recording', () => {
    expect(toFinding(JSON.parse(JSON.stringify(effect)))).toEqual(effect);
    expect(toFinding({ ...effect, because: { finding: 3 } })).not.toHaveProperty('because');
  });
});
