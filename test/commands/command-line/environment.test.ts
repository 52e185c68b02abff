import { expect, it } from 'vitest';
import { processEnvironment } from '../../../src/commands/command-line/environment.ts';

it('whoever listens to the next signal is there before the first lets go: none has its default action in between', () => {
  const heard: string[] = [];
  const least: number[] = [];
  const own = process.listenerCount('SIGTERM');
  const count = (): void => void least.push(process.listenerCount('SIGTERM') - own);
  process.on('removeListener', count);
  const environment = processEnvironment();
  let release = (): void => {};
  environment.onStop((first) => {
    heard.push(`first ${first}`);
    release = environment.onStop((second) => heard.push(`second ${second}`));
  });
  process.emit('SIGTERM');
  process.emit('SIGINT');
  process.removeListener('removeListener', count);
  release();
  expect(heard).toEqual(['first SIGTERM', 'second SIGINT']);
  // Letting go of SIGINT comes first, then SIGTERM: one of them is still heard each time until the second has come.
  expect(least.slice(0, 3)).toEqual([2, 1, 1]);
  expect(process.listenerCount('SIGTERM')).toBe(own);
});
