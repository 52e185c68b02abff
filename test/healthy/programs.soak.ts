import { it } from 'vitest';
import { soakPrograms } from './soak.ts';

/* `npm run soak -- programs`: four hours, one program at a time on a machine that does nothing else. */

it('healthy programs', { timeout: 43_200_000 }, () =>
  soakPrograms({ name: 'programs', title: 'Healthy programs', beside: 1, burners: 0 }),
);
