import { it } from 'vitest';
import { installLoadPeers } from './install.ts';

it('installed', async () => {
  console.log(await installLoadPeers());
});
