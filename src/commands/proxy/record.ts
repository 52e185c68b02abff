import { resolve } from 'node:path';
import { newTraceId } from '../../core/ids.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Clock, Seconds } from '../../core/types.ts';
import { defaultRecordingDirectory } from '../../recording/directory.ts';
import { RECORDING_SCHEMA_VERSION } from '../../recording/format.ts';
import { openRecordingWriter, type RecordingSink } from '../../recording/writer.ts';
import type { Exchange } from '../../proxy/exchange.ts';
import { contentOf, spanOf } from '../../proxy/observations.ts';
import type { Environment } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import type { ProxyCommandOptions } from './options.ts';

/** What passed through a proxy, in a recording and in a summary. */
export class ProxyRecord {
  count = 0;
  readonly #sink: RecordingSink;
  readonly #clock: Clock;
  readonly #captures: boolean;
  readonly #start: Seconds;
  readonly #failures = new Map<string, number>();
  #dropped = 0;

  /** Creates the folder. Rejects with a TraceError where that is not possible. */
  static async open(
    { target, captures, output }: ProxyCommandOptions,
    { environment, clock }: { readonly environment: Environment; readonly clock: Clock },
  ): Promise<ProxyRecord> {
    const { cwd, env, stderr } = environment;
    const now = clock.now();
    const sink = await openRecordingWriter({
      directory:
        output === null
          ? defaultRecordingDirectory({ verb: 'proxy', target: target.host, now, cwd, env })
          : resolve(cwd, output),
      start: {
        schemaVersion: RECORDING_SCHEMA_VERSION,
        toolVersion: toolVersion(),
        command: 'proxy',
        startedAt: now,
        traceId: newTraceId(),
        targets: [],
        collectors: [],
        settings: { url: maskText(target.href), capture_content: captures },
      },
      env,
      ifExists: output === null ? 'suffix' : 'fail',
      onFailure: (error) => stderr.write(`trace: ${printable(error.message)}\n`),
    });
    return new ProxyRecord(sink, { clock, captures, start: now });
  }

  private constructor(
    sink: RecordingSink,
    {
      clock,
      captures,
      start,
    }: { readonly clock: Clock; readonly captures: boolean; readonly start: Seconds },
  ) {
    this.#start = start;
    this.#sink = sink;
    this.#clock = clock;
    this.#captures = captures;
  }

  get directory(): string {
    return this.#sink.directory;
  }

  add(exchange: Exchange): void {
    this.count++;
    this.#sink.write(spanOf(exchange, { start: this.#start, captures: this.#captures }));
    if (this.#captures) this.#sink.write(contentOf(exchange));
    const { failure, status } = exchange;
    const why = failure ?? (status !== null && status >= 400 ? `status ${status}` : null);
    if (why !== null) this.#failures.set(why, (this.#failures.get(why) ?? 0) + 1);
  }

  /** Writes the end and closes. */
  async end(interrupted: boolean): Promise<void> {
    const { dropped } = await this.#sink.end(
      {
        endedAt: this.#clock.now(),
        interrupted,
        reason: interrupted ? 'interrupted' : 'duration',
        ownCpuRatio: 0,
        startupCpu: 0,
        targetPaused: 0,
        samples: this.count,
        late: 0,
        dropped: this.#sink.dropped,
        summary: { 'tracewright.proxy.request.count': this.count },
      },
      [],
    );
    this.#dropped = dropped;
  }

  /** How many passed and what went wrong with how many; ends with a line feed. */
  summary(): string {
    const failures = [...this.#failures].map(([why, count]) => `  ${count} × ${printable(why)}\n`);
    const dropped = this.#dropped === 0 ? '' : `  ${this.#dropped} could not be written down\n`;
    const requests = this.count === 1 ? '1 request' : `${this.count} requests`;
    return `${requests} passed${failures.length === 0 ? '' : ', of these'}\n${failures.join('')}${dropped}Recording: ${printable(this.directory, 1000)}\n`;
  }
}
