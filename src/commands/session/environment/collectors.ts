import type { Check } from '../../../core/check.ts';
import { machineChecks } from '../../doctor/machine.ts';
import type { EnvironmentFact, Surroundings } from './fact.ts';

/** Which of the things that collectors rely on are there, as `trace doctor` judges it; that says the rest. */
export async function collectorFacts({ env }: Surroundings): Promise<readonly EnvironmentFact[]> {
  const checks = machineChecks(env, ['doctor']);
  const named = (status: Check['status']): string | null => {
    const names = checks.filter((check) => check.status === status).map(({ name }) => name);
    return names.length === 0 ? null : `${status}: ${names.join(', ')}`;
  };
  const value = (['ok', 'limited', 'missing'] as const).map(named).filter((one) => one !== null);
  return [{ name: 'collectors', value: value.join('; '), reason: null }];
}
