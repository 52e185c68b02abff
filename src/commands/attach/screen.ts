import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { ATTR, SPAN } from '../../core/semconv.ts';
import { printable } from '../../core/text.ts';
import type { Observation, Seconds, Sink } from '../../core/types.ts';
import { hiddenProcesses } from '../../platform/permission-remedies.ts';
import { renderCandidates, renderCandidatesJson } from '../../report/candidates.ts';
import { renderJson } from '../../report/json.ts';
import { type ProgressState, renderProgress } from '../../report/progress.ts';
import type { Report } from '../../report/report.ts';
import { renderTerminal } from '../../report/terminal.ts';
import { findingsText } from '../watching/findings-text.ts';
import type { AttachOptions } from './options.ts';
import type { AttachPlan } from './probe.ts';
import type { ProcessTreeWatch } from './tree.ts';
import { PLAIN_PROGRESS_EVERY, RunScreen } from '../watching/run-screen.ts';

/** What a person sees of a run: what cannot be seen, how it goes on, the report. A sink, so that it can count. */
export class AttachScreen extends RunScreen<AttachOptions> implements Sink {
  readonly name = 'screen';
  #state: ProgressState | null = null;
  #lastPlain: Seconds = 0;
  /** Until when gaps are in the state. */
  #gapsTo: Seconds = 0;

  /** Bare `trace attach`. */
  async showCandidates(): Promise<ExitCode> {
    const { listCandidates } = await import('../../platform/target-candidates.ts');
    const candidates = await listCandidates();
    const { stdout } = this.environment;
    stdout.write(
      this.options.format === 'json'
        ? renderCandidatesJson(candidates)
        : renderCandidates(candidates, this.surface(stdout)),
    );
    const hidden = hiddenProcesses();
    if (hidden !== null) this.say(hidden);
    return EXIT.ok;
  }

  /** Says first what will not be seen, and why. */
  announce(plan: AttachPlan, tree: ProcessTreeWatch): void {
    const { target } = plan.found;
    this.#state = {
      pid: target.pid,
      title: plan.found.title,
      elapsed: 0,
      duration: this.options.duration,
      watchesLoop: plan.infos.some((info) => info.name === 'event-loop' && info.available),
      blocked: 0,
      worst: 0,
      gaps: 0,
    };
    if (this.options.quiet) return;
    for (const message of plan.messages) this.say(message);
    const said = new Set<string | null>();
    for (const info of [...plan.infos, ...tree.infos]) {
      if (info.available || plan.messages.length > 0 || said.has(info.reason)) continue;
      // That a worker runs no event loop is how it is built; the report says so.
      if (info.pid !== undefined && info.remedy === null) continue;
      said.add(info.reason);
      this.say(`${info.name}: not seen: ${printable(info.reason ?? '', 400)}`);
      if (info.remedy !== null) this.say(`  ${info.remedy}`);
    }
    if (!this.options.verbose) return;
    const evidence = plan.runtime.evidence.join('; ');
    this.say(`runtime: ${plan.runtime.name} ${plan.runtime.version ?? ''} (${evidence})`);
    for (const detail of plan.details) this.say(detail);
  }

  /** What is about to be done to the target, before it is. */
  announceTouch(pid: number, lines: readonly string[]): void {
    if (this.options.quiet) return;
    this.say(`--inspect changes pid ${pid}. In this order:`);
    for (const line of lines) this.say(`  ${printable(line, 400)}`);
  }

  write(observation: Observation): void {
    const state = this.#state;
    if (state === null) return;
    if (observation.kind === 'gap') {
      // Where all of trace stood still, each collector has the same gap.
      const from = Math.max(observation.from, this.#gapsTo);
      const gaps = state.gaps + Math.max(0, observation.to - from);
      this.#gapsTo = Math.max(this.#gapsTo, observation.to);
      this.#state = { ...state, gaps };
      return;
    }
    if (observation.kind !== 'span' || observation.name !== SPAN.blocked) return;
    if (observation.attributes[ATTR.starved] === true) return;
    const worst = Math.max(state.worst, observation.to - observation.from);
    this.#state = { ...state, blocked: state.blocked + 1, worst };
  }

  tick(elapsed: Seconds): void {
    if (this.#state === null) return;
    this.#state = { ...this.#state, elapsed };
    if (!this.options.progress) return;
    const { stderr } = this.environment;
    if (!this.rewrites) {
      // Left on for days it says something when something happens.
      if (this.options.trigger !== null) return;
      const { duration } = this.#state;
      // The report follows at once and says the same.
      if (duration !== null && duration - elapsed <= 1) return;
      if (elapsed - this.#lastPlain < PLAIN_PROGRESS_EVERY) return;
      this.#lastPlain = elapsed;
    }
    this.showProgress(renderProgress(this.#state, this.surface(stderr)));
  }

  showReport(report: Report): void {
    const { stdout } = this.environment;
    stdout.write(
      this.options.format === 'json'
        ? renderJson(report)
        : renderTerminal(report, this.surface(stdout)),
    );
    const { findings, recording } = report;
    this.environment.onResult?.({ summary: findingsText(findings), link: recording });
  }

  close(): Promise<{ readonly dropped: number }> {
    return Promise.resolve({ dropped: 0 });
  }
}
