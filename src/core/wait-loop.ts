/** What a program waits for with a condition, from the source of the loop around the wait. Source text is the target's: only matched here. */

const NAME = String.raw`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,3})`;
/** Loops that end as soon as something is there; any other test may be true for more reasons than one. */
const LOOPS = [
  new RegExp(String.raw`^\s*while not ${NAME}:`),
  new RegExp(String.raw`^\s*while len\(${NAME}\) == 0:`),
  new RegExp(String.raw`^\s*while not len\(${NAME}\):`),
];
const WAIT = /\bawait [\w.]+\.wait\(\)/;
const WAIT_FOR = [
  new RegExp(String.raw`\.wait_for\(lambda: (?:bool\()?${NAME}\)`),
  new RegExp(String.raw`\.wait_for\(lambda: len\(${NAME}\)(?: > 0)?\)`),
];
/** Lines between the loop's head and its wait. */
const BODY_LINES = 3;

/** The variable, or attribute of one, whose being true ends the wait at `line` (from 1); null where that is not plainly so. */
export function awaitedName(lines: readonly string[], line: number): string | null {
  const text = lines[line - 1] ?? '';
  for (const pattern of WAIT_FOR) {
    const name = pattern.exec(text)?.[1];
    if (name !== undefined) return name;
  }
  if (!WAIT.test(text)) return null;
  for (let back = 0; back <= BODY_LINES; back++) {
    const head = lines[line - 1 - back] ?? '';
    if (back > 0 && indentOf(head) >= indentOf(text)) continue;
    for (const pattern of LOOPS) {
      const name = pattern.exec(head)?.[1];
      if (name !== undefined) return name;
    }
    if (back > 0 && head.trim() !== '') return null;
  }
  return null;
}

function indentOf(text: string): number {
  return text.trim() === '' ? Infinity : text.length - text.trimStart().length;
}
