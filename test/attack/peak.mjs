// Loaded into trace by NODE_OPTIONS: writes the largest resident memory of the process, in KiB.
import { appendFileSync } from 'node:fs';

const file = process.env.ATTACK_PEAK_FILE;
process.on('exit', () => appendFileSync(file, `${process.resourceUsage().maxRSS}\n`));
