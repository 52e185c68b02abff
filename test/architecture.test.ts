import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  importsOf,
  openers,
  lookUpViolations,
  packagesOf,
  rankViolations,
  sourceFiles,
  standingOf,
  touchViolations,
} from './architecture.ts';

const ROOT = join(import.meta.dirname, '..');
const sources = sourceFiles(ROOT, ['src', 'collectors', 'repro']);

/** 250 is the aim, and what is over it should be split; 400 is where it stops. */
const LINES_LIMIT = 400;

describe('ranks', () => {
  it('are kept: a module imports its own folder or a lower rank', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(rankViolations(sources)).toEqual([]);
  });

  it('are core, platform, what stands beside, commands, edge', () => {
    expect(
      [
        'src/core/types.ts',
        'src/platform/proc.ts',
        'src/report/json.ts',
        'collectors/python/frames.ts',
        'src/commands/recordings/show.ts',
        'src/cli.ts',
        'scripts/x.ts',
      ].map(standingOf),
    ).toEqual([
      { rank: 0, unit: 'src/core' },
      { rank: 1, unit: 'src/platform' },
      { rank: 2, unit: 'src/report' },
      { rank: 2, unit: 'collectors/python' },
      { rank: 3, unit: 'src/commands' },
      { rank: 4, unit: 'src' },
      null,
    ]);
  });

  it.each([
    ['src/core/x.ts', "import { a } from '../platform/proc.ts';"],
    ['src/report/x.ts', "import { detectAll } from '../analysis/detectors.ts';"],
    ['src/report/x.ts', "import type { A } from '../analysis/detectors.ts';"],
    ['src/report/x.ts', "export { a } from '../commands/command.ts';"],
    ['collectors/python/x.ts', "const a = await import('../node/cdp.ts');"],
    ['collectors/python/x.ts', "new Worker(new URL('../sampler/worker.ts', import.meta.url))"],
    ['src/commands/x.ts', "import { main } from '../cli.ts';"],
    ['src/platform/x.ts', "import {\n  a,\n  b,\n} from '../otel/sink.ts';"],
    ['src/loose.ts', ''],
    ['src/cli.ts', "import '../scripts/build.ts';"],
  ])('are noticed when %s breaks them', (path, text) => {
    expect(rankViolations([{ path, text }])).toHaveLength(1);
  });

  it('let the sampler join the loop, the stacks and the inspector, and nothing else', () => {
    const importing = (folder: string) => [
      { path: 'collectors/sampler/worker.ts', text: `import { a } from '../${folder}/a.ts';` },
    ];
    for (const folder of ['event-loop', 'python', 'node']) {
      expect(rankViolations(importing(folder))).toEqual([]);
    }
    expect(rankViolations(importing('process'))).toHaveLength(1);
  });

  it('are read from every form of import', () => {
    expect(
      importsOf(
        "import a from 'one';\nimport type { b } from './two.ts';\nexport { c } from 'three';\n" +
          "import 'four';\nawait import('five');\nconst x = { from: 'not' };",
      ),
    ).toEqual(['one', './two.ts', 'three', 'four', 'five']);
  });
});

describe('packages', () => {
  it('do not come into core, analysis or report', () => {
    const pure = /^src\/(?:core|analysis|report)\//;
    const found = sources
      .filter(({ path }) => pure.test(path))
      .flatMap(({ path, text }) => packagesOf(text).map((name) => `${path} → ${name}`));
    expect(found).toEqual([]);
  });
});

describe('the target', () => {
  it('is changed by no module but src/platform/touch.ts', () => {
    expect(touchViolations(sources)).toEqual([]);
  });

  it.each([
    "process.kill(pid, 'SIGTERM');",
    'process . kill(pid)',
    'kill(pid, 0);',
    "spawn('kill', [String(pid)])",
    "const signal = 'SIGUSR1';",
    "process['kill'](pid)",
    'process?.kill(pid)',
    'process\n  .kill(pid)',
    'process._debugProcess(pid)',
    'const { kill: end } = process;',
    "import { kill as end } from 'node:process';",
    "spawn('gdb', ['-p', pid])",
    "connection.sendUnchecked('Runtime.evaluate', {}, 1)",
    "send('NodeWorker.sendMessageToWorker', {})",
    "session.send('Runtime.evaluate', { expression })",
    "session.send('Runtime.callFunctionOn')",
    "openSync(`/proc/${pid}/mem`, 'r+')",
    'openSync(path, constants.O_RDWR)',
    'writeFileSync(`/proc/${pid}/mem`, bytes)',
    "mkdirSync('/sys/kernel/tracing/instances/trace')",
    "const mount = 'tracefs';",
    'library.process_vm_writev(pid)',
    'ptrace(PTRACE_ATTACH, pid)',
  ])('is guarded against %s', (line) => {
    const planted = { path: 'collectors/python/planted.ts', text: `// fine\n${line}` };
    expect(touchViolations([planted])[0]).toMatch(/^collectors\/python\/planted\.ts:2 /);
    expect(touchViolations([{ ...planted, path: 'src/platform/touch.ts' }])).toEqual([]);
  });

  it.each([
    '// process.kill(pid) would end it',
    "const reason = 'the application handles SIGUSR1 itself';",
    ' * never Runtime.evaluate',
    'child.kill();',
    "process.kill(process.pid, 'SIGHUP');",
    'const skill = 1; skill(1);',
    "openSync(path, 'r')",
    "createWriteStream(path, { flags: 'a' })",
  ])('is not seen in danger by %s', (text) => {
    expect(touchViolations([{ path: 'src/recording/writer.ts', text }])).toEqual([]);
  });
});

