#!/usr/bin/env node
import { main } from './cli.ts';
import { processEnvironment } from './commands/command-line/environment.ts';
import { prepareProcess } from './commands/command-line/own-process.ts';

prepareProcess();
// No process.exit: what is still being written is written, and the code is set when `main` is done.
process.exitCode = await main(process.argv.slice(2), processEnvironment());
