import type { Frame } from '../../src/core/types.ts';
import { pointerAt } from '../../src/platform/memory.ts';
import { lineDecoder, type LineDecoder } from './line-tables.ts';
import { isAddress, Unsound, type PythonObjects, type TextImprint } from './objects.ts';

/** Code objects kept; a large service has some 20 000 but runs few of them. About 1 KiB each. */
const CODE_LIMIT = 4096;
/** Frames (one per instruction seen) kept for one code object. */
const FRAMES_PER_CODE_LIMIT = 1024;
/**
 * A program that makes and drops code in a loop gets the same addresses for all parts of it again and again, with other text in them.
 * So the text is compared on each use, until it was the same this many times, and then every so often (milliseconds).
 */
const SETTLED_AFTER = 32;
const SETTLED_RECHECK_MS = 100;
/**
 * Code that was found the same on that many uses, over at least this long, is a function of the program rather than something made and
 * dropped in a loop: it is believed without a look for the second time. Most of what reading a stack costs, ourselves and the target's
 * memory lock, is looking at code objects that never change. Should it be freed and another code object be made in its place, a stack
 * shows the old name for so long at most.
 */
const TRUSTED_AFTER_MS = 1000;
const TRUSTED_FOR_MS = 500;

/** Above any count of references (an immortal object's is 2^32 − 1), below any link between free blocks (heap addresses). */
const REFERENCES_LIMIT = 2 ** 33;

/** What is known of one code object. */
export interface Code {
  readonly address: number;
  /** co_qualname where there is one (3.11 on), else co_name. Untrusted. */
  readonly name: string;
  readonly file: string;
  readonly firstLine: number;
  /** co_varnames up to 3.10, co_localsplusnames since: index = slot of the frame. */
  localNames(): readonly string[];
  /** How many names that are: the first slots of the frame. */
  localCount(): number;
}

interface KnownCode extends Code {
  /** The fields that tell this code object from another one at the same address. */
  readonly identity: Float64Array;
  /** Instructions, in the unit of a frame's instruction index. */
  readonly length: number;
  readonly lineTable: Buffer;
  readonly frames: Map<number, Frame>;
  /** The reading in which the identity was last compared, when that was, how often it was found the same, and since when. */
  checkedIn: number;
  checkedAt: number;
  checks: number;
  readonly since: number;
  /** The name and the file as they lie in memory, how often they were found unchanged, and when last. */
  readonly imprints: readonly TextImprint[];
  unchanged: number;
  comparedAt: number;
}

/**
 * Code objects by address. They can be freed and their address reused, so each use in a new reading compares every pointer
 * the entry was built from, and the version or the text, before it is trusted again; that of long-settled code now and then.
 */
export class CodeObjects {
  readonly #objects: PythonObjects;
  readonly #known = new Map<number, KnownCode>();
  readonly #decode: LineDecoder;
  readonly #fields: readonly number[];
  readonly #header: Buffer;
  readonly #identity: Float64Array;
  readonly #hasInlineCode: boolean;
  #reading = 0;
  /** When the reading began, in milliseconds. */
  #now = 0;

