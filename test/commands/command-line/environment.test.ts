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
  const letGo = environment.onStop((first) => {
    heard.push(`first ${first}`);
    release = environment.onStop((second) => heard.push(`second ${second}`));
  });
  process.emit('SIGTERM');
  process.emit('SIGINT');
  process.removeListener('removeListener', count);
  release();
  letGo();
  expect(heard).toEqual(['first SIGTERM', 'second SIGINT']);
  // One that listens, one that only keeps the second from ending trace; and until then the first,
  // too.
  expect(least.slice(0, 3)).toEqual([3, 2, 2]);
  expect(process.listenerCount('SIGTERM')).toBe(own);
});

it.each([
  ['the second signal ends nothing, the third would', 2],
  ['who lets go takes nothing more', 1],
])('%s', (_, signals) => {
  const own = process.listenerCount('SIGINT');
  const heard: string[] = [];
  const letGo = processEnvironment().onStop((signal) => heard.push(signal));
  expect(process.listenerCount('SIGINT') - own).toBe(1);
  process.emit('SIGINT');
  // Node would end the process at a signal that nobody hears.
  expect(process.listenerCount('SIGINT') - own).toBe(1);
  if (signals === 2) process.emit('SIGINT');
  else letGo();
  expect(process.listenerCount('SIGINT')).toBe(own);
  expect(heard).toEqual(['SIGINT']);
  letGo();
});
