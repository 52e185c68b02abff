import { main } from '../../dist/src/cli.js';
import { processEnvironment } from '../../dist/src/commands/command-line/environment.js';
import { prepareProcess } from '../../dist/src/commands/command-line/own-process.js';
import { EXIT } from '../../dist/src/core/exit-code.js';

// What src/main.ts is, for a script, which has no top-level await.

prepareProcess();
// Stays when the loop runs empty before `main` is done.
process.exitCode = EXIT.internal;
void main(process.argv.slice(2), processEnvironment()).then((code) => {
  process.exitCode = code;
});