/** The one reader of files that others may have put where they are. */
const READER = 'src/platform/outside-file.ts';

/**
 * Who else opens files, and which: none of them by a name that a stranger can put something at, but
 * where it says so.
 */
const OPENING: Readonly<Record<string, string>> = {
  'collectors/node/agent.ts': 'evaluated in the target, of its own tables',
  'collectors/node/inspector.ts': '/proc',
  'collectors/node/refusal.ts': '/proc',
  'collectors/process/tcp-table.ts': '/proc',
  'collectors/python/thread-ids.ts': '/proc',
  'repro/schedules/course.ts': 'written by a run of ours',
  'repro/schedules/program.ts': 'the program that is about to be run',
  'src/commands/heap/snapshot.ts': 'written, new',
  'src/commands/load/plan.ts': 'named on the command line, a pipe too',
  'src/commands/load/request-log.ts': 'written',
  'src/commands/profile/exact.ts': 'the tracing of the kernel',
  'src/commands/repro/new/args-file.ts': 'named on the command line, a pipe too',
  'src/commands/session/backend-server.ts': 'written, new',
  'src/commands/session/editor.ts': 'in a temporary folder of ours',
  'src/commands/session/environment/machine.ts': "the system's",
  'src/commands/session/environment/runtimes.ts': "the system's",
  'src/commands/session/git.ts': 'of a checkout, looked at before',
  'src/load/engine/thread-cpu.ts': '/proc',
  'src/otel/tls.ts': 'named by variables of the user',
  'src/platform/elf.ts': "the target's programs",
  'src/platform/environ.ts': '/proc',
  'src/platform/kernel-log.ts': "the kernel's",
  'src/platform/memory.ts': '/proc',
  'src/platform/open-files.ts': '/proc',
  'src/platform/output-file.ts': 'written',
  'src/platform/permission.ts': '/proc',
  'src/platform/proc-kept-file.ts': '/proc',
  'src/platform/proc.ts': '/proc',
  'src/platform/regular-file.ts': 'of a target, by its own checks',
  'src/platform/runtime-binary.ts': "the target's programs",
  'src/platform/sockets.ts': '/proc',
  'src/platform/standalone.ts': 'of this package',
  'src/platform/target-refusal.ts': "the system's",
  'src/platform/undo-journal.ts': 'written, new',
  'src/platform/visible-devices.ts': '/proc',
  'src/recording/files.ts': 'written, new; and what was written, known again',
  'src/recording/folder.ts': 'folders',
  'src/recording/remove.ts': 'folders',
  'src/session/file-lock.ts': 'written, new',
  'src/session/store.ts': 'written, new',
};

describe('files from outside', () => {
  it('are opened by one module, and others are known to open what is none', () => {
    const found = openers(sources);
    expect(found).toContain(READER);
    expect(found.filter((path) => path !== READER && !(path in OPENING))).toEqual([]);
  });

  it.each([
    "import { readFileSync } from 'node:fs';",
    "import { lstatSync, openSync as take } from 'node:fs';",
    "import {\n  type FileHandle,\n  open,\n} from 'node:fs/promises';",
    "import * as fs from 'node:fs';",
    "import fs from 'fs';",
    "const { readFile } = await import('node:fs/promises');",
    "const fs = process.getBuiltinModule('node:fs');",
  ])('are guarded against %s', (text) => {
    expect(openers([{ path: 'src/config/x.ts', text }])).toEqual(['src/config/x.ts']);
  });

  it.each([
    "import { statSync, writeFileSync } from 'node:fs';",
    "import type { FileHandle } from 'node:fs/promises';",
    "import { open } from './folder.ts';",
  ])('are not seen opened by %s', (text) => {
    expect(openers([{ path: 'src/config/x.ts', text }])).toEqual([]);
  });
});

describe('programs', () => {
  it('that are started by a name are looked up in one module', () => {
    expect(lookUpViolations(sources)).toEqual([]);
  });

  it('are git in one module alone', () => {
    const naming = sources.filter(({ text }) => /['"`]git['"`]/.test(text));
    expect(naming.map(({ path }) => path)).toEqual(['src/platform/git.ts']);
  });

  it.each([
    "import { spawn } from 'node:child_process';\nspawn(program, []);",
    "import { type ChildProcess, execFile } from 'node:child_process';\nexecFile(program);",
    "import { spawn } from 'node:child_process';\nimport { programFor } from './find-program.ts';\nspawn('gh', []);",
  ])('are noticed when they are not: %j', (text) => {
    expect(lookUpViolations([{ path: 'src/platform/x.ts', text }])).toHaveLength(1);
  });

  it('are not seen where only a type is taken, or a path is written out', () => {
    const type = "import type { ChildProcess } from 'node:child_process';";
    const path =
      "import { spawn } from 'node:child_process';\nimport { a } from './find-program.ts';\nspawn('/bin/sh', []);";
    for (const text of [type, path])
      expect(lookUpViolations([{ path: 'src/platform/x.ts', text }])).toEqual([]);
  });
});

describe('sizes', () => {
  it(`stay under ${LINES_LIMIT} lines a file`, () => {
    const large = sources
      .map(({ path, text }) => ({ path, lines: text.split('\n').length }))
      .filter(({ lines }) => lines > LINES_LIMIT);
    expect(large).toEqual([]);
  });
});
