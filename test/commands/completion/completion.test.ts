import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { flagsOf } from '../../../src/commands/command-line/command-line.ts';
import {
  completionModel,
  descriptionsIn,
  wholeUsage,
} from '../../../src/commands/completion/model.ts';
import { SHELLS } from '../../../src/commands/completion/options.ts';
import { VERBS } from '../../../src/commands/registry.ts';
import { start } from '../../platform/processes.ts';
import { program } from '../../programs.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/* Each script is sourced and asked in its own shell: a full run installs one that is missing, `npm test` alone leaves its tests out by name. */

const folder = mkdtempSync(join(tmpdir(), 'tracewright-completion-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function script(shell: string): Promise<string> {
  const environment = fakeEnvironment();
  expect(await main(['completion', shell], environment)).toBe(0);
  return environment.out();
}

beforeAll(async () => {
  for (const shell of SHELLS) writeFileSync(join(folder, shell), await script(shell));
});

const [bash, fish, zsh] = await Promise.all([program('bash'), program('fish'), program('zsh')]);
const verbNames = [...VERBS.map(({ name }) => name), 'help'];

/** What bash would offer for the last of these words. */
function bashOffers(...line: readonly string[]): string[] {
  const ask = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _trace; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync(bash.path(), [
    '--norc',
    '-c',
    ask,
    'bash',
    join(folder, 'bash'),
    ...line,
  ]);
  return out.toString().split('\n').filter(Boolean);
}

/** What fish would offer for this line, with the descriptions. */
function fishRows(line: string): string[] {
  const ask = `source '${join(folder, 'fish')}'; complete -C '${line}'`;
  const out = execFileSync(fish.path(), ['--no-config', '-c', ask], {
    env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
  });
  return out.toString().split('\n').filter(Boolean);
}

/** The same without the descriptions. */
function fishOffers(line: string): string[] {
  return fishRows(line).map((row) => row.split('\t')[0] ?? '');
}

/** Types a line and a tab into an interactive zsh on a terminal of its own, until it shows what is wanted. */
function zshShows(line: string, wanted: string): void {
  const drive = `
    zmodload zsh/zpty
    zpty z zsh -f -i
    zpty -w z "unset zle_bracketed_paste; PS1=; autoload -U compinit; compinit -u -D; source $1; echo rea''dy"
    zpty -r -m z out '*ready*'
    zpty -w -n z "$2"$'\\t'
    zpty -r -m z out "*$3*"
    zpty -d z`;
  execFileSync(zsh.path(), ['-f', '-c', drive, 'zsh', join(folder, 'zsh'), line, wanted], {
    timeout: 15_000,
  });
}

describe('the model', () => {
  it('holds every verb and every flag of the tables, and no other', async () => {
    const { verbs } = await completionModel();
    expect(verbs.map(({ name }) => name)).toEqual(verbNames);
    for (const verb of VERBS) {
      const { options } = await wholeUsage(verb);
      const flags = verbs.find(({ name }) => name === verb.name)?.flags ?? [];
      const spelled = flags.flatMap(({ long, short }) => [
        `--${long}`,
        ...(short === null ? [] : [`-${short}`]),
      ]);
      expect(spelled.toSorted()).toEqual(flagsOf(options).toSorted());
      for (const { long, description } of flags) expect(description, long).not.toBe('');
    }
  });

  it('takes the first clause of a description, over its lines and without the default', () => {
    const help =
      '      --match <pattern>      the one process whose command line contains\n' +
      '                             <pattern>, in any case; /x/ is a pattern\n' +
      '  -d, --duration <time>      how long: 10, 10s\n' +
      '  -f, --format <format>      text (default) or json\n\n' +
      'Text that follows.\n';
    expect([...descriptionsIn(help)]).toEqual([
      ['match', 'the one process whose command line contains <pattern>, in any case'],
      ['duration', 'how long'],
      ['format', 'text or json'],
    ]);
  });
});

describe('any script', () => {
  it.each(SHELLS)(
    'for %s names every verb and long flag, whether or not the shell is installed',
    async (shell) => {
      const text = await script(shell);
      const { verbs } = await completionModel();
      for (const { name, flags } of verbs) {
        expect(text).toContain(name);
        for (const { long } of flags)
          expect(text).toContain(shell === 'fish' ? `-l ${long}` : `--${long}`);
      }
    },
  );

  it('is refused for a shell that there is none for', async () => {
    const environment = fakeEnvironment();
    expect(await main(['completion', 'tcsh'], environment)).toBe(2);
    expect(environment.err()).toContain('bash or zsh or fish');
    expect(await main(['completion'], fakeEnvironment())).toBe(2);
  });
});

describe.runIf(bash.isWanted)('in bash (needs bash)', () => {
  it('completes verbs, and flags of the verb that was typed', async () => {
    expect(bashOffers('trace', '').toSorted()).toEqual(verbNames.toSorted());
    expect(bashOffers('trace', '-q', 'doc')).toEqual(['doctor']);
    for (const verb of VERBS) {
      const offered = bashOffers('trace', verb.name, '-');
      expect(offered.toSorted()).toEqual(flagsOf((await wholeUsage(verb)).options).toSorted());
    }
  });

  it('completes values, also behind the sign, and offers no flag where a text is wanted', () => {
    expect(bashOffers('trace', 'attach', '--format', '')).toEqual(['text', 'json']);
    expect(bashOffers('trace', 'attach', '--format', '=', 'j')).toEqual(['json']);
    expect(bashOffers('trace', 'show', '-f', 't')).toEqual(['text']);
    expect(bashOffers('trace', 'attach', '--duration', '-')).toEqual([]);
    expect(bashOffers('trace', 'show', '/pro')).toEqual(['/proc']);
    expect(bashOffers('trace', 'completion', 'z')).toEqual(['zsh']);
  });

  it('completes the pid of a Node process, and not of a shell', async () => {
    const node = await start(process.execPath, [
      '-e',
      "console.log(''); setInterval(() => {}, 1e3)",
    ]);
    const shell = await start('/bin/sh', ['-c', 'echo; read line']);
    const offered = bashOffers('trace', 'attach', '');
    expect(offered).toContain(String(node.pid));
    expect(offered).not.toContain(String(shell.pid));
    expect(bashOffers('trace', 'doctor', '--pid', String(node.pid))).toContain(String(node.pid));
  });
});

describe.runIf(fish.isWanted)('in fish (needs fish)', () => {
  it('completes verbs, flags, values and processes', async () => {
    expect(fishOffers('trace ').toSorted()).toEqual(verbNames.toSorted());
    for (const verb of VERBS) {
      const offered = fishOffers(`trace ${verb.name} --`);
      const long = flagsOf((await wholeUsage(verb)).options).filter((flag) =>
        flag.startsWith('--'),
      );
      expect(offered.toSorted()).toEqual(long.toSorted());
    }
    expect(fishOffers('trace attach --format ').toSorted()).toEqual(['json', 'text']);
    expect(fishOffers('trace help sho')).toEqual(['show']);
    expect(fishOffers('tracewright doc')).toEqual(['doctor']);
    const node = await start(process.execPath, [
      '-e',
      "console.log(''); setInterval(() => {}, 1e3)",
    ]);
    expect(fishOffers('trace attach ')).toContain(String(node.pid));
  });

  it('shows of a process nothing that was assigned', async () => {
    const { pid } = await start(process.execPath, [
      '--conditions=S3cretValue9',
      '-e',
      "console.log(''); setInterval(() => {}, 1e3)",
    ]);
    expect(fishRows('trace attach ')).toContain(`${pid}\tnode`);
  });
});

describe.runIf(zsh.isWanted)('in zsh (needs zsh)', () => {
  it('parses', () => {
    execFileSync(zsh.path(), ['-n', join(folder, 'zsh')]);
  });

  it('completes verbs, flags and values on a terminal', () => {
    zshShows('trace attach --dur', '--duration');
    zshShows('trace attach --format=j', '--format=json');
    zshShows('trace comp', 'completion');
  });
});
