import type { Seconds } from '../../../src/core/types.ts';
import { KeptFile } from '../../../src/platform/proc-kept-file.ts';
import { schedstatIn } from '../../../src/platform/proc-parse.ts';

/** Whether one thread is on a core, and what the kernel has counted for it: two kept files, 2 µs each. */

/** `unchanged`: asleep, and not scheduled since it was found asleep before. */
export type Activity = 'running' | 'asleep' | 'unchanged' | 'gone';

/** First letters: of `running` in a `syscall` file, of the state in a `stat` file. */
const RUNNING = 0x72;
const STATE_RUNNING = 0x52;
const CLOSING_PARENTHESIS = 0x29;

export class ThreadActivity {
  /** What the kernel has counted since the thread began; null where it does not count. */
  onCpu: Seconds | null = null;
  runQueueWait: Seconds | null = null;
  readonly #schedstat: KeptFile;
  readonly #syscall: KeptFile | null;
  readonly #stat: KeptFile | null;
  readonly #numbers = new Float64Array(3);
  #scheduled = 0;
  #wasAsleep = false;

  /** Throws the errno error when the thread is not there. */
  constructor(pid: number, tid: number) {
    const folder = `/proc/${pid}/task/${tid}`;
    this.#schedstat = new KeptFile(`${folder}/schedstat`, 128);
    this.#syscall = KeptFile.open(`${folder}/syscall`, 256);
    this.#stat = this.#syscall === null ? KeptFile.open(`${folder}/stat`, 512) : null;
  }

  /** The count is read before the state: the other way round it could wake, run and sleep again under the same count. */
  look(): Activity {
    if (!this.refresh()) return 'gone';
    const scheduled = this.#numbers[2] ?? 0;
    if (this.#wasAsleep && scheduled > 0 && scheduled === this.#scheduled) return 'unchanged';
    this.#scheduled = scheduled;
    const runs = this.#isRunning();
    this.#wasAsleep = !runs;
    return runs ? 'running' : 'asleep';
  }

  /** Reads the counts anew; false when the thread is gone. */
  refresh(): boolean {
    const length = this.#schedstat.read();
    if (length < 0) return false;
    this.#numbers.fill(0);
    if (schedstatIn(this.#schedstat.buffer, length, this.#numbers)) {
      this.onCpu = (this.#numbers[0] ?? 0) / 1e9;
      this.runQueueWait = (this.#numbers[1] ?? 0) / 1e9;
    }
    return true;
  }

  close(): void {
    this.#schedstat.close();
    this.#syscall?.close();
    this.#stat?.close();
  }

  /** On a core or ready for one: the kernel does not tell the two apart at a moment. */
  #isRunning(): boolean {
    const file = this.#syscall ?? this.#stat;
    const length = file?.read() ?? -1;
    if (file === null || length <= 0) return false;
    if (file === this.#syscall) return file.buffer[0] === RUNNING;
    const end = file.buffer.subarray(0, length).lastIndexOf(CLOSING_PARENTHESIS);
    return file.buffer[end + 2] === STATE_RUNNING;
  }
}
