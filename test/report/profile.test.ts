import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { ProfileBuilder } from '../../src/core/profile.ts';
import { profiledFunctions } from '../../src/core/profile-functions.ts';
import { renderChrome } from '../../src/report/profile/chrome.ts';
import { renderCollapsed } from '../../src/report/profile/collapsed.ts';
import { renderProfileJson } from '../../src/report/profile/json.ts';
import { renderPprof } from '../../src/report/profile/pprof.ts';
import { renderSpeedscope } from '../../src/report/profile/speedscope.ts';
import { renderProfile } from '../../src/report/profile/terminal.ts';
import { readPprof } from './pprof-reader.ts';
import { sampleProfile } from './sample-profile.ts';

const plain = { color: false, width: 80, unicode: true };

describe('functions of a profile', () => {
  it('have the time of what they called in their total, and once where they call themselves', () => {
    const builder = new ProfileBuilder();
    const thread = builder.threadOf(1, 1);
    const f = { function: 'f', file: 'a.py', line: 1 };
    const stack = builder.stack([{ ...f, line: 2 }, f, f]);
    builder.count({ thread, stack, count: 4, weight: 2 });
    const [only, ...others] = profiledFunctions(
      builder.build({ mode: 'wall', startedAt: 0, duration: 2 }),
    );
    expect(others).toEqual([]);
    expect(only).toMatchObject({
      self: 2,
      total: 2,
      selfRatio: 1,
      totalRatio: 1,
      line: 2,
      looks: 4,
    });
  });

  it('in cpu mode count the part of the time that the kernel gave their thread a core for', () => {
    const builder = new ProfileBuilder();
    const thread = builder.thread({
      pid: 1,
      tid: 1,
      name: 't',
      onCpu: 1,
      runQueueWait: 3,
      gilWait: null,
    });
    const stack = builder.stack([{ function: 'f', file: 'a.py', line: 1 }]);
    builder.count({ thread, stack, count: 400, weight: 4 });
    const times = { startedAt: 0, duration: 4 };
    expect(profiledFunctions(builder.build({ mode: 'cpu', ...times }))[0]?.self).toBe(1);
    expect(profiledFunctions(builder.build({ mode: 'wall', ...times }))[0]?.self).toBe(4);
  });
});

describe('the table', () => {
  it('begins with the verdict and names what was not read', () => {
    const text = renderProfile(sampleProfile(), plain);
    expect(text).toMatch(
      /^pid 7: 63 % of the time of its threads was in parse \(\/srv\/app\.py:41\)/,
    );
    expect(text).toMatch(/^ +750 ms +750 ms +63 % parse +wor;ker.* \/srv\/app\.py:41$/m);
    expect(text).toContain('3 could not be read soundly (moved 3)');
    expect(text).not.toContain('\u001b');
  });

  it('says that a process that did nothing waits', () => {
    const profile = new ProfileBuilder().build({ mode: 'cpu', startedAt: 0, duration: 1 });
    expect(renderProfile(sampleProfile({ profile, cpu: new Map([[7, 0]]) }), plain)).toMatch(
      /^pid 7 used 0 % of a core: it waits; --mode wall shows where/,
    );
  });

  it('says what the rate was lowered for', () => {
    const { quality } = sampleProfile();
    const lowered = { ...quality, askedRate: 1000, rate: 240, loweredFor: 0.11 };
    expect(renderProfile(sampleProfile({ quality: lowered }), plain)).toContain(
      'Looked 240 times a second in the end instead of 1000: that took 11 % of a core',
    );
  });
});

describe('the JSON document', () => {
  it('is as its schema says', () => {
    const schema = JSON.parse(readFileSync('docs/schema/profile.schema.json', 'utf8')) as object;
    const validate = new Ajv2020({ formats: { 'date-time': true } }).compile(schema);
    const document = JSON.parse(renderProfileJson(sampleProfile())) as unknown;
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    expect(document).toMatchObject({ total_s: 1.2, functions_total: 4, stacks_total: 3 });
  });
});

describe('collapsed stacks', () => {
  it('are a line each, outermost first, with the looks at the end', () => {
    expect(renderCollapsed(sampleProfile().profile).split('\n')).toEqual([
      'thread wor,ker\\x1b[31m;work (/srv/app.py:3);parse (/srv/app.py:41) 75',
      'thread wor,ker\\x1b[31m;work (/srv/app.py:3);render (/srv/app.py:9) 25',
      'thread main;wait (/usr/lib/python3.11/x.py) 20',
      '',
    ]);
  });
});

describe('speedscope', () => {
  it('has one sampled profile a thread, in the order of time, whose indices lead to frames', () => {
    const file = JSON.parse(renderSpeedscope(sampleProfile())) as {
      $schema: string;
      shared: { frames: { name: string; file?: string; line?: number }[] };
      profiles: Record<string, unknown>[];
    };
    expect(file.$schema).toBe('https://www.speedscope.app/file-format-schema.json');
    const name = (index: number): string => file.shared.frames[index]?.name ?? '?';
    const worker = file.profiles.find(({ name: whose }) => String(whose).startsWith('wor'));
    expect(worker).toMatchObject({ type: 'sampled', unit: 'seconds', startValue: 0, endValue: 1 });
    expect(
      (worker?.['samples'] as number[][] | undefined)?.map((stack) => stack.map(name)),
    ).toEqual([
      ['work', 'parse'],
      ['work', 'render'],
      ['work', 'parse'],
    ]);
    expect(worker?.['weights']).toEqual([0.5, 0.25, 0.25]);
  });
});

describe('the Chrome trace', () => {
  it('draws calls that go on as one, within what called them', () => {
    const { traceEvents } = JSON.parse(renderChrome(sampleProfile())) as {
      traceEvents: { ph: string; name: string; tid: number; ts: number; dur: number }[];
    };
    const drawn = traceEvents
      .filter(({ ph, tid }) => ph === 'X' && tid === 8)
      .map(({ name, ts, dur }) => [name, ts, dur]);
    expect(drawn.toSorted((a, b) => Number(a[1]) - Number(b[1]))).toEqual([
      ['parse', 0, 500_000],
      ['work', 0, 1_000_000],
      ['render', 500_000, 250_000],
      ['parse', 750_000, 250_000],
    ]);
  });
});

describe('pprof', () => {
  it('holds each stack with looks and nanoseconds, its functions, files, lines and threads', () => {
    const read = readPprof(renderPprof(sampleProfile()));
    expect(read.sampleTypes).toEqual(['samples/count', 'wall/nanoseconds']);
    expect(read.samples).toEqual([
      {
        stack: ['parse /srv/app.py:41', 'work /srv/app.py:3'],
        values: [75, 750_000_000],
        thread: 'wor;ker\\x1b[31m',
      },
      {
        stack: ['render /srv/app.py:9', 'work /srv/app.py:3'],
        values: [25, 250_000_000],
        thread: 'wor;ker\\x1b[31m',
      },
      { stack: ['wait /usr/lib/python3.11/x.py:0'], values: [20, 200_000_000], thread: 'main' },
    ]);
    expect(read.durationNanos).toBe(1e9);
  });
});
