/**
 * `nvidia-smi -q -x` as a tree. Its XML has elements, text and few attributes; no package is worth it. What is not that is passed over, and depth and
 * number of elements are bounded. `-q` without `-x`, which indents instead, gives the same tree.
 */

/** An element. Text is untrusted. */
export interface Element {
  /** Lower case, words joined by `_`. */
  readonly name: string;
  /** Of the attribute `id`; of a line of `-q`, what stands behind its name (`GPU 00000000:01:00.0`). */
  readonly id: string;
  text: string;
  readonly children: Element[];
}

const DEPTH_LIMIT = 32;
/** 16 GPUs with 7 slices and hundreds of processes have 20,000. */
const ELEMENT_LIMIT = 200_000;
const TEXT_LIMIT = 4096;

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
};

/** The answer as a tree, whichever of the two forms it has; null where it has neither. */
export function parseDocument(text: string): Element | null {
  const root = /<nvidia_smi_log\b/.test(text) ? parseXml(text) : parseIndented(text);
  return all(root, 'gpu').length > 0 ? root : null;
}

/** Elements of that name anywhere below, in their order. */
export function all(element: Element, name: string): readonly Element[] {
  const found: Element[] = [];
  const look = (within: Element, depth: number): void => {
    for (const child of within.children) {
      if (child.name === name) found.push(child);
      else if (depth < DEPTH_LIMIT) look(child, depth + 1);
    }
  };
  look(element, 0);
  return found;
}

/** The text of the first direct child that has one of these names. */
export function childText(
  element: Element | undefined,
  names: readonly string[],
): string | undefined {
  return element?.children.find(({ name }) => names.includes(name))?.text;
}

/** No part of it looks further than the next `<` or `>`: text that is no XML costs no more than XML. */
const TOKEN = /<[!?][^<>]*>|<(\/?)([A-Za-z_][\w.-]*)([^<>]*?)(\/?)>|([^<]+)|</g;

function parseXml(text: string): Element {
  const root = elementOf('', '');
  const open: Element[] = [root];
  let count = 0;
  for (const [, closing, name, attributes = '', empty, content] of text.matchAll(TOKEN)) {
    const within = open.at(-1) ?? root;
    if (content !== undefined) {
      if (within.text.length < TEXT_LIMIT) within.text += decode(content.slice(0, TEXT_LIMIT));
    } else if (name !== undefined && closing === '/') {
      // One that closes nothing is passed over; one that closes an outer element closes what is in it too.
      const at = open.findLastIndex((one, i) => i > 0 && one.name === name.toLowerCase());
      if (at > 0) open.length = at;
    } else if (name !== undefined) {
      if (++count > ELEMENT_LIMIT) break;
      const id = /\bid\s*=\s*"([^"]*)"/.exec(attributes)?.[1] ?? '';
      const element = elementOf(name.toLowerCase(), id);
      within.children.push(element);
      if (empty !== '/' && open.length < DEPTH_LIMIT) open.push(element);
    }
  }
  trim(root, 0);
  return root;
}

function decode(text: string): string {
  return text.replace(/&(#?\w+);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}

function trim(element: Element, depth: number): void {
  element.text = element.text.trim();
  if (depth < DEPTH_LIMIT) for (const child of element.children) trim(child, depth + 1);
}

/** Lines of `Name : value`, four spaces deeper for each level; processes are listed flat, each beginning with its GPU instance. */
function parseIndented(text: string): Element {
  const root = elementOf('', '');
  const open: { readonly depth: number; readonly element: Element }[] = [
    { depth: -1, element: root },
  ];
  let count = 0;
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '' || ++count > ELEMENT_LIMIT) continue;
    const depth = line.length - line.trimStart().length;
    const separator = line.indexOf(' : ');
    const [key, value] =
      separator < 0
        ? [line.trim(), '']
        : [line.slice(0, separator).trim(), line.slice(separator + 3).trim()];
    while ((open.at(-1)?.depth ?? -1) >= depth && open.length > 1) open.pop();
    const within = open.at(-1)?.element ?? root;
    const gpu = separator < 0 ? /^GPU ([0-9A-Fa-f:.]+)$/.exec(key) : null;
    const element = elementOf(gpu === null ? nameOf(key) : 'gpu', gpu?.[1] ?? '');
    element.text = value.slice(0, TEXT_LIMIT);
    within.children.push(element);
    if (open.length < DEPTH_LIMIT) open.push({ depth, element });
  }
  return root;
}

function nameOf(key: string): string {
  return key.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}

function elementOf(name: string, id: string): Element {
  return { name, id, text: '', children: [] };
}
