import { mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { recordedProfile } from '../../../src/commands/profile/recorded.ts';
import { parseProfileOptions } from '../../../src/commands/profile/options.ts';
import { renderCollapsed } from '../../../src/report/profile/collapsed.ts';
import { renderPprof } from '../../../src/report/profile/pprof.ts';
import { renderProfile } from '../../../src/report/profile/terminal.ts';

/* The recording of docs/recording-format.md: a blocked turn of 78 ms with one stack; and the same without its span. */

const page = readFileSync(join(import.meta.dirname, '../../../docs/recording-format.md'), 'utf8');
const [, example = ''] = /```jsonl\n([\s\S]*?)```/.exec(page) ?? [];
const folder = mkdtempSync(join(tmpdir(), 'tracewright-recorded-'));
const withShares = example.replace(
  '{"key":"tracewright.stack.id","value"',
  '{"key":"tracewright.block.stack_shares","value":{"arrayValue":{"values":[{"stringValue":"52e43367fc93dd95=0.03"}]}}},{"key":"tracewright.stack.id","value"',
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function recording(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const blocked = { mode: 'blocked', top: 15 } as const;

describe('a profile of a recording', () => {
  it('has the whole time of each blocked turn, in the stacks that it was seen in', async () => {
    const path = recording('telemetry.jsonl', withShares);
    const report = await recordedProfile(path, blocked, folder);
    expect(report.profile.entries).toEqual([
      { thread: 0, stack: 0, count: 78, weight: expect.closeTo(0.078, 4) as number },
    ]);
    expect(report.profile.runs[0]?.from).toBeCloseTo(0.107, 3);
    expect(renderCollapsed(report.profile)).toBe(
      'thread main;Handle._run (/usr/lib/python3.11/asyncio/events.py:80);tick (/srv/server.py:6) 78\n',
    );
    const text = renderProfile(report, { color: false, width: 80, unicode: true });
    expect(text).toContain('was in tick\n(/srv/server.py:6)');
    expect(text).toContain('The stacks of 1 blocked turn');
    expect(renderPprof(report).length).toBeGreaterThan(100);
  });

  it('says so where turns have no stack, or there were none', async () => {
    const bare = await recordedProfile(recording('bare.jsonl', example), blocked, folder);
    expect(bare.profile.entries).toEqual([]);
    expect(bare.notes.join(' ')).toContain('1 of 1 blocked turns have no stack');
    const lines = example.split('\n').filter((line) => !line.includes('eventloop.blocked'));
    const calm = await recordedProfile(recording('calm.jsonl', lines.join('\n')), blocked, folder);
    expect(renderProfile(calm, { color: false, width: 80, unicode: true })).toContain(
      'no turn of its event loop lasted long enough',
    );
  });

  it('is of no other mode, and is asked for by a path', async () => {
    const target = (word: string) => parseProfileOptions({}, [word]);
    expect(target('./r')).toMatchObject({
      target: { by: 'recording', path: './r' },
      mode: 'blocked',
    });
    expect(target('20261121T233634Z-attach-7').target.by).toBe('recording');
    expect(target('7')).toMatchObject({ target: { by: 'pid', pid: 7 }, mode: 'cpu' });
    expect(() => target('seven')).toThrow(/process id/);
    await expect(recordedProfile('./r', { mode: 'cpu', top: 1 }, folder)).rejects.toThrow(
      /blocked turns/,
    );
  });
});