  constructor(objects: PythonObjects) {
    const { code, minor, object } = objects.table;
    this.#objects = objects;
    this.#decode = lineDecoder(minor);
    this.#hasInlineCode = minor >= 11;
    this.#fields = [
      object.type,
      code.name,
      code.filename,
      code.lineTable,
      code.constants,
      code.names,
      code.localNames,
      // The number of code units up to where the bytecode moved into the object, the bytecode's address before.
      this.#hasInlineCode ? object.size : code.bytecode,
      ...(code.qualifiedName === null ? [] : [code.qualifiedName]),
    ];
    this.#header = Buffer.alloc(Math.max(...this.#fields, code.firstLine, code.version ?? 0) + 8);
    this.#identity = new Float64Array(this.#fields.length + 2);
  }

  /** Starts a new reading: what was compared before is compared again. */
  begin(): void {
    this.#reading++;
    this.#now = performance.now();
  }

  /** The code object at `address`. Throws Unsound or MemoryError. */
  at(address: number): Code {
    return this.#at(address);
  }

  /** The frame that runs the code object at `address` at `instruction`: as stored in the frame (see OffsetTable.frame). */
  frame(address: number, instruction: number): Frame {
    const code = this.#at(address);
    const index = this.#hasInlineCode
      ? (instruction - address - this.#objects.table.code.bytecode) / 2
      : instruction;
    if (!Number.isInteger(index) || index < -1 || index >= code.length) throw new Unsound('range');
    const known = code.frames.get(index);
    if (known !== undefined) return known;
    if (code.frames.size >= FRAMES_PER_CODE_LIMIT) code.frames.clear();
    // f_lasti counts code units in 3.10, whose line table counts bytes.
    const position = this.#objects.table.minor === 10 ? index * 2 : index;
    const line = this.#decode(code.lineTable, code.firstLine, position);
    const frame = { function: code.name, file: code.file, line };
    code.frames.set(index, frame);
    return frame;
  }

  #at(address: number): KnownCode {
    const known = this.#known.get(address);
    if (known !== undefined && (known.checkedIn === this.#reading || this.#isTrusted(known)))
      return known;
    this.#readIdentity(address);
    if (known !== undefined && this.#isIdentityOf(known) && this.#isTextOf(known)) {
      known.checkedIn = this.#reading;
      known.checkedAt = this.#now;
      known.checks++;
      return known;
    }
    this.#known.delete(address);
    const code = this.#build(address);
    const oldest = this.#known.size >= CODE_LIMIT ? this.#known.keys().next() : null;
    if (oldest?.done === false) this.#known.delete(oldest.value);
    this.#known.set(address, code);
    return code;
  }

  #isTrusted({ checks, checkedAt, since }: KnownCode): boolean {
    return (
      checks >= SETTLED_AFTER &&
      checkedAt - since >= TRUSTED_AFTER_MS &&
      this.#now - checkedAt < TRUSTED_FOR_MS
    );
  }

  #readIdentity(address: number): void {
    const { memory, symbols, table } = this.#objects;
    if (!isAddress(address)) throw new Unsound('type');
    memory.readInto(this.#header, address);
    this.#fields.forEach((offset, i) => {
      this.#identity[i] = pointerAt(this.#header, offset);
    });
    // An object that was freed keeps its fields for a while, but where its references were counted the allocator writes a link or 0.
    const { references: at } = table.object;
    // 3.14 has flags in the highest of the four 16-bit parts.
    const references =
      table.minor >= 14 ? this.#header.readUIntLE(at, 6) : pointerAt(this.#header, at);
    if (references === 0 || references >= REFERENCES_LIMIT) throw new Unsound('moved');
    const { firstLine, version } = table.code;
    this.#identity[this.#fields.length] = this.#header.readInt32LE(firstLine);
    this.#identity[this.#fields.length + 1] =
      version === null ? 0 : this.#header.readUInt32LE(version);
    if (this.#identity[0] !== symbols.codeType) throw new Unsound('type');
  }

  #isIdentityOf(code: KnownCode): boolean {
    return this.#identity.every((field, i) => field === code.identity[i]);
  }

  /** Whether the name and the file are as they were, as far as the code object's version does not tell. */
  #isTextOf(code: KnownCode): boolean {
    const isVersioned = code.identity.at(-1) !== 0;
    if (isVersioned) return true;
    if (code.unchanged >= SETTLED_AFTER && this.#now - code.comparedAt < SETTLED_RECHECK_MS)
      return true;
    code.comparedAt = this.#now;
    code.unchanged++;
    return code.imprints.every((imprint) => this.#objects.isStill(imprint));
  }

  #build(address: number): KnownCode {
    const objects = this.#objects;
    const { code, object } = objects.table;
    const header = this.#header;
    const texts = [
      pointerAt(header, code.qualifiedName ?? code.name),
      pointerAt(header, code.filename),
    ];
    const imprints = texts.map((text) => objects.imprint(text));
    const [name = '', file = ''] = texts.map((text) => objects.text(text));
    if (name === '') throw new Unsound('text');
    const localNames = pointerAt(header, code.localNames);
    let localCount: number | null = null;
    const built = {
      address,
      name,
      file,
      firstLine: header.readInt32LE(code.firstLine),
      lineTable: objects.bytes(pointerAt(header, code.lineTable)),
      length: this.#hasInlineCode
        ? pointerAt(header, object.size)
        : // f_lasti is a byte index up to 3.9, a code unit index in 3.10.
          objects.bytesLength(pointerAt(header, code.bytecode)) /
          (objects.table.minor === 10 ? 2 : 1),
      localNames: () => objects.texts(localNames),
      localCount: () => (localCount ??= objects.tupleLength(localNames)),
      identity: this.#identity.slice(),
      frames: new Map<number, Frame>(),
      checkedIn: this.#reading,
      checkedAt: this.#now,
      checks: 0,
      since: this.#now,
      imprints,
      unchanged: 0,
      comparedAt: 0,
    };
    // Freed or made anew meanwhile, the parts would be of different code objects. If it lives and all are as they were just before,
    // they are its own.
    this.#readIdentity(address);
    if (!this.#isIdentityOf(built) || !imprints.every((imprint) => objects.isStill(imprint)))
      throw new Unsound('moved');
    return built;
  }
}
