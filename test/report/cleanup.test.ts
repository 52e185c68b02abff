import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { type CleanupItem, renderCleanup, renderCleanupJson } from '../../src/report/cleanup.ts';
import { decideSurface } from '../../src/report/style.ts';

const surface = decideSurface({ env: {}, isTTY: false, columns: undefined, noColor: true });
const item = (more: Partial<CleanupItem>): CleanupItem => ({
  pid: 4312,
  outcome: 'undone',
  stage: 'leased',
  port: 9229,
  reason: null,
  remedy: null,
  ...more,
});
const ITEMS = [
  item({}),
  item({ outcome: 'nothing', port: null }),
  item({ outcome: 'gone' }),
  item({ outcome: 'in-use', reason: 'trace is pid 1' }),
  item({ outcome: 'left', reason: 'it does not \u001b[31manswer', remedy: 'kill -CONT 4312' }),
  item({ outcome: 'would-undo' }),
];

describe('trace cleanup', () => {
  it('says that nothing is left', () => {
    expect(renderCleanup([], surface)).toBe('Nothing is left: no journal of a killed trace.\n');
  });

  it('says of each process what became of it, why, and what to do', () => {
    const text = renderCleanup(ITEMS, surface);
    expect(text.match(/^pid 4312: /gm)).toHaveLength(ITEMS.length);
    expect(text).toContain('its inspector was open and is closed (as far as: leased, port 9229)');
    expect(text).toContain('is not as it was: it does not \\x1b[31manswer');
    expect(text).toContain('  → kill -CONT 4312');
    expect(text).not.toContain('\u001b');
  });

  it('names what lies in the place of a journal and is not ours', () => {
    const refused = [{ path: '/s/\u001b[31m1-1.json', reason: 'it belongs to uid 1000' }];
    const text = renderCleanup([], surface, refused).replaceAll(/\s+/g, ' ');
    expect(text).toBe(
      '/s/\\x1b[31m1-1.json is not a journal of yours, so nothing is done: it belongs to uid 1000 ',
    );
    const json = renderCleanupJson([], { toolVersion: '1.0.0', dryRun: false, refused });
    expect(JSON.parse(json)).toMatchObject({
      processes: [],
      refused: [{ path: '/s/\\x1b[31m1-1.json', reason: 'it belongs to uid 1000' }],
    });
  });

  it('prints the document that its schema describes', () => {
    const path = join(import.meta.dirname, '..', '..', 'docs', 'schema', 'cleanup.schema.json');
    const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
      JSON.parse(readFileSync(path, 'utf8')) as object,
    );
    for (const items of [[], ITEMS]) {
      const text = renderCleanupJson(items, { toolVersion: '1.0.0', dryRun: false });
      expect(validate(JSON.parse(text)), JSON.stringify(validate.errors)).toBe(true);
    }
  });
});
