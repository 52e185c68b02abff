import { elfSymbols } from './elf.ts';
import { ProgramFile } from './runtime-binary.ts';

/**
 * What one program file (an executable or a library) brings: decided by the symbols it defines and the constants in it, never by
 * what it is called. Symbols survive `strip` where they are exported, and every one used here is.
 */

/** The runtimes told apart. `native`: none of the others. */
export type RuntimeName = 'python' | 'node' | 'pypy' | 'bun' | 'deno' | 'native' | 'unknown';

/** One program file, judged. */
export interface Program {
  readonly runtime: Exclude<RuntimeName, 'unknown'>;
  /** As precise as the file is certain about: `3.11.7`, `3.10`, `20.20.2`; null when it does not say. */
  readonly version: string | null;
  /** A build whose structures differ from the released ones. */
  readonly variant: 'free-threaded' | 'debug' | null;
  /** Defines libuv's API. */
  readonly libuv: boolean;
  readonly evidence: readonly string[];
}

/** Defined in order: the last one present names the minor version (Python's "What's New", C API sections). */
const PYTHON_SINCE: readonly (readonly [symbol: string, minor: number])[] = [
  ['_PyRuntime', 7],
  ['PyCode_NewWithPosOnlyArgs', 8],
  ['PyModule_AddType', 9],
  ['PyModule_AddObjectRef', 10],
];
const SYMBOL = {
  pythonVersion: 'Py_Version',
  pythonRuntime: '_PyRuntime',
  pythonOld: '_PyThreadState_Current',
  python2: 'PyString_FromString',
  pythonDebug: '_Py_NegativeRefcount',
  pypy: 'pypy_execute_source',
  // node::Start(int, char**)
  node: '_ZN4node5StartEiPPc',
  nodeApi: 'napi_create_function',
  libuv: 'uv_default_loop',
} as const;

/** Judges one file. Throws errno errors of opening and reading. */
export function judgeProgram(path: string): Program {
  const wanted = [...Object.values(SYMBOL), ...PYTHON_SINCE.map(([symbol]) => symbol)];
  const symbols = elfSymbols(path, [...new Set(wanted)])?.symbols ?? new Map<string, number>();
  const libuv = symbols.has(SYMBOL.libuv);
  const file = new ProgramFile(path);
  try {
    const judged = judgePython(file, symbols) ?? judgeJavaScript(file, symbols);
    return { variant: null, ...judged, libuv };
  } finally {
    file.close();
  }
}

type Judged = Omit<Program, 'libuv' | 'variant'> & Partial<Pick<Program, 'variant'>>;

function judgePython(file: ProgramFile, symbols: ReadonlyMap<string, number>): Judged | null {
  // PyPy first: it brings much of CPython's API along.
  if (symbols.has(SYMBOL.pypy))
    return { runtime: 'pypy', version: null, evidence: [`defines ${SYMBOL.pypy}`] };
  const versionAt = symbols.get(SYMBOL.pythonVersion);
  const word = versionAt === undefined ? null : file.at(versionAt, 8);
  if (symbols.has(SYMBOL.pythonRuntime)) {
    const version = word === null ? versionBySymbols(file, symbols) : versionOfHex(word);
    const telling =
      word === null
        ? (PYTHON_SINCE.findLast(([symbol]) => symbols.has(symbol))?.[0] ?? '')
        : `${SYMBOL.pythonVersion} = 0x${word.readUInt32LE(0).toString(16)}`;
    const defined = [...new Set([SYMBOL.pythonRuntime, telling])].join(' and ');
    return {
      runtime: 'python',
      version,
      variant: variantOf(file, symbols),
      evidence: [`defines ${defined}`],
    };
  }
  if (!symbols.has(SYMBOL.pythonOld)) return null;
  // 2.7 and 3.0 to 3.6 differ in everything that is read from outside; which 3.x does not matter.
  const version = symbols.has(SYMBOL.python2) ? '2.7' : null;
  return { runtime: 'python', version, evidence: [`defines ${SYMBOL.pythonOld}`] };
}

/** PY_VERSION_HEX (docs.python.org/3/c-api/apiabiversion.html): major, minor, micro, release level and serial. */
function versionOfHex(word: Buffer): string {
  const hex = word.readUInt32LE(0);
  const release = [hex >>> 24, (hex >>> 16) & 0xff, (hex >>> 8) & 0xff].join('.');
  const level = { 0xa: 'a', 0xb: 'b', 0xc: 'rc' }[(hex >>> 4) & 0xf];
  return level === undefined ? release : `${release}${level}${hex & 0xf}`;
}

/** Before 3.11 no exported constant tells the release: its text is searched, and taken only when one release alone is named. */
function versionBySymbols(file: ProgramFile, symbols: ReadonlyMap<string, number>): string {
  const minor = PYTHON_SINCE.findLast(([symbol]) => symbols.has(symbol))?.[1] ?? 7;
  const pattern = new RegExp(`^(3\\.${minor}\\.\\d{1,2}(?:(?:a|b|rc)\\d+)?\\+?)\\0`);
  const releases = new Set<string>();
  for (const match of file.search('.rodata', `3.${minor}.`, pattern)) releases.add(match[1] ?? '');
  const [only] = releases;
  return releases.size === 1 && only !== undefined ? only : `3.${minor}`;
}

/** 3.13 and later begin _PyRuntime with _Py_DebugOffsets: cookie, version, free_threaded, 8 bytes each. */
function variantOf(file: ProgramFile, symbols: ReadonlyMap<string, number>): Program['variant'] {
  const offsets = file.at(symbols.get(SYMBOL.pythonRuntime) ?? 0, 24);
  if (offsets?.toString('latin1', 0, 8) === 'xdebugpy' && offsets.readUInt32LE(16) === 1)
    return 'free-threaded';
  return symbols.has(SYMBOL.pythonDebug) ? 'debug' : null;
}

function judgeJavaScript(file: ProgramFile, symbols: ReadonlyMap<string, number>): Judged {
  if (symbols.has(SYMBOL.node)) {
    // The inspector's answer to /json/version: `node.js/v20.20.2`. Builds without an inspector leave the version open.
    const version = firstMatch(file, 'node.js/v', /^node\.js\/v(\d+\.\d+\.\d+[-\w.]*)\0/);
    return { runtime: 'node', version, evidence: ['defines node::Start(int, char**)'] };
  }
  // Bun and Deno offer Node's native API without being Node: nothing of libuv's or V8's is where Node has it.
  if (symbols.has(SYMBOL.nodeApi)) {
    const evidence = `defines ${SYMBOL.nodeApi} without node::Start`;
    if (file.hasSection('.bun')) {
      const version = firstMatch(file, 'Bun/', /^Bun\/(\d+\.\d+\.\d+)/);
      return { runtime: 'bun', version, evidence: [evidence, 'has a section .bun'] };
    }
    if (firstMatch(file, 'ext:deno_', /^ext:(deno_\w+)/) !== null) {
      // Other texts name other releases; only its own user agent stands twice in a row, without and with the commit.
      const version = firstMatch(file, 'Deno/', /^Deno\/(\d+\.\d+\.\d+)Deno\/\1\+[0-9a-f]{7}/);
      return { runtime: 'deno', version, evidence: [evidence, 'holds the ext:deno_ modules'] };
    }
  }
  return { runtime: 'native', version: null, evidence: ['defines no known runtime'] };
}

function firstMatch(file: ProgramFile, marker: string, pattern: RegExp): string | null {
  for (const match of file.search('.rodata', marker, pattern)) return match[1] ?? null;
  return null;
}
