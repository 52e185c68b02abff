import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';

/** One source file, with its path from the root of the repository. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Every TypeScript file under the given folders. */
export function sourceFiles(root: string, folders: readonly string[]): SourceFile[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => {
        const file = join(entry.parentPath, entry.name);
        return { path: relative(root, file), text: readFileSync(file, 'utf8') };
      }),
  );
}

/** Where a module stands: lower ranks know nothing of higher ones, and neighbours of one rank nothing of each other. */
export interface Standing {
  readonly rank: number;
  /** The folder whose modules may import each other. */
  readonly unit: string;
}

/** Null for a file in no known place. */
export function standingOf(path: string): Standing | null {
  const [top, folder, ...rest] = path.split('/');
  if (folder === undefined) return null;
  if (top === 'collectors') return { rank: 2, unit: rest.length === 0 ? top : `${top}/${folder}` };
  if (top === 'repro') return { rank: 2, unit: top };
  if (top !== 'src') return null;
  if (rest.length === 0) {
    return ['main.ts', 'cli.ts', 'index.ts'].includes(folder) ? { rank: 4, unit: 'src' } : null;
  }
  const rank = { core: 0, platform: 1, commands: 3 }[folder] ?? 2;
  return { rank, unit: `src/${folder}` };
}

/** The sampler joins the loop, its stacks and Node's inspector in one worker: architecture.md, decision 15. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  'collectors/sampler': ['collectors/event-loop', 'collectors/python', 'collectors/node'],
};

/** What a file imports, static, dynamic or by `new URL` (workers), as written. */
export function importsOf(text: string): string[] {
  const pattern =
    /(?:^|[\s;}])(?:import|export)\s(?:[^'";]*?\sfrom\s*)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|new URL\(\s*['"](\.[^'"]+)['"]/g;
  return [...text.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

/** Imports that break the ranks, as `from → to`. */
export function rankViolations(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const from = standingOf(path);
    if (from === null) return [`${path} stands in no known place`];
    return importsOf(text)
      .filter((specifier) => specifier.startsWith('.'))
      .flatMap((specifier) => {
        const target = posix.join(dirname(path), specifier);
        const to = standingOf(target);
        if (to === null) return [`${path} → ${target}: no known place`];
        const allowed =
          to.unit === from.unit ||
          to.rank < from.rank ||
          (EXCEPTIONS[from.unit] ?? []).includes(to.unit);
        return allowed ? [] : [`${path} → ${target}`];
      });
  });
}

/** Packages that a file imports, without Node's own. */
export function packagesOf(text: string): string[] {
  return importsOf(text).filter(
    (specifier) => !specifier.startsWith('.') && !specifier.startsWith('node:'),
  );
}

/** What of `node:fs` opens a file for reading. */
const OPENERS: ReadonlySet<string> = new Set([
  'createReadStream',
  'open',
  'openAsBlob',
  'openSync',
  'readFile',
  'readFileSync',
]);

