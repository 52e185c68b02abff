import type { HeapHolder, HeapPath, OwnerKind } from '../../src/core/heap-look.ts';
import { type HeapGraph, LABEL } from './heap-graph.ts';
import type { HeapObjects } from './heap-objects.ts';
import { type HeapType, isPointer } from './heap-types.ts';

/** Ways through the graph as a programmer writes them. */

/** Keys are shown where they are names: in small dicts, and made of what names are made of. In large ones they are data. */
const NAME_KEYS = 64;
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,39}$/;
/** Longer ways are cut in the middle. */
const STEPS_LIMIT = 24;
const NAMELESS = '.<field>';
/** `PyDescr_COMMON` (name) and `PyMemberDescrObject.d_member`; in `PyMemberDef` the offset. */
const MEMBER = { name: 32, member: 40, offset: 16 } as const;
const TYPE_DICT_LIMIT = 512;
const BASE_DEPTH = 16;

interface Step {
  readonly node: number;
  readonly label: number;
  readonly value: number;
}

export class HeapPaths {
  readonly #graph: HeapGraph;
  readonly #objects: HeapObjects;
  readonly #modules = new Map<string, number>();
  readonly #files = new Map<number, string | null>();

  constructor(graph: HeapGraph, objects: HeapObjects) {
    this.#graph = graph;
    this.#objects = objects;
  }

  /** The way to an object of the graph. */
  of(node: number): HeapPath | null {
    const { parents, labels, values } = this.#graph;
    return this.to(parents[node] ?? -1, {
      label: labels[node] ?? 0,
      value: values[node] ?? 0,
      node,
    });
  }

  /** The way to what the node `parent` refers to by `last`. */
  to(parent: number, last: Step): HeapPath | null {
    const { parents, labels, values } = this.#graph;
    const steps: Step[] = [last];
    let at = parent;
    for (; at >= 0 && steps.length < 4 * STEPS_LIMIT; at = parents[at] ?? -1)
      steps.unshift({ node: at, label: labels[at] ?? 0, value: values[at] ?? 0 });
    // A path through an object's class is a path from that class.
    const byClass = steps.findLastIndex(({ label }) => label === LABEL.class);
    const kept = byClass > 0 ? steps.slice(byClass) : steps;
    const text = kept.map((step, i) => this.#step(step, kept[i - 1])).join('');
    const holder = this.#holder(kept);
    if (byClass > 0) return { ...this.#fromClass(kept, text), holder };
    const path = at <= -2 ? this.#fromFrame(-2 - at, kept, text) : this.#fromModule(kept, text);
    return { ...path, holder };
  }

  #fromModule(steps: readonly Step[], text: string): HeapPath {
    const [first] = steps;
    const module = this.#objects.text(first?.value ?? 0);
    return {
      path: text,
      owner: this.#owner(steps),
      module: module === '' ? null : module,
      file: this.#fileOf(first?.node ?? -1),
      line: null,
    };
  }

  #fromFrame(frame: number, steps: readonly Step[], text: string): HeapPath {
    const running = this.#graph.frames[frame];
    const owner = this.#owner(steps);
    return {
      path: `${running?.function ?? '?'}()${text}`,
      owner: owner === 'global' ? 'local' : owner,
      module: null,
      file: running?.file ?? null,
      line: running?.line ?? null,
    };
  }

  #fromClass(steps: readonly Step[], text: string): HeapPath {
    const type = this.#objects.types.at(steps[0]?.value ?? 0);
    const module = type === null ? null : this.moduleOf(type);
    return { path: text, owner: this.#owner(steps), module, file: null, line: null };
  }

  #owner(steps: readonly Step[]): OwnerKind {
    const has = (label: number): boolean => steps.some((step) => step.label === label);
    if (has(LABEL.closure)) return 'closure';
    if (has(LABEL.defaults)) return 'default';
    if (has(LABEL.local)) return 'local';
    const holders = steps.slice(0, -1).flatMap(({ node }) => this.#formOf(node) ?? []);
    const last = holders.findLast((form) => form !== 'dict' || holders.length === 1);
    if (last === 'type' || steps[0]?.label === LABEL.class) return 'class';
    return last === 'module' ? 'global' : 'instance';
  }

