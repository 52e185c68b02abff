import { getAsset, getRawAsset } from 'node:sea';
import { compileFunction } from 'node:vm';
import { OWN_MODULE } from '../../dist/src/platform/standalone.js';

/**
 * What Node starts in the executable: runs the script of `trace`, or of another module that a trace of this kind asks for (`moduleCommand`).
 * Node could do that itself, and keep the compiled code too; but where a V8 flag in NODE_OPTIONS makes that useless it says so on standard
 * error. Here it is then compiled again, and no more.
 */

let script = '/main.js';
// What is left of the command line stands where it would be for a module that Node runs.
if (process.argv[2] === OWN_MODULE) [, script = ''] = process.argv.splice(2, 2);
const cachedData = Buffer.from(getRawAsset(`${script}.cache`));
compileFunction(getAsset(script, 'utf8'), ['require'], { filename: script, cachedData })(require);
