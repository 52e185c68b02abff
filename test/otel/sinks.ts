import { ATTR, SPAN } from '../../src/core/semconv.ts';
import type { Span } from '../../src/core/types.ts';
import { otlpConfig } from '../../src/otel/environment.ts';
import { type OtlpSink, openOtlpSink } from '../../src/otel/sink.ts';
import { START } from '../recording/observations.ts';

type Environment = Readonly<Record<string, string>>;

/** A sink to `endpoint`, configured as a command line and these variables would. */
export function sinkTo(
  endpoint: string,
  env: Environment = {},
  settings: {
    closeTimeout?: number;
    metricsInterval?: number;
    onWarning?: (text: string) => void;
  } = {},
): OtlpSink {
  const config = otlpConfig({ env, endpoint });
  if (config === null) throw new Error('no configuration');
  return openOtlpSink({ config, start: START, ...settings });
}

/** A block of 0.1 s, `n` seconds into the run. */
export function blocked(n = 0): Span {
  return {
    kind: 'span',
    name: SPAN.blocked,
    from: 1_700_000_001.123456 + n,
    to: 1_700_000_001.223456 + n,
    attributes: {
      [ATTR.pid]: 4711,
      [ATTR.threadId]: 4712,
      [ATTR.codeFunctionName]: 'rerank',
      [ATTR.codeFilePath]: '/srv/app.py',
      [ATTR.codeLineNumber]: 88,
      [ATTR.codeStacktrace]: 'rerank (/srv/app.py:88)\nmain (/srv/app.py:12)',
      [ATTR.runQueueWait]: 0,
    },
  };
}
