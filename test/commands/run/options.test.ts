import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../../src/commands/command-line/command-line.ts';
import { isRefused, parseFailOn } from '../../../src/commands/run/fail-on.ts';
import { parseRunOptions, runUsage } from '../../../src/commands/run/options.ts';
import type { Finding } from '../../../src/core/types.ts';

function options(line: string, defaults = {}) {
  const { values, positionals, command } = parseCommandLine(runUsage, line.split(' '));
  return parseRunOptions(values, { positionals, command }, defaults);
}

describe('trace run', () => {
  it('takes what stands behind -- as the command, whatever it looks like', () => {
    const { command, watch } = options('-d 5 -- python -d 7 app.py --json -- --help');
    expect(command).toEqual(['python', '-d', '7', 'app.py', '--json', '--', '--help']);
    expect(watch).toMatchObject({ duration: 5, format: 'text' });
  });

  it('watches to the end, with what the command starts, and draws nothing on its terminal', () => {
    expect(options('-- x').watch).toMatchObject({
      duration: null,
      subprocesses: true,
      progress: false,
      quiet: false,
    });
    expect(options('--no-subprocesses -- x').watch.subprocesses).toBe(false);
  });

  it('leaves a configured duration to attach, and takes the rest of a configuration', () => {
    const { watch } = options('-- x', { duration: 3, lagThreshold: 0.02 });
    expect(watch).toMatchObject({ duration: null, lagThreshold: 0.02 });
  });

  it('writes nothing beside a document on stderr, and says what it says beside one in a file', () => {
    expect(options('--json -- x')).toMatchObject({ report: null, watch: { quiet: true } });
    expect(options('--json --report r.json -- x')).toMatchObject({
      report: { path: 'r.json', overwrite: false },
      watch: { quiet: false, format: 'json' },
    });
  });

  it('may replace the file of a report also where no recording is kept', () => {
    const { report, watch } = options('--no-recording --force --report r -- x');
    expect(report).toEqual({ path: 'r', overwrite: true });
    expect(watch.recording).toMatchObject({ enabled: false, overwrite: false });
    expect(() => options('--no-recording --force -- x')).toThrow('contradict');
  });

  it.each([
    ['python app.py --port 8000', 'the command stands behind --, and there is none'],
    ['python -- app.py', "'python' stands before --"],
    ['-d 5 --', 'there is no command behind --'],
    ['--ready-url localhost -- x', '--ready-url takes a URL'],
    ['--fail-on error -- x', '--fail-on takes note, warning, critical or a kind'],
    ['--match x -- y', "unknown option '--match'"],
  ])('refuses %s', (line, message) => {
    expect(() => options(line)).toThrow(message);
  });
});

describe('--fail-on', () => {
  const finding = (over: Omit<Partial<Finding>, 'mechanism' | 'facts'>): Finding => ({
    id: 'F1',
    code: 'TRC101',
    kind: 'loop-blocked',
    mechanism: null,
    severity: 'warning',
    confidence: 'confirmed',
    pid: 7,
    summary: '',
    where: [],
    evidence: [{ kind: 'turns', summary: '' }],
    measure: {},
    remedy: null,
    ...over,
  });
  const refuses = (words: string, over: Partial<Finding>, hasFailed = false): boolean =>
    isRefused([finding(over)], { failOn: parseFailOn([words]), hasFailed });

  it.each([
    ['warning', {}, true],
    ['warning', { severity: 'critical' }, true],
    ['warning', { severity: 'note' }, false],
    ['warning', { confidence: 'inconclusive' }, false],
    ['critical', {}, false],
    ['critical', { severity: 'critical' }, true],
    ['note', { severity: 'note', confidence: 'inconclusive' }, true],
    ['loop-blocked', {}, true],
    ['loop-blocked', { severity: 'note' }, false],
    ['memory-leak', {}, false],
    ['memory-leak, loop-blocked', {}, true],
    ['warning', { kind: 'process-exit' }, true],
  ] as const)('%s, with %o: %s', (words, over, expected) => {
    expect(refuses(words, over)).toBe(expected);
  });

  it('leaves the exit code of a command that failed, unless its end is what was asked for', () => {
    expect(refuses('note,warning', { kind: 'process-exit' }, true)).toBe(false);
    expect(refuses('process-exit', { kind: 'process-exit' }, true)).toBe(true);
    expect(refuses('warning', {}, true)).toBe(true);
  });

  it('is not refused by nothing', () => {
    const rules = (words: readonly string[]) => ({ failOn: parseFailOn(words), hasFailed: false });
    expect(isRefused([], rules(['note']))).toBe(false);
    expect(isRefused([finding({})], rules([]))).toBe(false);
  });
});
