import { parseSync } from 'oxc-parser';
import type { SourceFile } from './architecture.ts';

/**
 * Looks in syntax trees for code that reads a finding's words: a regular expression, or a search
 * for a piece of text, that is applied to its summary, its mechanism or what is made of them. Words
 * are followed through variables, parameters that are taken apart, object properties and functions
 * of one file; not from one file to another.
 */

/**
 * Fields of findings, evidence, causes and explanations that are for people, and the mechanism,
 * which has a type of its own.
 */
const WORDS: ReadonlySet<string> = new Set([
  'summary',
  'mechanism',
  'claim',
  'remedy',
  'because',
  'why',
  'confirming',
  'refuting',
]);
/** A file without any of these names needs no parsing. */
const NAMES_WORDS = new RegExp(`\\b(?:${[...WORDS].join('|')})\\b`);
/** What gives back the same words, for output. */
const SAME_WORDS: ReadonlySet<string> = new Set(['String', 'printable', 'outside']);
const OF_PATTERN: ReadonlySet<string> = new Set(['test', 'exec']);
const BY_PATTERN: ReadonlySet<string> = new Set([
  'match',
  'matchAll',
  'search',
  'replace',
  'replaceAll',
  'split',
]);
const BY_TEXT: ReadonlySet<string> = new Set(['startsWith', 'endsWith', 'includes', 'indexOf']);
/** So often is a file gone through: what a function returns may be known only after its use. */
const ROUNDS = 3;

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

/** Names in scope, and whether each holds words. */
type Scope = Map<string, boolean>;

/** Where words of findings are read, as `path:line text`. */
export function wordReaders(sources: readonly SourceFile[]): readonly string[] {
  return sources
    .filter(({ text }) => NAMES_WORDS.test(text))
    .flatMap(({ path, text }) =>
      new Reader(path, text).found().map((at) => {
        const line = text.slice(0, at).split('\n').length;
        return `${path}:${line} ${text.split('\n')[line - 1]?.trim() ?? ''}`;
      }),
    );
}

class Reader {
  readonly #program: Node;
  /** Functions that return words, and properties that are given some, by name. */
  readonly #functions = new Set<string>();
  readonly #properties = new Set(WORDS);
  #found = new Set<number>();

