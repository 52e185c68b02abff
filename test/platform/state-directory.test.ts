import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requireStateDirectory, stateDirectory } from '../../src/platform/state-directory.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tracewright-state-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const below = (home: string) => `${home}/.local/state/tracewright`;

describe('the state folder', () => {
  it('is below XDG_STATE_HOME where that is absolute, else below HOME', () => {
    expect(stateDirectory({ XDG_STATE_HOME: '/s', HOME: root })).toBe('/s/tracewright');
    expect(stateDirectory({ XDG_STATE_HOME: 's', HOME: root })).toBe(below(root));
  });

  it.each([{}, { HOME: '' }, { HOME: 'relative' }])(
    'is below the home that the system has for the user with %j, never below a shared folder',
    (env) => {
      expect(stateDirectory(env)).toBe(below(userInfo().homedir));
      expect(requireStateDirectory(env)).not.toContain(tmpdir());
    },
  );

  it.runIf(process.getuid?.() === 0)("is not below somebody else's HOME", () => {
    const home = join(root, 'home');
    mkdirSync(home);
    expect(stateDirectory({ HOME: home })).toBe(below(home));
    chownSync(home, 12_345, 12_345);
    expect(stateDirectory({ HOME: home })).toBe(below(userInfo().homedir));
  });

  it('is none for a user without a home, and that is said', () => {
    expect(stateDirectory({}, () => null)).toBeNull();
    expect(() => requireStateDirectory({}, () => null)).toThrow('has no home');
    expect(requireStateDirectory({ HOME: root }, () => null)).toBe(below(root));
  });
});
