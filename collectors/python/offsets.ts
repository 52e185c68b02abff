/**
 * The shape of an offset table: byte offsets of the few fields the reader needs, one table a CPython minor version. Null where a
 * version has no such field.
 */
export interface OffsetTable {
  /** 11 for CPython 3.11. */
  readonly minor: number;
  /** Provenance: the interpreter whose headers the table was compiled from, its PY_VERSION_HEX, and when. */
  readonly version: string;
  readonly hex: number;
  readonly generated: string;
  /** In `_PyRuntime`. */
  readonly runtime: { readonly interpretersHead: number; readonly interpretersMain: number };
  readonly interpreter: {
    readonly next: number;
    readonly threadsHead: number;
    /** `sys.modules`. */
    readonly modules: number;
    /** Head of the list of asyncio's tasks whose thread has ended (3.14 on). */
    readonly asyncioTasks: number | null;
  };
  /** The heads of the collector's generations, one after the other; in `_PyRuntime` in 3.8, in the interpreter since. */
  readonly gc: {
    readonly inRuntime: number | null;
    readonly inInterpreter: number | null;
    readonly generationSize: number;
  };
  /** `pointer`, in the interpreter, leads to the struct from 3.12 on; before, the others count from `_PyRuntime`. */
  readonly gil: {
    readonly pointer: number | null;
    readonly lastHolder: number;
    readonly locked: number;
  };
  /** `currentFrame` lies in the structure that `cframe` points to where there is one (3.11, 3.12). */
  readonly thread: {
    readonly previous: number;
    readonly next: number;
    readonly interpreter: number;
    readonly threadId: number;
    readonly nativeThreadId: number | null;
    readonly cframe: number | null;
    readonly currentFrame: number;
    /** The task that the thread's loop runs, and the head of the list of its tasks (3.14 on; sets of `asyncio.tasks` before). */
    readonly asyncioTask: number | null;
    readonly asyncioTasks: number | null;
  };
  /** PyFrameObject up to 3.10, _PyInterpreterFrame (which alone has an owner) since. */
  readonly frame: {
    readonly code: number;
    /** f_lasti (a 32-bit index) up to 3.10, a pointer into the code object since. */
    readonly instruction: number;
    readonly previous: number;
    readonly owner: number | null;
    readonly locals: number;
  };
  readonly code: {
    readonly constants: number;
    readonly names: number;
    readonly firstLine: number;
    readonly filename: number;
    readonly name: number;
    readonly qualifiedName: number | null;
    readonly localNames: number;
    /** A pointer to a bytes object up to 3.10, the instructions themselves since. */
    readonly bytecode: number;
    /** A 32-bit number of its own for each code object made, until 2^32 were (then 0). */
    readonly version: number | null;
    /** co_lnotab up to 3.9. */
    readonly lineTable: number;
  };
  readonly object: {
    readonly references: number;
    readonly type: number;
    readonly size: number;
    readonly typeName: number;
  };
  readonly unicode: {
    readonly length: number;
    readonly state: number;
    readonly asciiData: number;
    readonly compactData: number;
  };
  /** Where the contents of these objects start. */
  readonly payload: { readonly bytes: number; readonly tuple: number; readonly float: number };
  readonly int: { readonly size: number; readonly digits: number };
  readonly dict: { readonly used: number; readonly keys: number; readonly values: number };
  /** `size` (index slots) up to 3.10; the index's bytes as a power of two, and the kind of entries, since. */
  readonly dictKeys: {
    readonly size: number | null;
    readonly indexBytesLog2: number | null;
    readonly kind: number | null;
    readonly entries: number;
    readonly indices: number;
  };
  readonly set: { readonly used: number; readonly mask: number; readonly table: number };
  readonly list: { readonly items: number };
  readonly typeObject: {
    readonly basicSize: number;
    readonly itemSize: number;
    readonly flags: number;
    readonly base: number;
    readonly dict: number;
    readonly dictOffset: number;
    readonly cachedKeys: number;
  };
  readonly callable: {
    readonly functionCode: number;
    readonly functionGlobals: number;
    readonly functionClosure: number;
    readonly methodFunction: number;
    readonly methodSelf: number;
    readonly builtinSelf: number;
    readonly cell: number;
    readonly weakReference: number;
  };
  /**
   * A generator or coroutine, and where its frame keeps the top of its stack: `stackTop` is a pointer up to 3.9 and from 3.14 on, a 32-bit
   * count in 3.11 to 3.13; 3.10 has a 32-bit `depth` above `stack`.
   */
  readonly generator: {
    readonly frame: number | null;
    readonly innerFrame: number | null;
    readonly state: number | null;
    readonly depth: number | null;
    readonly stack: number | null;
    readonly stackTop: number | null;
  };
  /** Where `_PyRuntime` of 3.13 and later itself states some of the above (its `_Py_DebugOffsets`). */
  readonly selfDescription: SelfDescription | null;
}

