import { nodes } from '../environments.ts';
import { names, testRaces } from './node-races.ts';

const [node] = await nodes();
testRaces(
  node?.path ?? process.execPath,
  names.filter((name) => name !== 'lost-update.mjs'),
);
