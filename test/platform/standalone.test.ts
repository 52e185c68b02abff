import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  moduleCommand,
  ownProgram,
  packageManifest,
  startThread,
} from '../../src/platform/standalone.ts';
import { sourceFiles } from '../architecture.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SEAM = 'src/platform/standalone.ts';

/** What looks for trace's own files, which an executable does not have: lines that do, as `file: line`. */
function lookingForFiles(files: readonly { readonly path: string; readonly text: string }[]) {
  return files
    .filter(({ path }) => path !== SEAM)
    .flatMap(({ path, text }) =>
      text
        .replaceAll(
          /\b(?:startThread|moduleCommand)\(\s*new URL\('\.[^']+', import\.meta\.url\)/g,
          '',
        )
        .split('\n')
        .filter((line) =>
          /\bnew Worker\b|\bimport\.meta\b|\bexecPath\b|\bargv\[[01]\]|\bcreateRequire\b|\b__(?:dir|file)name\b/.test(
            line,
          ),
        )
        .map((line) => `${path}: ${line.trim()}`),
    );
}

describe('trace as a package', () => {
  it('starts threads and processes of its own from files', async () => {
    const module = pathToFileURL(join(ROOT, 'test', 'targets', 'hog.js'));
    expect(moduleCommand(module)).toEqual([
      process.execPath,
      join(ROOT, 'test', 'targets', 'hog.js'),
    ]);
    const thread = startThread(new URL('data:text/javascript,process.exit(7)'), {});
    expect(await new Promise((resolve) => thread.once('exit', resolve))).toBe(7);
  });

  it('is started again by this Node, with absolute paths', () => {
    expect(ownProgram()).toEqual([process.execPath, expect.stringMatching(/^\//)]);
  });

  it('finds its manifest', () => {
    expect(packageManifest()).toMatchObject({ name: 'tracewright' });
  });
});

describe('files of its own', () => {
  it('are looked for in one module alone, so that an executable can do without', () => {
    expect(lookingForFiles(sourceFiles(ROOT, ['src', 'collectors']))).toEqual([]);
  });

  it.each([
    "new Worker(new URL('./worker.js', import.meta.url));",
    'startThread(new URL(name, import.meta.url), {});',
    "readFileSync(new URL('./table.json', import.meta.url));",
    'spawn(process.execPath, [program]);',
    'const program = process.argv[1];',
    "const require = createRequire('/');",
  ])('are noticed when looked for by %s', (line) => {
    expect(
      lookingForFiles([{ path: 'src/commands/planted.ts', text: `// fine\n${line}` }]),
    ).toHaveLength(1);
    expect(lookingForFiles([{ path: SEAM, text: line }])).toEqual([]);
  });

  it('are not looked for by a module that the executable carries', () => {
    const text = "startThread(new URL('./worker.js', import.meta.url), {});";
    expect(lookingForFiles([{ path: 'src/commands/planted.ts', text }])).toEqual([]);
  });
});
