/**
 * `key=value,key2=value2` with percent-encoded values: the form of OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS
 * (the W3C Baggage header without its properties).
 */
export function parseKeyValues(
  text: string,
): { readonly ok: true; readonly pairs: ReadonlyMap<string, string> } | { readonly ok: false } {
  const pairs = new Map<string, string>();
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const equals = part.indexOf('=');
    const key = part.slice(0, equals).trim();
    if (equals < 0 || key === '') return { ok: false };
    try {
      pairs.set(decodeURIComponent(key), decodeURIComponent(part.slice(equals + 1).trim()));
    } catch {
      return { ok: false };
    }
  }
  return { ok: true, pairs };
}
