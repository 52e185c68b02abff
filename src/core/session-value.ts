/** Values of one line in a session's file, as those who decide and those who show read them. Reading is total. */

/** Placeholders of templates: `[empty until found]`. */
const PLACEHOLDER = /^\[[a-z][^\]",]* [^\]"]*\]$/i;

/** Whether a value stands for nothing. */
export function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text);
}

/** A plain or quoted value of YAML; a placeholder is empty. */
export function decodeScalar(text: string): string {
  if (text.length >= 2 && text.startsWith('"') && text.endsWith('"')) {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'string') return value;
    } catch {
      return text.slice(1, -1);
    }
  }
  if (text.length >= 2 && text.startsWith("'") && text.endsWith("'"))
    return text.slice(1, -1).replaceAll("''", "'");
  return isPlaceholder(text) ? '' : text;
}

/** The items of a list: `[a, b]`, or lines that begin with a hyphen. */
export function decodeList(value: string): readonly string[] {
  const text = value.trim();
  if (text === '' || text === '[]') return [];
  if (text.startsWith('[') && text.endsWith(']'))
    return splitCommas(text.slice(1, -1)).map((item) => decodeScalar(item.trim()));
  return text
    .split('\n')
    .map((line) => decodeScalar(line.replace(/^\s*[-*]\s+/, '').trim()))
    .filter((item) => item !== '');
}

/** A list in one line, as {@link decodeList} reads it. */
export function encodeList(items: readonly string[]): string {
  return `[${items.map((item) => JSON.stringify(item)).join(', ')}]`;
}

/** At the commas that are not inside quotes. */
function splitCommas(text: string): readonly string[] {
  return text.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|[^,"'])+/g) ?? [];
}
