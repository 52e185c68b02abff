import type { Finding, Metric, RunEnd, RunStart, Seconds } from '../../core/types.ts';
import type { OtlpConfig, Signal } from '../../otel/environment.ts';
import type { OtlpSink } from '../../otel/sink.ts';
import type { AttachOptions } from '../attach/options.ts';
import type { Environment } from '../command-line/command.ts';

/** Sending a run to an OTLP receiver: whether and where to, the end of it, and where the trace can be looked at then. */

/** A delivery that takes longer is said, so that nobody takes trace for hung. */
const WORTH_SAYING: Seconds = 1;

/** What sending depends on. */
export interface ExportSetup {
  readonly otlp: AttachOptions['otlp'];
  readonly environment: Environment;
  readonly screen: { note(text: string): void; problem(text: string): void };
  /** Metrics beyond those of semconv.ts. */
  readonly metrics?: readonly Metric[];
  /** Those of the signals that are to be sent; all where nothing is said. */
  readonly signals?: readonly Signal[];
}

/** An export that has been opened. */
export interface Export {
  readonly sink: OtlpSink;
  /** Delivers what is left and gives the URL of the trace, null when there is none. A stop signal ends the waiting. */
  finish(end: RunEnd, findings: readonly Finding[]): Promise<string | null>;
}

/** Opens what flags and variables ask for; null when they ask for nothing. Its warnings are said as they arise. */
export async function openExport(start: RunStart, setup: ExportSetup): Promise<Export | null> {
  const { otlp, environment, screen, metrics = [], signals } = setup;
  const { enabled, endpoint, protocol } = otlp;
  const { env } = environment;
  const asked = enabled || Object.keys(env).some((name) => name.startsWith('OTEL_EXPORTER_OTLP_'));
  if (!asked) return null;
  const [{ otlpConfig }, { openOtlpSink }] = await Promise.all([
    import('../../otel/environment.ts'),
    import('../../otel/sink.ts'),
  ]);
  const named = Object.keys(env).some((name) =>
    /^OTEL_EXPORTER_OTLP_(?:\w+_)?ENDPOINT$/.test(name),
  );
  const whole = otlpConfig({
    env,
    endpoint: endpoint ?? undefined,
    protocol: protocol ?? undefined,
    orDefault: enabled && !named,
  });
  if (whole === null) return null;
  const config = signals === undefined ? whole : only(signals, whole);
  const sink = openOtlpSink({ config, start, metrics, onWarning: (text) => screen.problem(text) });
  return {
    sink,
    async finish(end, findings) {
      const tired = new AbortController();
      const release = environment.onStop(() => {
        sink.giveUp();
        tired.abort();
      });
      const note = setTimeout(
        () => screen.note('still sending to the OTLP receiver; Ctrl-C gives up'),
        WORTH_SAYING * 1e3,
      );
      try {
        const { signals } = await sink.end(end, findings);
        if ((signals.traces?.sent ?? 0) === 0) return null;
        return await traceUrl(start.traceId, { config, otlp, signal: tired.signal });
      } finally {
        clearTimeout(note);
        release();
      }
    },
  };
}

function only(signals: readonly Signal[], config: OtlpConfig): OtlpConfig {
  const of = (signal: Signal) => (signals.includes(signal) ? config.targets[signal] : null);
  return {
    ...config,
    targets: { traces: of('traces'), metrics: of('metrics'), logs: of('logs') },
  };
}

async function traceUrl(
  traceId: string,
  context: { config: OtlpConfig; otlp: AttachOptions['otlp']; signal: AbortSignal },
): Promise<string | null> {
  const { config, otlp, signal } = context;
  const { configuredLink, jaegerLink } = await import('../../otel/trace-link.ts');
  const template = otlp.traceUrl;
  if (template !== null) return configuredLink(template, traceId);
  const receiver = config.targets.traces;
  return receiver === null ? null : jaegerLink({ receiver, traceId, signal });
}
