import { describe, expect, it } from 'vitest';
import { type RightsFacts, rightsChecks } from '../../../src/commands/doctor/rights.ts';
import { INITIAL_USER_NAMESPACE } from '../../../src/platform/permission-facts.ts';

/*
 * The judgement from facts alone. Most test machines have no Yama, or do not let it be set: here its scopes are given, and
 * test/e2e/doctor.test.ts sets the real one where it can.
 */

const SYS_PTRACE = 1n << 19n;
const ALL = (1n << 41n) - 1n;

function checks(change: {
  uid?: number;
  capabilities?: bigint;
  userNamespace?: string;
  yamaScope?: number | null;
  hidePid?: string | null;
  inContainer?: boolean;
  seccomp?: number;
}): Record<string, { status: string; detail: string; remedy: string | null }> {
  const { uid = 1001, capabilities = 0n, userNamespace = INITIAL_USER_NAMESPACE } = change;
  const ids = [uid, uid, uid, uid];
  const facts: RightsFacts = {
    access: {
      own: {
        pid: 10,
        uids: ids,
        gids: ids,
        effectiveCapabilities: capabilities,
        permittedCapabilities: capabilities,
        userNamespace,
      },
      yamaScope: change.yamaScope ?? null,
      hidePid: change.hidePid ?? null,
      inContainer: change.inContainer ?? false,
    },
    seccomp: change.seccomp ?? 0,
  };
  return Object.fromEntries(rightsChecks(facts, ['doctor']).map((one) => [one.name, one]));
}

describe('capabilities', () => {
  it('are ok with CAP_SYS_PTRACE, and named', () => {
    expect(checks({ capabilities: SYS_PTRACE | 1n })['capabilities']).toEqual({
      name: 'capabilities',
      status: 'ok',
      detail: 'CAP_SYS_PTRACE is held; effective: CHOWN, SYS_PTRACE',
      remedy: null,
    });
    expect(checks({ capabilities: ALL })['capabilities']?.detail).toMatch(/effective: all$/);
    expect(checks({ capabilities: ALL & ~(1n << 24n) })['capabilities']?.detail).toMatch(
      /all but SYS_RESOURCE$/,
    );
  });

  it('are limited without it, and the remedy runs trace by absolute paths', () => {
    const { capabilities } = checks({});
    expect(capabilities).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('effective: none'),
    });
    expect(capabilities?.remedy).toMatch(/^sudo \/\S*node\S* \/\S+ doctor {2}# this time only$/);
  });

  it('are limited when held in a nested user namespace: the host is the remedy', () => {
    const { capabilities } = checks({ uid: 0, capabilities: ALL, userNamespace: 'user:[1]' });
    expect(capabilities).toMatchObject({
      status: 'limited',
      remedy: expect.stringContaining('outside the container'),
    });
  });

  it('are asked of the container engine inside one', () => {
    const { capabilities } = checks({ uid: 0, inContainer: true });
    expect(capabilities?.remedy).toMatch(/--cap-add=SYS_PTRACE/);
    expect(capabilities?.remedy).not.toContain('sudo');
  });
});

describe('Yama, by the rule table', () => {
  it.each([
    [null, 0n, 'ok', null],
    [0, 0n, 'ok', null],
    [1, 0n, 'limited', 'sudo sysctl kernel.yama.ptrace_scope=0'],
    [1, SYS_PTRACE, 'ok', null],
    [2, 0n, 'limited', 'sudo '],
    [2, SYS_PTRACE, 'ok', null],
    [3, 0n, 'missing', 'sudo reboot'],
    [3, SYS_PTRACE, 'missing', 'sudo reboot'],
  ] as const)('scope %s with capabilities %s is %s', (yamaScope, capabilities, status, remedy) => {
    const yama = checks({ yamaScope, capabilities })['yama'];
    expect(yama?.status).toBe(status);
    if (remedy === null) expect(yama?.remedy).toBeNull();
    else expect(yama?.remedy).toContain(remedy);
  });
});

describe('what else is in the way', () => {
  it('is a /proc that hides others, unless the capability is held', () => {
    expect(checks({ hidePid: 'invisible' })['hidepid']).toMatchObject({
      status: 'limited',
      remedy: expect.stringContaining('remount,hidepid=0'),
    });
    expect(checks({ hidePid: '2', capabilities: SYS_PTRACE })['hidepid']?.status).toBe('ok');
  });

  it('is a seccomp filter', () => {
    expect(checks({})['seccomp']?.status).toBe('ok');
    expect(checks({ seccomp: 2 })['seccomp']).toMatchObject({
      status: 'limited',
      remedy: expect.stringContaining('sandbox'),
    });
    expect(checks({ seccomp: 2, inContainer: true })['seccomp']?.remedy).toContain('seccomp=');
  });
});
