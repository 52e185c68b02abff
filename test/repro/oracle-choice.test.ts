import { expect, it } from 'vitest';
import { oracleFor } from '../../repro/generate/oracle.ts';
import { ORACLE_KINDS } from '../../repro/parameters/parameters.ts';
import { HYPOTHESIS_MECHANISMS, hypothesisMechanism } from '../../src/core/hypothesis.ts';

it('each explanation has an oracle that there is', () => {
  for (const mechanism of HYPOTHESIS_MECHANISMS) {
    expect(ORACLE_KINDS).toContain(oracleFor(mechanism).kind);
    expect(hypothesisMechanism(mechanism)).toBe(mechanism);
  }
  expect(hypothesisMechanism('lock cycle')).toBeNull();
});

it.each(['lock-order', 'self-lock', 'pool-exhaustion', 'lost-wakeup'] as const)(
  'what stands still (%s) is shown by nothing getting on',
  (mechanism) => {
    expect(oracleFor(mechanism)).toEqual({ kind: 'no-progress' });
  },
);
