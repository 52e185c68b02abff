/**
 * What the code around an `await` reads before it and writes after it: `node places.mjs` takes a JSON list of lists of [path, line] on stdin, each
 * innermost first, and answers for each the first place that lies between two accesses to the same thing, or null.
 */
import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';

/** Methods that change what they are called on. */
const CHANGING = new Set(
  'add clear delete fill pop push reverse set shift sort splice unshift'.split(' '),
);
/** What lies between makes a race, the likelier first. */
const PAIRS = [
  ['read', 'write'],
  ['write', 'read'],
  ['write', 'write'],
  ['read', 'read'],
];

const isNode = (value) =>
  value !== null && typeof value === 'object' && typeof value.type === 'string';
const isFunction = ({ type }) => /Function(?:Declaration|Expression)$/.test(type);

function childrenOf(node) {
  return Object.entries(node)
    .filter(([key]) => key !== 'type')
    .flatMap(([, value]) => value)
    .filter(isNode);
}

function everyNode(node) {
  return [node, ...childrenOf(node).flatMap(everyNode)];
}

/** `this.balance` for the member; null for what is no chain of names. */
function dotted(node) {
  if (node.type === 'Identifier') return node.name;
  if (node.type === 'ThisExpression') return 'this';
  if (node.type !== 'MemberExpression') return null;
  const base = dotted(node.object);
  if (base === null) return null;
  // Of a list or a map: the thing itself.
  return node.computed ? base : `${base}.${node.property.name}`;
}

/** Reads, writes and awaits of a function or a module, in the order in which they happen. */
function eventsOf(body, local, lineAt) {
  const events = [];
  const note = (kind, node) => {
    const name = dotted(node);
    if (name === null) visit(node);
    else if (name.includes('.') || !local.has(name))
      events.push({ kind, name, line: lineAt(node.start) });
  };
  const wait = (node, end) =>
    events.push({ kind: 'await', name: '', line: lineAt(node.start), last: lineAt(end) });
  const visitors = {
    AwaitExpression(node) {
      visit(node.argument);
      wait(node, node.end);
    },
    ForOfStatement(node) {
      visit(node.right);
      if (node.await) wait(node, node.right.end);
      visit(node.body);
    },
    AssignmentExpression(node) {
      if (node.operator !== '=') note('read', node.left);
      visit(node.right);
      note('write', node.left);
    },
    UpdateExpression(node) {
      note('read', node.argument);
      note('write', node.argument);
    },
    UnaryExpression(node) {
      if (node.operator === 'delete') note('write', node.argument.object ?? node.argument);
      else visit(node.argument);
    },
    CallExpression(node) {
      node.arguments.forEach(visit);
      const { callee } = node;
      if (callee.type === 'Identifier') return;
      if (callee.type !== 'MemberExpression') visit(callee);
      else note(CHANGING.has(callee.property.name) ? 'write' : 'read', callee.object);
    },
    VariableDeclarator(node) {
      if (node.init === null) return;
      const names = node.id.type === 'ObjectPattern' ? node.id.properties : [];
      const base = dotted(node.init);
      if (base === null || names.length === 0) visit(node.init);
      for (const { key } of base === null ? [] : names)
        if (key?.name)
          events.push({ kind: 'read', name: `${base}.${key.name}`, line: lineAt(node.start) });
    },
    Property(node) {
      if (node.computed) visit(node.key);
      visit(node.value);
    },
    MemberExpression: (node) => note('read', node),
    Identifier: (node) => note('read', node),
  };
  function visit(node) {
    if (isFunction(node) && node !== body) return;
    const visitor = visitors[node.type];
    if (visitor !== undefined) visitor(node);
    else childrenOf(node).forEach(visit);
  }
  visit(body);
  return events;
}

function localNames(unit) {
  const names = new Set();
  if (unit.type === 'Program') return names;
  for (const parameter of unit.params ?? []) if (parameter.name) names.add(parameter.name);
  for (const node of everyNode(unit.body)) {
    if (node.type !== 'VariableDeclarator') continue;
    for (const { type, name } of everyNode(node.id)) if (type === 'Identifier') names.add(name);
  }
  return names;
}

function between(path, line) {
  const source = readFileSync(path, 'utf8');
  const { program } = parseSync(path, source);
  const lineAt = (offset) => source.slice(0, offset).split('\n').length;
  const around = everyNode(program).filter(
    (node) => isFunction(node) && lineAt(node.start) <= line && line <= lineAt(node.end),
  );
  const unit = around.toSorted((a, b) => b.start - a.start)[0] ?? program;
  const events = eventsOf(unit.type === 'Program' ? unit : unit.body, localNames(unit), lineAt);
  const at = events.findIndex(
    ({ kind, line: first, last }) => kind === 'await' && first <= line && line <= last,
  );
  if (at === -1) return null;
  for (const [rank, [first, second]] of PAIRS.entries()) {
    for (const before of events.slice(0, at).toReversed()) {
      if (before.kind !== first) continue;
      const after = events
        .slice(at + 1)
        .find(({ kind, name }) => kind === second && name === before.name);
      if (after === undefined) continue;
      const { name, line: from } = before;
      return { rank, values: [path, events[at].line, name, first, from, second, after.line] };
    }
  }
  return null;
}

function answer(frames) {
  const found = frames.flatMap(([path, line]) => {
    try {
      return between(path, line) ?? [];
    } catch {
      return [];
    }
  });
  return found.toSorted((a, b) => a.rank - b.rank)[0]?.values ?? null;
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(answer)));
