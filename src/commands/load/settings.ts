import type { Finding, RecordingView, Seconds } from '../../core/types.ts';
import type { LoadResult } from '../../core/load-types.ts';
import type { GenAiProfile } from '../../core/semconv-genai.ts';
import type { EngineBatch, EngineEvents } from '../../load/contracts.ts';
import type { AttachOptions } from '../attach/options.ts';
import type { StopSignal } from '../command-line/command.ts';

/** How the command line of `trace load` meets the run of its plan: what is kept, sent and watched beside the requests. */

/** What a run does besides sending: nothing in here changes a request. */
export interface LoadSettings {
  readonly recording: AttachOptions['recording'];
  readonly otlp: AttachOptions['otlp'];
  readonly genaiProfile: GenAiProfile;
  /** Process that is watched beside the run, on the same clock and into the same recording; null for none. */
  readonly attach: { readonly pid: number } | null;
  /** Read the GPUs too; null: where a process is watched that uses one. */
  readonly gpu: AttachOptions['gpu'];
  /** The server's Prometheus page; null for none. */
  readonly metricsUrl: string | null;
  /** From one reading of that page to the next. */
  readonly metricsInterval: Seconds;
  /** File that gets one JSON line for each request, as it ends; null for none. A file that is there needs `--force`. */
  readonly requestLog: { readonly path: string; readonly overwrite: boolean } | null;
}

/** What a run tells the person in front of it. Nothing here blocks or throws. */
export interface LoadRunScreen {
  /** Whatever went wrong beside the requests; said at once, and again in the report. */
  readonly problems: readonly string[];
  recordingFailed: boolean;
  /** For the progress line; called for each batch of each worker. */
  batch(batch: EngineBatch): void;
  stage(event: Parameters<EngineEvents['onStage']>[0]): void;
  /** How it goes on; nothing that the report has to hold. */
  note(text: string): void;
  problem(text: string): void;
  /** The recording on disk ends early; the report comes from memory. */
  recordingFailure(text: string): void;
  /** Takes the progress line away. */
  endProgress(): void;
}

/** What a run gave: the result, and the recording in which it can be read again. */
export interface LoadRun {
  readonly result: LoadResult;
  readonly view: RecordingView;
  readonly findings: readonly Finding[];
  /** Folder of the recording; null when none was kept. */
  readonly recording: string | null;
  /** Where the exported trace can be looked at. */
  readonly traceUrl: string | null;
  /** What stopped it early. */
  readonly signal: StopSignal | null;
}