  constructor(path: string, text: string) {
    const { program, errors } = parseSync(path, text);
    if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message ?? ''}`);
    this.#program = program as unknown as Node;
  }

  found(): readonly number[] {
    for (let round = 0; round < ROUNDS; round++) {
      this.#found = new Set();
      this.#visit(this.#program, [new Map()]);
    }
    return [...this.#found].sort((a, b) => a - b);
  }

  #visit(node: Node, scopes: readonly Scope[]): void {
    if (isFunction(node)) {
      this.#visitFunction(node, scopes);
      return;
    }
    const inner = node.type === 'BlockStatement' ? [...scopes, new Map()] : scopes;
    for (const child of childrenOf(node)) this.#visit(child, inner);
    if (node.type === 'VariableDeclarator') this.#declare(node, inner);
    if (node.type === 'Property') this.#noteProperty(node, inner);
    if (node.type === 'CallExpression' && this.#reads(node, inner)) this.#found.add(node.start);
  }

  #visitFunction(node: Node, scopes: readonly Scope[]): void {
    const own: Scope = new Map();
    const inner = [...scopes, own];
    for (const parameter of nodes(node['params'])) bind(parameter, own, false);
    for (const child of childrenOf(node)) this.#visit(child, inner);
    const name = (node['id'] as Node | null)?.['name'];
    if (typeof name === 'string' && this.#returnsWords(node, inner)) this.#functions.add(name);
  }

  /** `const text = …`, `const { summary } = …`, `const textOf = (finding) => finding.summary`. */
  #declare(node: Node, scopes: readonly Scope[]): void {
    const [id, init] = [node['id'] as Node, node['init'] as Node | null];
    const holds = init !== null && this.#hasWords(init, scopes);
    bind(id, scopes.at(-1) ?? new Map(), holds);
    const name = id['name'];
    if (init !== null && isFunction(init) && typeof name === 'string') {
      const own: Scope = new Map();
      for (const parameter of nodes(init['params'])) bind(parameter, own, false);
      if (this.#returnsWords(init, [...scopes, own])) this.#functions.add(name);
    }
  }

  #noteProperty(node: Node, scopes: readonly Scope[]): void {
    const [key, value] = [node['key'] as Node, node['value'] as Node];
    const name = key['name'];
    if (typeof name === 'string' && this.#hasWords(value, scopes)) this.#properties.add(name);
  }

  #reads(call: Node, scopes: readonly Scope[]): boolean {
    const callee = call['callee'] as Node;
    const method = methodOf(callee);
    const [argument] = nodes(call['arguments']);
    if (method === null || argument === undefined) return false;
    if (OF_PATTERN.has(method)) return this.#hasWords(argument, scopes);
    const subject = callee['object'] as Node;
    const isText = argument.type === 'Literal' && typeof argument['value'] === 'string';
    return (
      (BY_TEXT.has(method) || (BY_PATTERN.has(method) && !isText)) &&
      this.#hasWords(subject, scopes)
    );
  }

  #returnsWords(node: Node, scopes: readonly Scope[]): boolean {
    const body = node['body'] as Node | null;
    if (body === null) return false;
    if (body.type !== 'BlockStatement') return this.#hasWords(body, scopes);
    return nodes(body['body']).some((statement) => {
      const returned = statement['argument'] as Node | null;
      return (
        statement.type === 'ReturnStatement' &&
        returned !== null &&
        this.#hasWords(returned, scopes)
      );
    });
  }

  /** Whether an expression is made of words. */
  #hasWords(node: Node, scopes: readonly Scope[]): boolean {
    const any = (...parts: readonly unknown[]): boolean =>
      parts.some((part) => part != null && this.#hasWords(part as Node, scopes));
    switch (node.type) {
      case 'Identifier':
        return (
          scopes
            .findLast((scope) => scope.has(node['name'] as string))
            ?.get(node['name'] as string) === true
        );
      case 'MemberExpression': {
        const name = (node['property'] as Node)['name'];
        return node['computed'] === true
          ? any(node['object'])
          : typeof name === 'string' && this.#properties.has(name);
      }
      case 'TemplateLiteral':
        return any(...nodes(node['expressions']));
      case 'ArrayExpression':
        return any(...nodes(node['elements']));
      case 'LogicalExpression':
        return any(node['left'], node['right']);
      case 'BinaryExpression':
        return node['operator'] === '+' && any(node['left'], node['right']);
      case 'ConditionalExpression':
        return any(node['consequent'], node['alternate']);
      case 'CallExpression':
        return this.#givesWords(node, scopes);
      case 'AwaitExpression':
      case 'SpreadElement':
        return any(node['argument']);
      case 'ChainExpression':
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSNonNullExpression':
        return any(node['expression']);
      default:
        return false;
    }
  }

  #givesWords(call: Node, scopes: readonly Scope[]): boolean {
    const callee = call['callee'] as Node;
    const name = callee['name'];
    const given = nodes(call['arguments']);
    if (typeof name === 'string')
      return (
        this.#functions.has(name) ||
        (SAME_WORDS.has(name) && given.some((one) => this.#hasWords(one, scopes)))
      );
    // Of a list: what a callback gives for each. Of a text: trim(), toLowerCase() and the like.
    const mapped = given.some((one) => {
      if (one.type !== 'ArrowFunctionExpression') return false;
      const own: Scope = new Map();
      for (const parameter of nodes(one['params'])) bind(parameter, own, false);
      return this.#returnsWords(one, [...scopes, own]);
    });
    const isMethod = methodOf(callee) !== null;
    return isMethod && (mapped || this.#hasWords(callee['object'] as Node, scopes));
  }
}

/**
 * Puts the names of a pattern into a scope; what is taken out of an object by a name of words holds
 * some.
 */
function bind(pattern: Node, scope: Scope, holds: boolean): void {
  switch (pattern.type) {
    case 'Identifier':
      scope.set(pattern['name'] as string, holds);
      return;
    case 'ObjectPattern':
      for (const property of nodes(pattern['properties'])) {
        const key = (property['key'] as Node | undefined)?.['name'];
        const value = (property['value'] ?? property['argument']) as Node;
        bind(value, scope, holds || (typeof key === 'string' && WORDS.has(key)));
      }
      return;
    case 'ArrayPattern':
      for (const element of nodes(pattern['elements'])) bind(element, scope, holds);
      return;
    case 'AssignmentPattern':
      bind(pattern['left'] as Node, scope, holds);
      return;
    case 'RestElement':
      bind(pattern['argument'] as Node, scope, holds);
      return;
    default:
  }
}

function methodOf(callee: Node): string | null {
  const inner = callee.type === 'ChainExpression' ? (callee['expression'] as Node) : callee;
  if (inner.type !== 'MemberExpression' || inner['computed'] === true) return null;
  const name = (inner['property'] as Node)['name'];
  return typeof name === 'string' ? name : null;
}

function isFunction({ type }: Node): boolean {
  return ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'].includes(type);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function nodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node).flatMap((value) => (isNode(value) ? [value] : nodes(value)));
}
