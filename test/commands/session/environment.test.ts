import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { discoverEnvironment } from '../../../src/commands/session/environment/discover.ts';
import { CAPTURE, FakeSmi } from '../../nvidia-smi/fake-smi.ts';

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-environment-'));
});
afterAll(() => rmSync(root, { recursive: true }));

function folder(name: string): string {
  const path = join(root, name);
  mkdirSync(path, { recursive: true });
  return path;
}

function program(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

async function factsOf(
  env: Record<string, string>,
  cwd = root,
): Promise<Record<string, string | null>> {
  const facts = await discoverEnvironment({ cwd, env });
  return Object.fromEntries(
    facts.map(({ name, value, reason }) => [name, value ?? `absent: ${reason}`]),
  );
}

/** A virtual environment whose interpreter says its version, and leaves a mark when it is told to do more. */
function venv(name: string, packages: readonly string[]): { bin: string; mark: string } {
  const [bin, mark] = [folder(`${name}/bin`), join(root, `${name}.ran`)];
  writeFileSync(
    join(root, name, 'pyvenv.cfg'),
    'home = /usr/bin\ninclude-system-site-packages = false\n',
  );
  program(
    join(bin, 'python'),
    `#!/bin/sh\nif [ "$*" = --version ]; then echo Python 3.12.4; else touch ${mark}; fi\n`,
  );
  for (const one of packages) folder(`${name}/lib/python3.12/site-packages/${one}`);
  return { bin, mark };
}

describe('the environment of a session', () => {
  it('has the packages of the python on PATH, which is not made to import them', async () => {
    const { bin, mark } = venv('full', [
      'torch-2.7.1+cu128.dist-info',
      'vllm-0.10.0.dist-info',
      'vllm',
      'sglang-0.5.6.post2.dist-info',
      'tensorrt_llm-1.1.0rc5.dist-info',
      'ai_dynamo-0.8.0.dist-info',
      'transformers-4.53.2-py3.12.egg-info',
      'nvidia_cuda_runtime_cu12-12.8.57.dist-info',
      'torchvision-0.22.1.dist-info',
    ]);
    const facts = await factsOf({ PATH: bin });
    expect(facts['python']).toBe(`3.12.4 ${bin}/python (venv, ${join(root, 'full')})`);
    expect(facts['packages']?.split(', ').toSorted()).toEqual([
      'dynamo 0.8.0',
      'sglang 0.5.6.post2',
      'tensorrt_llm 1.1.0rc5',
      'torch 2.7.1+cu128',
      'transformers 4.53.2',
      'vllm 0.10.0',
    ]);
    expect(facts['cuda']).toContain('runtime 12.8.57 of its package, torch built for 12.8');
    expect(existsSync(mark)).toBe(false);
  });

  it('says that there is none where there is none', async () => {
    const facts = await factsOf({ PATH: folder('empty') });
    expect(facts['python']).toBe('absent: no python on PATH');
    expect(facts['node']).toBe('absent: none on PATH');
    expect(facts['git_commit']).toBe('absent: no git on PATH');
    expect(facts['kernel']).toMatch(/^Linux \d/);
    expect(facts['memory']).toMatch(/ available of /);
    expect(facts['disk']).toMatch(/ free of /);
    expect(facts['collectors']).toMatch(/^ok: /);
  });

  it('finds the interpreter that a shim of pyenv would start', async () => {
    const shims = folder('pyenv/shims');
    program(join(shims, 'python'), '#!/bin/sh\nexit 1\n');
    const bin = folder('pyenv/versions/3.11.9/bin');
    program(join(bin, 'python3.11'), '#!/bin/sh\necho Python 3.11.9\n');
    symlinkSync('python3.11', join(bin, 'python'));
    folder('pyenv/versions/3.11.9/lib/python3.11/site-packages/vllm-0.9.1.dist-info');
    writeFileSync(join(root, 'pyenv/version'), '3.11.9\n');
    const facts = await factsOf({ PATH: shims });
    expect(facts['python']).toContain('3.11.9 ');
    expect(facts['packages']).toBe('vllm 0.9.1');
  });

  it('has the commit and the files that differ, and runs nothing that a checkout names', async () => {
    const cwd = folder('checkout');
    const mark = join(root, 'fsmonitor.ran');
    const git = (...args: string[]) =>
      execFileSync('git', [
        '-C',
        cwd,
        '-c',
        'user.name=x',
        '-c',
        'user.email=x@example.test',
        ...args,
      ]);
    git('init', '-q');
    writeFileSync(join(cwd, 'a.py'), '1\n');
    git('add', '.');
    git('commit', '-qm', 'first');
    expect((await factsOf({ PATH: process.env['PATH'] ?? '' }, cwd))['git_dirty']).toBe('no');
    writeFileSync(join(cwd, 'a.py'), '2\n');
    writeFileSync(join(cwd, 'new \u001b[31m.py'), '');
    program(join(root, 'monitor'), `#!/bin/sh\ntouch ${mark}\n`);
    git('config', 'core.fsmonitor', join(root, 'monitor'));
    const facts = await factsOf({ PATH: process.env['PATH'] ?? '' }, cwd);
    expect(facts['git_commit']).toMatch(/^[0-9a-f]{12} \d{4}-/);
    expect(facts['git_dirty']).toBe('a.py, new \\x1b[31m.py');
    expect(existsSync(mark)).toBe(false);
    expect((await factsOf({ PATH: process.env['PATH'] ?? '' }, '/'))['git_commit']).toMatch(
      /^absent: not a git/,
    );
  });

  it('has the GPUs, their driver and whether they are cut into slices', async () => {
    const whole = await factsOf({ PATH: new FakeSmi({ capture: CAPTURE.h200 }).folder });
    expect(whole['gpus']).toMatch(/^\d+ × NVIDIA H200$/);
    expect([whole['gpu_driver'], whole['gpu_mig']]).toEqual(['590.48.01', 'off']);
    const sliced = await factsOf({ PATH: new FakeSmi({ capture: CAPTURE.mig }).folder });
    expect(sliced['gpu_mig']).toMatch(/^on for \d of \d: \d × \d+g\.\d+gb/);
  });

  it('says why GPUs cannot be told: a driver that hangs or is broken', async () => {
    const hangs = await factsOf({
      PATH: new FakeSmi({ capture: CAPTURE.h200, behaviour: 'hang' }).folder,
    });
    expect(hangs['gpus']).toMatch(/^absent: /);
  });

  it('shows no variable, whatever its name', async () => {
    const secrets = ['hunter2-planted', 'planted-value-17', 'planted-key-23'];
    const [password, value, key] = secrets as [string, string, string];
    const env = {
      PATH: process.env['PATH'] ?? '',
      DB_PASSWORD: password,
      HARMLESS: value,
      HF_TOKEN: key,
    };
    const text = JSON.stringify(await discoverEnvironment({ cwd: root, env }));
    for (const secret of secrets) expect(text).not.toContain(secret);
  });

  it('waits for no part that is late, and loses no other for one that fails', async () => {
    const facts = await discoverEnvironment(
      { cwd: root, env: {} },
      [
        { names: ['slow', 'slower'], look: () => sleep(60_000, [], { ref: false }) },
        { names: ['broken'], look: () => Promise.reject(new Error('EIO')) },
        {
          names: ['good'],
          look: () => Promise.resolve([{ name: 'good', value: 'x'.repeat(900), reason: null }]),
        },
      ],
      0.05,
    );
    expect(facts.map(({ name, value, reason }) => [name, value?.length ?? reason])).toEqual([
      ['slow', 'not told within 50 ms'],
      ['slower', 'not told within 50 ms'],
      ['broken', 'EIO'],
      ['good', 400],
    ]);
  });
});
