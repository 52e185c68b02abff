import { createWriteStream, openSync, type WriteStream } from 'node:fs';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { RequestRecord } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import type { Bytes, Seconds } from '../../core/types.ts';
import { openOutputSync } from '../../platform/output-file.ts';
import { requestLine, type RequestLineContext } from '../../report/request-line.ts';

/** `--request-log`: each request of a run as one line of JSON, as it ends. */

/** Lines that wait for a slow disk; what comes on top is dropped and counted. 3,000 requests a second are 2 MB. */
const QUEUE_LIMIT: Bytes = 32 * 1024 * 1024;
/** Lines are gathered up to this size, or for so long. */
const PIECE: Bytes = 64 * 1024;
const GATHER: Seconds = 0.2;
/** A request log is as private as a recording. */
const FILE_MODE = 0o600;

export class RequestLog {
  readonly #stream: WriteStream;
  readonly #context: RequestLineContext;
  readonly #problem: (text: string) => void;
  #dropped = 0;
  #failed = false;
  #lines: string[] = [];
  #gathered: Bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  /** Opens the file. Throws a TraceError when it is there already and may not be replaced, or cannot be written. */
  static async open(
    file: { readonly path: string; readonly overwrite: boolean },
    options: { readonly context: RequestLineContext; readonly problem: (text: string) => void },
  ): Promise<RequestLog> {
    try {
      const fd = file.overwrite
        ? openOutputSync(file.path, FILE_MODE)
        : openSync(file.path, 'wx', FILE_MODE);
      return new RequestLog(createWriteStream(file.path, { fd }), options);
    } catch (cause) {
      const exists = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
      const why = exists ? 'it is there already' : String((cause as Error).message);
      throw new TraceError(
        'ERR_REQUEST_LOG',
        `cannot write the request log ${printable(file.path)}: ${printable(why)}`,
        {
          exitCode: EXIT.usage,
          remedy: exists ? 'Name another file, or replace it with --force.' : 'Name another file.',
          cause,
        },
      );
    }
  }

  private constructor(
    stream: WriteStream,
    options: { readonly context: RequestLineContext; readonly problem: (text: string) => void },
  ) {
    this.#stream = stream;
    this.#context = options.context;
    this.#problem = options.problem;
    stream.on('error', (error) => {
      if (!this.#failed) this.#problem(`the request log stopped: ${printable(error.message)}`);
      this.#failed = true;
    });
  }

  /** Never blocks and never throws. */
  write(record: RequestRecord): void {
    if (this.#failed || this.#stream.writableLength > QUEUE_LIMIT) {
      this.#dropped++;
      return;
    }
    const line = `${requestLine(record, this.#context)}\n`;
    this.#lines.push(line);
    this.#gathered += line.length;
    if (this.#gathered >= PIECE) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), GATHER * 1e3);
  }

  /** Resolves when everything is on disk, or was given up, which is said. */
  async close(): Promise<void> {
    this.#flush();
    if (!this.#failed) {
      await new Promise<void>((resolve) => {
        this.#stream.once('error', () => resolve());
        this.#stream.end(resolve);
      });
    }
    if (this.#dropped > 0) this.#problem(`${this.#dropped} requests are not in the request log`);
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#lines.length > 0 && !this.#failed) this.#stream.write(this.#lines.join(''));
    this.#lines = [];
    this.#gathered = 0;
  }
}
