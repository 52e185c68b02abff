/** Templates are programs that run as they are, with all that any reproduction may need; of one reproduction it keeps what this one needs. */

const REGION = /^\s*(?:#|\/\/) region: (.*)$/;
const END = /^\s*(?:#|\/\/) endregion$/;

/**
 * A template without the regions that none of `wanted` names, and without the marks of the others. A region is between the comments
 * `region: name, name` and `endregion`; regions do not nest. Throws when one does not end, which a test of each template finds.
 */
export function pruned(template: string, wanted: ReadonlySet<string>): string {
  const kept: string[] = [];
  let within: boolean | null = null;
  for (const line of template.split('\n')) {
    const names = REGION.exec(line)?.[1];
    if (names !== undefined) {
      if (within !== null) throw new TypeError(`a region within a region: ${line}`);
      within = names.split(',').some((name) => wanted.has(name.trim()));
    } else if (END.test(line)) {
      if (within === null) throw new TypeError('an endregion without a region');
      within = null;
    } else if (within !== false) kept.push(line);
  }
  if (within !== null) throw new TypeError('a region without its end');
  return tidy(kept.join('\n'));
}

/** What stood around a region that is gone: never more than two empty lines, and one at most inside of an indented block. */
function tidy(text: string): string {
  return text.replaceAll(/\n{4,}/g, '\n\n\n').replaceAll(/\n{3,}(?=[ \t])/g, '\n\n');
}
