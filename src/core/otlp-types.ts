/**
 * The shapes of OTLP/JSON (opentelemetry-proto 1.11.0) that we write: 64-bit integers are decimal strings, ids lower-case
 * hex, enums integers. What we read is `unknown` until `otlp-decode.ts` has looked at it.
 */

/** One value; an empty object is null. */
export interface OtlpValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number | 'NaN' | 'Infinity' | '-Infinity';
  readonly arrayValue?: { readonly values: readonly OtlpValue[] };
  readonly kvlistValue?: { readonly values: readonly OtlpKeyValue[] };
}

export interface OtlpKeyValue {
  readonly key: string;
  readonly value: OtlpValue;
}

export interface OtlpResource {
  readonly attributes: readonly OtlpKeyValue[];
}

export interface OtlpScope {
  readonly name: string;
  readonly version?: string;
}

export interface OtlpSpanEvent {
  readonly timeUnixNano: string;
  readonly name: string;
  readonly attributes: readonly OtlpKeyValue[];
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpKeyValue[];
  readonly events?: readonly OtlpSpanEvent[];
  readonly status?: { readonly code: number; readonly message?: string };
  /** Of W3C Trace Context: bit 0 is "sampled". */
  readonly flags?: number;
}

/** A reading: exactly one of `asDouble` and `asInt` is set. */
export interface OtlpNumberPoint {
  readonly attributes: readonly OtlpKeyValue[];
  readonly timeUnixNano: string;
  readonly asDouble?: number | 'NaN' | 'Infinity' | '-Infinity';
  readonly asInt?: string;
}

export interface OtlpExponentialPoint {
  readonly attributes: readonly OtlpKeyValue[];
  readonly startTimeUnixNano: string;
  readonly timeUnixNano: string;
  readonly count: string;
  readonly sum: number;
  readonly scale: number;
  readonly zeroCount: string;
  readonly positive: { readonly offset: number; readonly bucketCounts: readonly string[] };
  readonly min?: number;
  readonly max?: number;
}

export interface OtlpMetric {
  readonly name: string;
  readonly description: string;
  readonly unit: string;
  readonly gauge?: { readonly dataPoints: readonly OtlpNumberPoint[] };
  readonly sum?: {
    readonly dataPoints: readonly OtlpNumberPoint[];
    readonly aggregationTemporality: number;
    readonly isMonotonic: boolean;
  };
  readonly exponentialHistogram?: {
    readonly dataPoints: readonly OtlpExponentialPoint[];
    readonly aggregationTemporality: number;
  };
}

export interface OtlpLogRecord {
  readonly timeUnixNano: string;
  readonly observedTimeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly eventName: string;
  readonly body: OtlpValue;
  readonly attributes: readonly OtlpKeyValue[];
  readonly traceId?: string;
  readonly spanId?: string;
}

export interface OtlpTraces {
  readonly resourceSpans: readonly {
    readonly resource: OtlpResource;
    readonly scopeSpans: readonly {
      readonly scope: OtlpScope;
      readonly spans: readonly OtlpSpan[];
    }[];
    readonly schemaUrl?: string;
  }[];
}

export interface OtlpMetrics {
  readonly resourceMetrics: readonly {
    readonly resource: OtlpResource;
    readonly scopeMetrics: readonly {
      readonly scope: OtlpScope;
      readonly metrics: readonly OtlpMetric[];
    }[];
    readonly schemaUrl?: string;
  }[];
}

export interface OtlpLogs {
  readonly resourceLogs: readonly {
    readonly resource: OtlpResource;
    readonly scopeLogs: readonly {
      readonly scope: OtlpScope;
      readonly logRecords: readonly OtlpLogRecord[];
    }[];
    readonly schemaUrl?: string;
  }[];
}

/** One line of a recording, and one request body to an OTLP receiver. */
export type OtlpPayload = OtlpTraces | OtlpMetrics | OtlpLogs;