/** What a release has otherwise than the one before it. */
type Changes = {
  readonly [K in keyof OffsetTable]?: OffsetTable[K] extends object | null
    ? Partial<NonNullable<OffsetTable[K]>>
    : OffsetTable[K];
};

/** The tables of all releases from the first one and the differences of each from the one before. */
export function releases(
  first: OffsetTable,
  ...others: readonly Changes[]
): readonly OffsetTable[] {
  const tables = [first];
  let last = first;
  for (const changes of others) {
    const groups = Object.entries(changes).map(([name, value]) => {
      const before: unknown = Object.entries(last).find(([key]) => key === name)?.[1];
      const isGroup = typeof value === 'object' && value !== null;
      return [name, isGroup && typeof before === 'object' ? { ...before, ...value } : value];
    });
    last = { ...last, ...Object.fromEntries(groups) };
    tables.push(last);
  }
  return tables;
}

/** Positions within `_Py_DebugOffsets`; each holds a 64-bit number. */
export interface SelfDescription {
  readonly version: number;
  readonly freeThreaded: number;
  readonly interpretersHead: number;
  readonly interpreterNext: number;
  readonly threadsHead: number;
  readonly gilPointer: number;
  readonly threadPrevious: number;
  readonly threadNext: number;
  readonly threadInterpreter: number;
  readonly currentFrame: number;
  readonly nativeThreadId: number;
  readonly frameCode: number;
  readonly frameInstruction: number;
  readonly framePrevious: number;
  readonly frameOwner: number;
  readonly frameLocals: number;
  readonly codeFirstLine: number;
  readonly codeFilename: number;
  readonly codeName: number;
  readonly codeQualifiedName: number;
  readonly codeLineTable: number;
  readonly codeLocalNames: number;
  readonly codeBytecode: number;
}

/** No offset of ours is larger; a self-description that says so is not one. */
const OFFSET_LIMIT = 1024 * 1024;

/**
 * The table with what the process itself states (`stated` gives the 64-bit number at a position of its `_Py_DebugOffsets`) in place
 * of what the headers said.
 */
export function correctedTable(
  table: OffsetTable,
  stated: (position: number) => number,
): OffsetTable {
  const where = table.selfDescription;
  if (where === null) return table;
  const says = (position: number, ours: number): number => {
    const theirs = stated(position);
    return theirs < OFFSET_LIMIT ? theirs : ours;
  };
  const { interpreter, gil, thread, frame, code } = table;
  const head = says(where.interpretersHead, table.runtime.interpretersHead);
  return {
    ...table,
    // It is not stated where the main one stands: beside the head, in all of them.
    runtime: {
      interpretersHead: head,
      interpretersMain: head + table.runtime.interpretersMain - table.runtime.interpretersHead,
    },
    interpreter: {
      ...interpreter,
      next: says(where.interpreterNext, interpreter.next),
      threadsHead: says(where.threadsHead, interpreter.threadsHead),
    },
    gil: { ...gil, pointer: says(where.gilPointer, gil.pointer ?? 0) },
    thread: {
      ...thread,
      previous: says(where.threadPrevious, thread.previous),
      next: says(where.threadNext, thread.next),
      interpreter: says(where.threadInterpreter, thread.interpreter),
      currentFrame: says(where.currentFrame, thread.currentFrame),
      nativeThreadId: says(where.nativeThreadId, thread.nativeThreadId ?? 0),
    },
    frame: {
      code: says(where.frameCode, frame.code),
      instruction: says(where.frameInstruction, frame.instruction),
      previous: says(where.framePrevious, frame.previous),
      owner: says(where.frameOwner, frame.owner ?? 0),
      locals: says(where.frameLocals, frame.locals),
    },
    code: {
      ...code,
      firstLine: says(where.codeFirstLine, code.firstLine),
      filename: says(where.codeFilename, code.filename),
      name: says(where.codeName, code.name),
      qualifiedName: says(where.codeQualifiedName, code.qualifiedName ?? 0),
      localNames: says(where.codeLocalNames, code.localNames),
      bytecode: says(where.codeBytecode, code.bytecode),
      lineTable: says(where.codeLineTable, code.lineTable),
    },
  };
}
