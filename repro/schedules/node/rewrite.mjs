/**
 * Rewrites a module of Node so that it asks at each `await` and timer whether to go on now: `node rewrite.mjs FILE NAME` reads the source from
 * stdin and writes the new one to stdout. Lines stay where they are, so stacks and source maps go on telling the right ones. Runs in trace's own Node,
 * apart from the program: what the program is run by may be older, and gets no native code of ours.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** What the agent puts there. */
const AGENT = 'globalThis.__tracewright';
const TIMERS = new Set(['setTimeout', 'setImmediate', 'setInterval']);

/** The text with every point marked; null when it cannot be parsed, and is left as it is. */
export function rewrite(parseSync, file, source, name) {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) return null;
  const edits = [];
  const lineOf = lineFinder(source);
  const site = (node) => JSON.stringify(`${name}:${lineOf(node.start)}`);
  const bound = new Set();
  walk(program, (node) => collectBound(node, bound));
  walk(program, (node) => {
    if (node.type === 'AwaitExpression') {
      const { argument } = node;
      edits.push([argument.start, `${AGENT}.resume(`], [argument.end, `,${site(node)})`]);
    } else if (node.type === 'ForOfStatement' && node.await) {
      edits.push([node.right.start, `${AGENT}.iterate(`], [node.right.end, `,${site(node)})`]);
    } else if (node.type === 'CallExpression' && isThen(node.callee)) {
      const { object } = node.callee;
      edits.push(
        [object.start, `${AGENT}.chain(`],
        [object.end, `,${site(node.callee.property)})`],
      );
    } else if (
      node.type === 'CallExpression' &&
      node.callee.type === 'Identifier' &&
      TIMERS.has(node.callee.name) &&
      !bound.has(node.callee.name)
    ) {
      edits.push([node.callee.start, `${AGENT}.timer(`], [node.callee.end, `,${site(node)})`]);
    }
  });
  return apply(source, edits);
}

function isThen(callee) {
  return (
    callee.type === 'MemberExpression' &&
    !callee.computed &&
    !callee.optional &&
    callee.object.type !== 'Super' &&
    callee.property.name === 'then'
  );
}

/** Names that the module declares itself, wherever: a timer of its own is left alone. */
function collectBound(node, bound) {
  if (node.type === 'VariableDeclarator' || node.type === 'FunctionDeclaration') {
    if (node.id?.type === 'Identifier') bound.add(node.id.name);
    if (node.id?.type === 'ObjectPattern')
      for (const { value } of node.id.properties) if (value?.name) bound.add(value.name);
  }
  if (node.type.startsWith('Import') && node.local) bound.add(node.local.name);
  for (const parameter of node.params ?? [])
    if (parameter.type === 'Identifier') bound.add(parameter.name);
}

/** Every node, outer ones first. */
function walk(node, visit) {
  if (Array.isArray(node)) {
    for (const one of node) walk(one, visit);
    return;
  }
  if (node === null || typeof node !== 'object' || typeof node.type !== 'string') return;
  visit(node);
  for (const key of Object.keys(node)) if (key !== 'type') walk(node[key], visit);
}

/** Insertions; of two at one place the later found is the inner one: it stands behind when it opens, before when it closes. */
function apply(source, edits) {
  const sorted = edits
    .map(([at, text], order) => ({ at, text, order, closes: text.startsWith(',') }))
    .toSorted(
      (a, b) =>
        a.at - b.at ||
        Number(b.closes) - Number(a.closes) ||
        (a.closes ? b.order - a.order : a.order - b.order),
    );
  let result = '';
  let from = 0;
  for (const { at, text } of sorted) {
    result += source.slice(from, at) + text;
    from = at;
  }
  return result + source.slice(from);
}

function lineFinder(source) {
  const starts = [0];
  for (let at = source.indexOf('\n'); at !== -1; at = source.indexOf('\n', at + 1))
    starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}

if (process.argv[2] !== undefined) {
  const { parseSync } = createRequire(import.meta.url)('oxc-parser');
  const [file, name] = process.argv.slice(2);
  const source = readFileSync(0, 'utf8');
  const text = rewrite(parseSync, file, source, name);
  if (text === null) process.exitCode = 1;
  else process.stdout.write(text);
}