/** The files that can open one for reading, by what they import of `node:fs`. */
export function openers(files: readonly SourceFile[]): string[] {
  const named = /\bimport\s*\{([^}]*)\}\s*from\s*['"](?:node:)?fs(?:\/promises)?['"]/g;
  const whole = /\bimport\s+(?:\*\s*as\s+)?\w+\s+from\s*['"](?:node:)?fs/;
  const late = /\b(?:import|require|getBuiltinModule)\(\s*['"](?:node:)?fs/;
  return files
    .filter(({ text }) => {
      const names = [...text.matchAll(named)].flatMap(([, list = '']) => list.split(','));
      // `type X` is no value, and `open as take` is still `open`.
      const imported = names.map((name) => name.trim().split(/\s+as\s+/)[0] ?? '');
      const isWhole = [whole, late].some((one) => one.test(text));
      return isWhole || imported.some((name) => OPENERS.has(name));
    })
    .map(({ path }) => path);
}

/** The one module that may change a target. */
const TOUCH = 'src/platform/touch.ts';

/** What changes a target, by how it looks in source. Comments may speak of it. */
const TOUCHES: readonly {
  readonly what: string;
  readonly pattern: RegExp;
  /** A module that may name it, because it only says whether it is there, or defines it. */
  readonly except?: string;
}[] = [
  {
    what: 'signals a process',
    pattern:
      // To itself a process may send what it likes.
      /\bprocess\s*(?:\?\.|\.)\s*(?:kill\b(?!\(process\.pid, )|_debugProcess\b)|\bprocess\s*\[|(?<![\w.$])kill\s*\(|['"`](?:kill|pkill|gdb|nsenter)['"`]|\bkill\b[^;]*(?:=\s*process\b|\bfrom\s+['"](?:node:)?process['"])/,
  },
  // As a value; a sentence may speak of it.
  {
    what: 'names the opening signal',
    pattern: /['"`]SIGUSR1['"`]/,
    // Has it do nothing to trace itself.
    except: 'src/platform/own-signals.ts',
  },
  {
    what: 'sends any command to an inspector',
    pattern: /\bsendUnchecked\b/,
    except: 'src/platform/cdp.ts',
  },
  {
    what: 'reaches for workers of the target, which crashes it (docs/decisions/0009)',
    pattern: /['"`]NodeWorker\./,
  },
  {
    what: 'evaluates in the target',
    pattern:
      /Runtime\.(?:evaluate|callFunctionOn|runScript|compileScript|addBinding)|Debugger\.(?:evaluateOnCallFrame|setScriptSource|pause|setBreakpoint)/,
  },
  {
    what: 'opens for reading and writing',
    pattern: /['"`](?:r\+|rs\+|w\+|a\+|ax\+|wx\+)['"`]|\bO_RDWR\b/,
  },
  {
    what: 'writes below /proc',
    pattern:
      /(?:writeFile|writeFileSync|appendFile|appendFileSync|createWriteStream)\(\s*['"`]\/proc\//,
  },
  {
    what: 'uses tracefs',
    pattern: /\/sys\/kernel\/(?:debug\/)?tracing|\btracefs\b/,
    except: 'src/platform/kernel-features.ts',
  },
  {
    what: 'writes memory or controls by ptrace',
    pattern: /process_vm_writev|PTRACE_(?:POKE|SET|ATTACH|SEIZE|INTERRUPT|CONT)\w*/,
  },
];

/** Lines outside `touch.ts` that change a target, as `file:line what`. */
export function touchViolations(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path !== TOUCH)
    .flatMap(({ path, text }) =>
      joinedLines(text).flatMap(([line, i]) => {
        if (/^\s*(?:\/\/|\/\*|\*)/.test(line)) return [];
        return TOUCHES.filter(({ pattern, except }) => path !== except && pattern.test(line)).map(
          ({ what }) => `${path}:${i + 1} ${what}`,
        );
      }),
    );
}

/** Modules that are handed a path, or the words of whoever typed a command for a shell. */
const HANDED_PATHS: ReadonlySet<string> = new Set([
  'collectors/gpu/smi.ts',
  'collectors/node/guardian-process.ts',
  'collectors/process/native-stacks.ts',
  'src/platform/limited-look.ts',
  'src/platform/started-command.ts',
]);

/** Modules that start a program by a name that the one look-up (find-program.ts) has not seen. */
export function lookUpViolations(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const taken = /^import \{([^}]*)\} from 'node:child_process'/m.exec(text)?.[1] ?? '';
    const names = taken.split(',').map((one) => one.trim());
    if (names.every((one) => one === '' || one.startsWith('type '))) return [];
    const asks = importsOf(text).some((one) => one.endsWith('/find-program.ts'));
    const named = /\b(?:spawn|exec\w*|fork|run)\(\s*['"`](?!\/)/.test(text);
    return (asks || HANDED_PATHS.has(path)) && (!named || HANDED_PATHS.has(path)) ? [] : [path];
  });
}

/** Lines with their numbers from 0; one that goes on with a member of what stands before it (`process⏎.kill`) is joined to that. */
function joinedLines(text: string): readonly (readonly [string, number])[] {
  const joined: [string, number][] = [];
  for (const [i, line] of text.split('\n').entries()) {
    const before = joined.at(-1);
    if (before !== undefined && /^\s*\??\.\s*\w/.test(line)) before[0] += line.trim();
    else joined.push([line, i]);
  }
  return joined;
}
