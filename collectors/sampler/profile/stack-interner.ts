import type { Frame } from '../../../src/core/types.ts';

/** Parts of stacks kept, some 150 bytes each; a program that shows more gets one name for what is further. */
const NODE_LIMIT = 400_000;
const FURTHER: readonly Frame[] = [{ function: '(further stacks)', file: '', line: null }];

interface Node {
  readonly below: Map<number, Node>;
  /** The number of the stack that ends here; -1: none does. */
  stack: number;
}

/** Numbers for stacks, found by walking from the outermost frame: no text is put together for a stack that was seen before. */
export class StackInterner {
  readonly #byFrame = new WeakMap<Frame, number>();
  readonly #byText = new Map<string, number>();
  readonly #root: Node = { below: new Map(), stack: -1 };
  #nodes = 0;
  #count = 0;
  #further = -1;
  #fresh: (readonly Frame[])[] = [];

  /** The stack's number; `frames` innermost first. */
  idOf(frames: readonly Frame[]): number {
    let node = this.#root;
    for (let i = frames.length - 1; i >= 0; i--) {
      const frame = frames[i];
      if (frame === undefined) continue;
      const id = this.#frameId(frame);
      let next = node.below.get(id);
      if (next === undefined) {
        if (this.#nodes >= NODE_LIMIT) return this.#furtherId();
        this.#nodes++;
        next = { below: new Map(), stack: -1 };
        node.below.set(id, next);
      }
      node = next;
    }
    if (node.stack < 0) node.stack = this.#add(frames);
    return node.stack;
  }

  /** Stacks first seen since the last call, and the number of the first of them. */
  takeFresh(): { readonly first: number; readonly stacks: readonly (readonly Frame[])[] } {
    const stacks = this.#fresh;
    this.#fresh = [];
    return { first: this.#count - stacks.length, stacks };
  }

  #frameId(frame: Frame): number {
    const known = this.#byFrame.get(frame);
    if (known !== undefined) return known;
    const text = `${frame.function}\t${frame.file}\t${frame.line}`;
    const id = this.#byText.get(text) ?? this.#byText.size;
    this.#byText.set(text, id);
    this.#byFrame.set(frame, id);
    return id;
  }

  #furtherId(): number {
    if (this.#further < 0) this.#further = this.#add(FURTHER);
    return this.#further;
  }

  #add(frames: readonly Frame[]): number {
    this.#fresh.push(frames);
    return this.#count++;
  }
}
