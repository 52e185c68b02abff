import { createInterface } from 'node:readline';
import { lookInto } from './limited-look.ts';
import type { KnownPrograms } from './runtime.ts';

/**
 * The process that looks into others for `LimitedLook`: a pid a line comes in, what was seen goes
 * out, in base64. Ends with its input.
 */

const known: KnownPrograms = new Map();

process.stdout.on('error', () => {});
process.stdout.write('ready\n');
createInterface({ input: process.stdin }).on('line', (pid) => {
  // Text of others may hold what a reader of lines takes for the end of one.
  const seen = Buffer.from(JSON.stringify(lookInto(Number(pid), known)));
  process.stdout.write(`${seen.toString('base64')}\n`);
});
