import { execFileSync } from 'node:child_process';
import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/commands/command-line/parse.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { UNIT_SECONDS } from '../../src/core/duration.ts';

let root: string;
let cwd: string;
let env: Record<string, string>;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
  cwd = join(root, 'project');
  env = { HOME: root, XDG_CONFIG_HOME: join(root, 'xdg') };
  await mkdir(join(cwd, '.tracewright'), { recursive: true });
  await mkdir(join(root, 'xdg', 'tracewright'), { recursive: true });
});
afterEach(() => rm(root, { recursive: true, force: true }));

const project = (text: string) => writeFile(join(cwd, '.tracewright', 'config.json'), text);
const user = (text: string) => writeFile(join(root, 'xdg', 'tracewright', 'config.json'), text);
const load = (more: Record<string, string> = {}): Promise<Config> =>
  loadConfig({ cwd, env: { ...env, ...more } });

describe('configuration', () => {
  it('is empty when nothing is set', async () => {
    expect(await load()).toEqual({});
  });

  it('takes the environment over the project over the user, key by key', async () => {
    await user(
      '{"duration": "1m", "lag_threshold": 0.2, "output": "u", "otlp_endpoint": "http://h:4318"}',
    );
    await project('{"duration": 20, "lag_threshold": "100ms"}');
    expect(await load({ TRACEWRIGHT_DURATION: '5s' })).toEqual({
      duration: 5,
      lagThreshold: 0.1,
      output: join(root, 'xdg', 'tracewright', 'u'),
      otlpEndpoint: 'http://h:4318',
    });
  });

  it('lets the OTEL variables decide where OTLP goes', async () => {
    await user('{"otlp_endpoint": "http://h:4318"}');
    expect(await load({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/' })).toEqual({});
  });

  it('takes the place where traces are looked at from the user alone', async () => {
    const url = 'https://grafana.example/explore?trace={trace_id}';
    await user(JSON.stringify({ trace_url: url }));
    expect(await load()).toEqual({ traceUrl: url });
    expect(await load({ TRACEWRIGHT_TRACE_URL: 'http://j/trace/{trace_id}' })).toEqual({
      traceUrl: 'http://j/trace/{trace_id}',
    });
    for (const wrong of ['http://j/trace/', 'j/{trace_id}', 'javascript:alert({trace_id})'])
      await expect(load({ TRACEWRIGHT_TRACE_URL: wrong })).rejects.toThrow(
        'not an http:// or https:// URL with {trace_id} in it',
      );
  });

  it('reads null as a duration without end, and paths from the file they stand in', async () => {
    await project('{"duration": null, "output": "runs/today"}');
    expect(await load()).toEqual({ duration: null, output: join(cwd, 'runs/today') });
  });

  it('falls back to ~/.config when XDG_CONFIG_HOME is not an absolute path', async () => {
    await mkdir(join(root, '.config', 'tracewright'), { recursive: true });
    await writeFile(join(root, '.config', 'tracewright', 'config.json'), '{"duration": 7}');
    expect(await load({ XDG_CONFIG_HOME: 'relative' })).toEqual({ duration: 7 });
  });
});

describe('a mistake in the configuration', () => {
  it.each([
    ['{"lag_treshold": 1}', 'unknown key "lag_treshold"'],
    ['{"duration": "10"}', "duration takes a duration such as 10s, 500ms, 2m or 1h, got '10'"],
    ['{"lag_threshold": -1}', 'lag_threshold is -1, not a time such as'],
    ['{"output": "/etc/x"}', 'output is "/etc/x", not a path'],
    ['{"output": "a/../../x"}', 'output is "a/../../x", not a path'],
    ['{"otlp_endpoint": "http://h"}', "otlp_endpoint may not stand in a project's file"],
    ['{"trace_url": "http://h/{trace_id}"}', "trace_url may not stand in a project's file"],
    ['[]', 'is not a JSON object'],
    ['{"a": \u001b[31m}', 'is not JSON'],
  ])('%j is a usage error that names the file and the key', async (text, message) => {
    await project(text);
    const error = await load().catch((caught: unknown) => caught);
    expect(error).toMatchObject({ name: 'TraceError', exitCode: 2 });
    expect((error as Error).message).toContain(join(cwd, '.tracewright', 'config.json'));
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain('\u001b');
  });

  it('names the variable when it is in the environment', async () => {
    await expect(load({ TRACEWRIGHT_LAG_THRESHOLD: 'soon' })).rejects.toThrow(
      "TRACEWRIGHT_LAG_THRESHOLD takes a duration such as 10s, 500ms, 2m or 1h, got 'soon'",
    );
  });
});

describe('a file of settings that is not ours to believe', () => {
  const path = () => join(cwd, '.tracewright', 'config.json');

  it.each([
    ['a FIFO', 'it is not a regular file', () => execFileSync('mkfifo', [path()])],
    ['a file without end', 'it is not a regular file', () => symlink('/dev/zero', path())],
    ['a folder', 'it is a folder', () => mkdir(path())],
    ['a link to itself', 'it cannot be read (ELOOP)', () => symlink(path(), path())],
    ['a large file', 'it is larger than 64 KiB', () => project(' '.repeat(70_000))],
  ] as const)('is %s: said at once', async (_, why, put) => {
    await put();
    await expect(load()).rejects.toMatchObject({
      exitCode: 2,
      message: `the settings of ${path()} are not taken: ${why}`,
    });
  });

  it.each(['linked', 'linked/x', 'gone', 'gone/x'])(
    'may not choose an output outside of the project by a link: %s',
    async (output) => {
      await mkdir(join(root, 'outside'));
      await symlink(join(root, 'outside'), join(cwd, 'linked'));
      await symlink(join(root, 'nothing'), join(cwd, 'gone'));
      await project(JSON.stringify({ output }));
      await expect(load()).rejects.toThrow(`output is "${output}", not a path`);
    },
  );

  it('may choose one by a link inside it', async () => {
    await mkdir(join(cwd, 'runs'));
    await symlink('runs', join(cwd, 'linked'));
    await project('{"output": "linked/new/x"}');
    expect(await load()).toEqual({ output: join(cwd, 'linked/new/x') });
  });

  describe.runIf(process.getuid?.() === 0)('by its owner', () => {
    const STRANGER = 12_345;
    const CALLER = { SUDO_UID: String(STRANGER), SUDO_GID: String(STRANGER) };
    const lines = '{"duration": 7}';

    it.each([
      ['the file', () => chown(path(), STRANGER, STRANGER)],
      ['its folder', () => chown(join(cwd, '.tracewright'), STRANGER, STRANGER)],
      [
        'a link to it',
        async () => {
          await rename(path(), join(cwd, 'kept'));
          await symlink(join(cwd, 'kept'), path());
          await lchown(path(), STRANGER, STRANGER);
        },
      ],
      [
        'a link to its folder',
        async () => {
          await rename(join(cwd, '.tracewright'), join(cwd, 'kept'));
          await symlink(join(cwd, 'kept'), join(cwd, '.tracewright'));
          await lchown(join(cwd, '.tracewright'), STRANGER, STRANGER);
        },
      ],
    ] as const)("is refused where %s is a stranger's, not where the caller's", async (_, give) => {
      await project(lines);
      await give();
      await expect(load()).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining('are not taken: it belongs to uid 12345') as string,
      });
      expect(await load(CALLER)).toEqual({ duration: 7 });
    });

    it("is refused among the user's own settings too", async () => {
      await user(lines);
      await chown(join(root, 'xdg', 'tracewright', 'config.json'), STRANGER, STRANGER);
      await expect(load()).rejects.toThrow('it belongs to uid 12345');
    });

    it('is refused where anybody may write to it', async () => {
      await project(lines);
      await chmod(path(), 0o666);
      await expect(load()).rejects.toThrow('anybody may write to it');
    });

    it('keeps nobody from a folder that has none', async () => {
      await chown(join(cwd, '.tracewright'), STRANGER, STRANGER);
      expect(await load()).toEqual({});
    });
  });
});

describe('a duration in the configuration', () => {
  const rule = { flag: 'duration', bare: 's', least: 0, most: Number.MAX_VALUE } as const;

  it.each(Object.keys(UNIT_SECONDS))('is what it is on the command line, in %s', async (unit) => {
    const text = `10${unit}`;
    await project(JSON.stringify({ duration: text }));
    const seconds = parseDuration(text, rule);
    expect(seconds).toBeGreaterThan(0);
    expect(await load()).toEqual({ duration: seconds });
    expect(await load({ TRACEWRIGHT_DURATION: text })).toEqual({ duration: seconds });
  });

  it.each(['10x', 'ten', '1e3s', ''])('is refused in the same words: %j', async (text) => {
    await project(JSON.stringify({ duration: text }));
    const onCommandLine = (() => {
      try {
        return String(parseDuration(text, rule));
      } catch (error) {
        return (error as Error).message;
      }
    })();
    await expect(load()).rejects.toThrow(
      `${join(cwd, '.tracewright', 'config.json')}: ${onCommandLine}`,
    );
  });
});
