import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { main } from '../src/cli.ts';
import { flagsOf } from '../src/commands/command-line/command-line.ts';
import { everyVerb, VERBS } from '../src/commands/registry.ts';
import { fakeEnvironment } from './commands/fake-environment.ts';

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment();
  const code = await main(argv, environment);
  return { code, out: environment.out(), err: environment.err() };
}

describe('help', () => {
  it('lists every verb with its summary', async () => {
    const { code, out, err } = await run('--help');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    for (const verb of VERBS) {
      const usage = await verb.usage();
      expect(out).toMatch(new RegExp(`^ {2}${verb.name} .* ${usage.summary}$`, 'm'));
    }
  });

  it('is the same by flag and by verb', async () => {
    for (const { words } of everyVerb()) {
      const texts = [
        await run(...words, '--help'),
        await run('help', ...words),
        await run(...words, '-h'),
      ];
      expect(new Set(texts.map(({ out }) => out)).size).toBe(1);
      expect(texts[0]?.out).toContain(`trace ${words.join(' ')}`);
    }
    expect((await run('help')).out).toBe((await run('-h')).out);
  });

  it('wins over a mistake beside it', async () => {
    expect(await run('attach', '--bogus', '--help')).toMatchObject({ code: 0, err: '' });
  });

  it('belongs to the target behind a double dash', async () => {
    const { code, out } = await run('attach', '--', '--help');
    expect({ code, out }).toEqual({ code: 2, out: '' });
  });

  it('fits into 80 columns', async () => {
    for (const { out } of [
      await run('--help'),
      ...(await Promise.all(everyVerb().map(({ words }) => run(...words, '--help')))),
    ]) {
      for (const line of out.split('\n')) expect(line.length, line).toBeLessThanOrEqual(80);
    }
  });

  it('names exactly the flags that the verb takes', async () => {
    // Every verb takes these and needs not say so; `--inspect` is Node's.
    const unsaid = new Set(['--help', '-h', '--inspect']);
    for (const { verb } of everyVerb()) {
      const usage = await verb.usage();
      const named = usage.help.match(/(?<![\w>-])(?:--?[a-z][a-z-]*|-[A-Z])(?![\w-])/g) ?? [];
      const sorted = (flags: readonly string[]) =>
        [...new Set(flags)].filter((flag) => !unsaid.has(flag)).sort();
      expect(sorted(named), verb.name).toEqual(sorted(flagsOf(usage.options)));
    }
  });
});

describe('version', () => {
  it('is the one in package.json', async () => {
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await run('--version')).toEqual({
      code: 0,
      out: `trace ${manifest.version}\n`,
      err: '',
    });
    expect((await run('-V')).out).toBe(`trace ${manifest.version}\n`);
  });
});

describe('mistakes on the command line', () => {
  it('shows the help on stderr when no verb is given', async () => {
    const { code, out, err } = await run();
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Usage:');
  });

  it('names the verb that was probably meant', async () => {
    expect(await run('atach', '1')).toEqual({
      code: 2,
      out: '',
      err: "trace: unknown verb 'atach'\n       Did you mean trace attach? See trace --help\n",
    });
    expect((await run('frobnicate')).err).toContain('Verbs: attach, run, tasks, load, show');
  });

  it('takes a bare pid for a forgotten verb', async () => {
    expect((await run('4312')).err).toContain('Did you mean trace attach 4312?');
  });

  it('names the flag that was probably meant', async () => {
    const { code, err } = await run('attach', '--durration', '5');
    expect(code).toBe(2);
    expect(err).toBe(
      "trace: unknown option '--durration'\n       Did you mean --duration? See trace attach --help\n",
    );
    expect((await run('attach', '--otlp')).err).toContain('--otlp-endpoint');
    expect((await run('attach', '--zzzzzzzz')).err).not.toContain('Did you mean');
  });

  it('says that a flag needs a value, or takes none', async () => {
    expect((await run('attach', '-d')).err).toContain(
      '-d, --duration needs a value, none was given',
    );
    expect((await run('attach', '-d', '--json')).err).toContain('a flag came instead');
    expect((await run('attach', '--json=yes')).err).toContain('--json takes no value');
  });

  it('cannot be made to print control characters', async () => {
    const { err } = await run('attach', '--\u001b[2Jx');
    expect(err).not.toContain('\u001b');
    expect((await run('\u001b]0;x\u0007')).err).not.toContain('\u001b');
  });

  it('do not show what looks like a credential in what was typed', async () => {
    const typed = [
      ['load', 'ftp://bob:S3cretValue9@h.example'],
      ['load', 'http://h.example', 'http://bob:S3cretValue9@h.example'],
      ['attach', '1', '--otlp-endpoint', 'ftp://bob:S3cretValue9@h.example'],
      ['attach', '1', '--metrics-url', `ftp://bob:S3cretValue9@${'h'.repeat(80)}`],
      ['attach', '1', '--match', 'x --token S3cretValue9'],
      ['attach', 'postgres://bob:S3cretValue9@h.example'],
      ['show', '/nowhere?token=S3cretValue9'],
      ['run', '--api-key', 'S3cretValue9'],
      ['--password=S3cretValue9', 'attach'],
    ];
    for (const argv of typed) {
      const { code, out, err } = await run(...argv);
      expect(code, argv.join(' ')).not.toBe(0);
      expect(err).toMatch(/^trace: ./);
      expect(out + err).not.toContain('S3cret');
    }
  });

  it('takes the flags of every verb before it', async () => {
    const { code, err } = await run('--verbose', 'show');
    expect(code).toBe(2);
    expect(err).toBe(
      'trace: no recording named\n' +
        '       trace show <recording>, the folder that attach printed\n' +
        '       (ERR_USAGE)\n',
    );
  });

  it('knows no flag without a verb but the shared ones', async () => {
    expect((await run('--json')).err).toContain("unknown option '--json'");
    expect(await run('--no-color')).toMatchObject({ code: 2 });
  });
});

describe('a bug in trace', () => {
  it('exits 70 with the stack and asks for a report', async () => {
    const environment = fakeEnvironment();
    const broken = {
      ...environment,
      stdout: {
        ...environment.stdout,
        write: () => {
          throw new RangeError('planted');
        },
      },
    };
    expect(await main(['--help'], broken)).toBe(70);
    expect(environment.err()).toMatch(/bug in trace\n\nRangeError: planted\n {4}at /);
    expect(environment.err()).toContain('Please report it');
  });
});
