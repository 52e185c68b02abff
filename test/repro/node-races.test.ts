import { expect, it } from 'vitest';
import { nodes } from '../environments.ts';
import { names, testRaces } from './node-races.ts';

it('is one of a dozen kinds at least', () => {
  expect(names.length).toBeGreaterThanOrEqual(12);
});

const [node] = await nodes();
testRaces(node?.path ?? process.execPath, ['lost-update.mjs']);
