import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAttachOptions } from '../src/commands/attach/options.ts';
import { parseLoadOptions } from '../src/commands/load/options.ts';
import { loadUsage } from '../src/commands/load/usage.ts';
import { chooseCleanRule, cleanUsage } from '../src/commands/recordings/clean-options.ts';
import { lsUsage } from '../src/commands/recordings/ls-options.ts';
import { chooseCleanupTarget, cleanupUsage } from '../src/commands/cleanup/options.ts';
import { completionUsage } from '../src/commands/completion/options.ts';
import { chooseTasksOptions, tasksUsage } from '../src/commands/tasks/options.ts';
import { chooseDoctorTarget, doctorUsage } from '../src/commands/doctor/options.ts';
import { heapUsage, parseHeapOptions } from '../src/commands/heap/options.ts';
import { flagsOf, parseCommandLine } from '../src/commands/command-line/command-line.ts';
import { everyVerb, VERBS, verbBelow } from '../src/commands/registry.ts';
import { attachHelp } from '../src/commands/attach/help.ts';
import { parseRunOptions, runUsage } from '../src/commands/run/options.ts';
import { parseProxyOptions, proxyUsage } from '../src/commands/proxy/options.ts';
import { parseProfileOptions, profileUsage } from '../src/commands/profile/options.ts';
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
  words,
  type Page,
} from './docs.ts';

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
    async (_, line) => {
      const [, name, ...behind] = words(line);
      const named = VERBS.find((one) => one.name === name);
      if (named === undefined) {
        expect(['--help', '--version', 'help']).toContain(name);
        return;
      }
      const { verb, args } = verbBelow(named, behind);
      const { values, positionals, command } = parseCommandLine(await verb.usage(), args);
      if (name === 'attach') parseAttachOptions(values, positionals);
      else if (name === 'run') parseRunOptions(values, { positionals, command });
      else if (name === 'load' && positionals[0] === 'merge')
        expect(positionals.length).toBeGreaterThan(1);
      else if (name === 'load') parseLoadOptions(values, positionals, { env: {} });
      else if (name === 'proxy') parseProxyOptions(values, positionals);
      else if (name === 'profile') parseProfileOptions(values, positionals);
      else if (name === 'tasks') chooseTasksOptions(values, positionals);
      else if (name === 'doctor') chooseDoctorTarget(values, positionals);
      else if (name === 'heap') parseHeapOptions(values, positionals);
      else if (name === 'cleanup') chooseCleanupTarget(values, positionals);
      else if (name === 'clean') chooseCleanRule(values);
      else if (verb !== named) expect(verb.name).not.toBe('');
      else if (name === 'ls') expect(positionals).toEqual([]);
      else expect(positionals).toHaveLength(1);
    },
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
