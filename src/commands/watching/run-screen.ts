import { maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { decideSurface, isRewritable, type Surface } from '../../report/style.ts';
import type { Environment, TextOutput } from '../command-line/command.ts';
import type { SinkScreen } from './run-sinks.ts';

/** Without a terminal the status is a line now and then instead of one that is rewritten. */
export const PLAIN_PROGRESS_EVERY: Seconds = 10;
const CLEAR_LINE = '\r\u001b[2K';

/** What a screen has to know of any run's options. */
export interface ScreenOptions {
  readonly quiet: boolean;
  readonly noColor: boolean;
}

/** What a person sees of any run while it goes on: one status line, and what is said above it. */
export abstract class RunScreen<Options extends ScreenOptions> implements SinkScreen {
  readonly problems: string[] = [];
  recordingFailed = false;
  protected readonly options: Options;
  protected readonly environment: Environment;
  #isLineOpen = false;

  constructor(options: Options, environment: Environment) {
    this.options = options;
    this.environment = environment;
  }

  /** How it goes on; nothing that the report has to hold. */
  note(text: string): void {
    if (this.options.quiet) return;
    this.endProgress();
    this.say(text);
  }

  /** Something went wrong beside the observing; said at once, and again in the report. */
  problem(text: string): void {
    const safe = maskText(text);
    this.problems.push(safe);
    this.note(printable(safe, 400));
  }

  /** The recording on disk ends early; the report comes from memory. */
  recordingFailure(text: string): void {
    this.recordingFailed = true;
    this.problem(text);
  }

  /** Takes the status line away. */
  endProgress(): void {
    if (!this.#isLineOpen) return;
    this.#isLineOpen = false;
    this.environment.stderr.write(CLEAR_LINE);
  }

  /** How text for this output may look. */
  surface(output: TextOutput): Surface {
    return decideSurface({
      env: this.environment.env,
      isTTY: output.isTTY,
      columns: output.columns,
      noColor: this.options.noColor,
    });
  }

  /** The status as it is now: on a terminal in the place of the one before. */
  protected showProgress(line: string): void {
    this.#isLineOpen = this.rewrites;
    this.environment.stderr.write(this.rewrites ? `${CLEAR_LINE}${line}` : `${line}\n`);
  }

  /** Whether the status is one line that is rewritten, and not a line now and then. */
  protected get rewrites(): boolean {
    const { stderr, env } = this.environment;
    return isRewritable(stderr, env);
  }

  /** As it is, whether or not a status line is there. */
  protected say(text: string): void {
    this.environment.stderr.write(`trace: ${text}\n`);
  }
}
