import { readFileSync, writeFileSync } from 'node:fs';

/** How many processes and threads the machine has started since boot. */
const started = () => Number(/^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);

/** A reporter for tests.soak.ts, of files that run one at a time: what was started meanwhile, into TRACEWRIGHT_STARTS. */
export default class Starts {
  #before = started();
  #byFile = {};

  onTestModuleStart() {
    this.#before = started();
  }

  onTestModuleEnd({ moduleId }) {
    this.#byFile[moduleId] = started() - this.#before;
  }

  onTestRunEnd() {
    writeFileSync(process.env.TRACEWRIGHT_STARTS, JSON.stringify(this.#byFile));
  }
}