  /** The last attribute on the way, by the class of whose instance it is one. */
  #holder(steps: readonly Step[]): HeapHolder | null {
    const at = steps.findLastIndex(
      ({ label }) => label === LABEL.attribute || label === LABEL.field,
    );
    const from = steps.findLastIndex(({ label }, i) => i < at && label !== LABEL.inner);
    const address = this.#graph.index.addresses[steps[from]?.node ?? -1] ?? 0;
    const type = this.#objects.typeOf(address);
    if (type === null || !type.isHeapType || type.form === 'module' || type.form === 'type')
      return null;
    const rest = steps.slice(at).map((step, i) => this.#step(step, steps[at + i - 1]));
    // What C code has without a name says less than the way to it.
    const [named] = rest;
    if (named === NAMELESS) return null;
    const module = this.moduleOf(type);
    return {
      name: `${this.nameOf(type)}${rest.join('')}`,
      file: module === null ? null : this.#fileOf(this.#moduleNode(module)),
    };
  }

  /** -1 where there is no such module. */
  #moduleNode(name: string): number {
    if (this.#modules.size === 0) {
      const { index, labels, values } = this.#graph;
      for (let node = 0; node < index.size; node++)
        if (labels[node] === LABEL.module)
          this.#modules.set(this.#objects.text(values[node] ?? 0), node);
    }
    return this.#modules.get(name) ?? -1;
  }

  #formOf(node: number): HeapType['form'] | null {
    const address = this.#graph.index.addresses[node] ?? 0;
    return this.#objects.typeOf(address)?.form ?? null;
  }

  #step({ label, value }: Step, before: Step | undefined): string {
    switch (label) {
      case LABEL.module:
        return this.#objects.text(value) || '?';
      case LABEL.attribute:
        return `.${this.#objects.text(value) || '?'}`;
      case LABEL.local:
        return `.${this.#objects.text(value) || '?'}`;
      case LABEL.key:
        return this.#key(value, before);
      case LABEL.item:
        return '[…]';
      case LABEL.field:
        return this.#field(value, before);
      case LABEL.closure:
        return `.<closure>.${this.#objects.text(value) || '?'}`;
      case LABEL.defaults:
        return '.<defaults>';
      case LABEL.class: {
        const type = this.#objects.types.at(value);
        return type === null ? '?' : this.nameOf(type);
      }
      default:
        return '';
    }
  }

  #key(key: number, before: Step | undefined): string {
    const holder = this.#graph.index.addresses[before?.node ?? -1] ?? 0;
    const type = this.#objects.typeOf(holder);
    const size = type === null ? null : this.#objects.entriesOf(holder, type);
    const name = this.#objects.text(key, 41);
    return size !== null && size <= NAME_KEYS && NAME.test(name) ? `['${name}']` : '[…]';
  }

  /** A slot has a name in its class; a field of C has not. */
  #field(offset: number, before: Step | undefined): string {
    const address = this.#graph.index.addresses[before?.node ?? -1] ?? 0;
    let type = this.#objects.typeOf(address);
    for (let depth = 0; type !== null && depth < BASE_DEPTH; depth++) {
      const name = this.#slotName(type, offset);
      if (name !== null) return `.${name}`;
      type = type.base === 0 ? null : this.#objects.types.at(type.base);
    }
    return NAMELESS;
  }

  #slotName(type: HeapType, offset: number): string | null {
    const { memory } = this.#objects;
    let name: string | null = null;
    if (!isPointer(type.dict)) return null;
    this.#objects.dictItems(type.dict, TYPE_DICT_LIMIT, (value, key) => {
      if (this.#objects.typeOf(value)?.name !== 'member_descriptor') return;
      const member = memory.word(value + MEMBER.member);
      if (isPointer(member) && memory.word(member + MEMBER.offset) === offset)
        name ??= this.#objects.text(key);
    });
    return name;
  }

  /** `app.Blob` */
  nameOf(type: HeapType): string {
    const module = this.moduleOf(type);
    return module === null || module === 'builtins' || type.name.includes('.')
      ? type.name
      : `${module}.${type.name}`;
  }

  moduleOf({ dict, isHeapType }: HeapType): string | null {
    return isHeapType && isPointer(dict) ? this.#textIn(dict, '__module__') : null;
  }

  #fileOf(node: number): string | null {
    if (node < 0) return null;
    const known = this.#files.get(node);
    if (known !== undefined) return known;
    const module = this.#graph.index.addresses[node] ?? 0;
    const dict = this.#objects.memory.word(module + 16);
    const isModule = this.#objects.typeOf(module)?.form === 'module';
    const file =
      isModule && this.#objects.typeOf(dict)?.form === 'dict'
        ? this.#textIn(dict, '__file__')
        : null;
    this.#files.set(node, file);
    return file;
  }

  #textIn(dict: number, name: string): string | null {
    let found = '';
    this.#objects.dictItems(dict, 4096, (value, key) => {
      if (found === '' && this.#objects.text(key) === name) found = this.#objects.text(value, 1024);
    });
    return found === '' ? null : found;
  }
}
