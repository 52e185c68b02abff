/**
 * JSON with two spaces a level and lists of plain values on one line: a document with histograms is then read by people too, and has a
 * tenth of the lines.
 */
export function jsonText(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return plain(value);
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object' || item === null)) {
      return `[${value.map(plain).join(', ')}]`;
    }
    return block(
      '[',
      value.map((item) => deeper + jsonText(item, deeper)),
      `${indent}]`,
    );
  }
  const fields = Object.entries(value).filter(([, item]) => item !== undefined);
  const lines = fields.map(([key, item]) => `${deeper}${plain(key)}: ${jsonText(item, deeper)}`);
  return fields.length === 0 ? '{}' : block('{', lines, `${indent}}`);
}

function block(open: string, lines: readonly string[], close: string): string {
  return `${open}\n${lines.join(',\n')}\n${close}`;
}

/** As JSON.stringify has it: what is no JSON (NaN, infinities, undefined in a list) is null. */
function plain(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}
