import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadUsage } from '../src/commands/load/usage.ts';
import { cleanUsage } from '../src/commands/recordings/clean-options.ts';
import { lsUsage } from '../src/commands/recordings/ls-options.ts';
import { cleanupUsage } from '../src/commands/cleanup/options.ts';
import { completionUsage } from '../src/commands/completion/options.ts';
import { tasksUsage } from '../src/commands/tasks/options.ts';
import { explainUsage } from '../src/commands/explain/options.ts';
import { doctorUsage } from '../src/commands/doctor/options.ts';
import { heapUsage } from '../src/commands/heap/options.ts';
import { flagsOf } from '../src/commands/command-line/command-line.ts';
import { everyVerb } from '../src/commands/registry.ts';
import { attachHelp } from '../src/commands/attach/help.ts';
import { runUsage } from '../src/commands/run/options.ts';
import { proxyUsage } from '../src/commands/proxy/options.ts';
import { profileUsage } from '../src/commands/profile/options.ts';
import { HELP } from '../src/commands/command-line/help.ts';
import { reproNewUsage } from '../src/commands/repro/new/usage.ts';
import { reproExploreUsage } from '../src/commands/repro/explore/usage.ts';
import { reproReplayUsage } from '../src/commands/repro/replay/usage.ts';
import { reproShrinkUsage } from '../src/commands/repro/shrink/usage.ts';
import { reproRunUsage } from '../src/commands/repro/run/usage.ts';
import { reproUsage } from '../src/commands/repro/usage.ts';
import { showUsage } from '../src/commands/recordings/show-options.ts';
import {
  anchors,
  examples,
  helpExamples,
  localLinks,
  mentionedFlags,
  pages,
  type Page,
} from './docs.ts';
import { parseTraceCommand } from './trace-command.ts';

const ROOT = join(import.meta.dirname, '..');
const all = pages(ROOT);
const helps = [
  HELP,
  attachHelp,
  runUsage.help,
  loadUsage.help,
  showUsage.help,
  doctorUsage.help,
  tasksUsage.help,
  cleanupUsage.help,
  lsUsage.help,
  cleanUsage.help,
  completionUsage.help,
  reproUsage.help,
  reproNewUsage.help,
  reproRunUsage.help,
  profileUsage.help,
  heapUsage.help,
  explainUsage.help,
  proxyUsage.help,
  reproExploreUsage.help,
  reproReplayUsage.help,
  reproShrinkUsage.help,
].map((text) => ({ path: 'help', text }));
const shown = [...all.flatMap(examples), ...helps.flatMap(helpExamples)];

function page(path: string): Page {
  const found = all.find((one) => one.path === path);
  if (found === undefined) throw new Error(`no page ${path}`);
  return found;
}

describe('links', () => {
  it.each(all.map((one) => [one.path, one] as const))('of %s lead somewhere', (path, one) => {
    const broken = localLinks(one).filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : join(dirname(path), file);
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchors(page(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe('examples', () => {
  it('are there', () => {
    expect(shown.length).toBeGreaterThan(8);
  });

  it.each(shown.map(({ page: path, line }) => [path, line] as const))(
    'of %s parse: %s',
    (_, line) => parseTraceCommand(line),
  );
});

describe('flags', () => {
  it('mentioned on our pages exist', async () => {
    const known = new Set(['-V', '--version', '-h', '--help']);
    for (const { verb } of everyVerb()) {
      const { options, foreign = {} } = await verb.usage();
      for (const flag of flagsOf({ ...options, ...foreign })) known.add(flag);
    }
    // Docker's, Node's and the package manager's.
    const foreign = new Set(['--cap-add', '--inspect', '--inspect-port', '--permission', '-e']);
    for (const path of [
      'README.md',
      'docs/attach.md',
      'docs/flight-recorder.md',
      'docs/run.md',
      'docs/load.md',
      'docs/jaeger.md',
      'docs/doctor.md',
      'docs/profile.md',
      'docs/heap.md',
      'docs/explain.md',
      'docs/tasks.md',
      'docs/cleanup.md',
      'docs/ls.md',
      'docs/clean.md',
      'docs/repro.md',
      'docs/proxy.md',
      'docs/hypotheses.md',
      'docs/schedules.md',
      'docs/architecture.md',
      'SECURITY.md',
    ]) {
      const unknown = mentionedFlags(page(path)).filter(
        (flag) => !known.has(flag) && !foreign.has(flag),
      );
      expect(unknown, path).toEqual([]);
    }
  });
});

describe('SECURITY.md', () => {
  it('names tests that there are', () => {
    const named = [...page('SECURITY.md').text.matchAll(/`(test\/[^`\s]+)`/g)].map(
      ([, path = '']) => path,
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});

describe('docs/dependencies.md', () => {
  it('names every package of package.json and no other', () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    const [atRunTime = '', building = ''] = page('docs/dependencies.md').text.split(
      '## For building and testing',
    );
    const rows = (text: string) =>
      [...text.matchAll(/^\| `([^`]+)` \| [\d.]+ \|/gm)].map(([, name = '']) => name).sort();
    const [table = ''] = building.split('## Frozen lines');
    expect(rows(atRunTime)).toEqual(Object.keys(manifest.dependencies).sort());
    expect(rows(table)).toEqual(Object.keys(manifest.devDependencies).sort());
  });
});

describe('exit codes', () => {
  it('are the same in the help and on the architecture page', () => {
    const codes = ['0', '1', '2', '3', '4', '5', '6', '70', '130', '143'];
    const contract = page('docs/architecture.md').text;
    for (const code of codes) {
      for (const text of [HELP, attachHelp]) {
        expect(text).toMatch(new RegExp(`^ {2}(?:.* {2,})?${code} {2,4}\\S`, 'm'));
      }
      expect(contract).toMatch(new RegExp(`^\\| (?:\\d+, )?${code}(?:, \\d+)? \\|`, 'm'));
    }
  });
});
