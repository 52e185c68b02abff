import { describe, expect, it } from 'vitest';
import { maskCredentials, titleOf } from '../../src/platform/target-title.ts';
import { start } from './processes.ts';

const masked = (commandLine: string): string => maskCredentials(commandLine.split(' ')).join(' ');

describe('a command line in a report', () => {
  it.each([
    ['vllm serve m --api-key s3cret --port 8000', 'vllm serve m --api-key *** --port 8000'],
    ['vllm serve --hf-token=hf_abc', 'vllm serve --hf-token=***'],
    ['mysql --password=a --user=b', 'mysql --password=*** --user=b'],
    ['env OPENAI_API_KEY=x DEBUG=1 python', 'env OPENAI_API_KEY=*** DEBUG=1 python'],
    ['celery -b redis://:hunter2@cache:6379/0', 'celery -b redis://:***@cache:6379/0'],
    ['app postgres://bob:p%40ss@db/x?sslmode=off', 'app postgres://bob:***@db/x?sslmode=off'],
    ['curl https://h/v1?token=abc&n=1', 'curl https://h/v1?token=***&n=1'],
    ['tool sk-proj-0123456789abcdef', 'tool ***'],
    ['tool ghp_0123456789abcdef', 'tool ***'],
    ['tool Authorization:secret', 'tool Authorization:***'],
  ])('hides the credential in %j', (commandLine, expected) => {
    expect(masked(commandLine)).toBe(expected);
  });

  it('hides what follows Bearer within one argument', () => {
    expect(maskCredentials(['-H', 'X: Bearer abc.def'])).toEqual(['-H', 'X: Bearer ***']);
  });

  it.each([
    'uvicorn app:main --port 8000',
    'python -m vllm.entrypoints --max-num-tokens',
    'node server.js --tokenizer-mode auto',
    'python train.py --author=me',
    'app http://user@host/path',
  ])('leaves %j as it is', (commandLine) => {
    expect(masked(commandLine)).toBe(commandLine);
  });

  it('is that of a running process, whatever stands within the quotes of its shell', async () => {
    const line = `echo; read nothing; curl -H "Authorization: Bearer S3cretValue9" http://h:8000`;
    const { pid } = await start('/bin/sh', ['-c', line]);
    expect(titleOf(pid, 'sh')).toBe(
      '/bin/sh -c echo; read nothing; curl -H "Authorization: Bearer ***" http://h:8000',
    );
  });

  it('cannot send escape sequences to a terminal', async () => {
    const { pid } = await start('/bin/sh', ['-c', 'echo; read nothing', '\u001b]0;owned\u0007']);
    expect(titleOf(pid, 'sh')).toBe('/bin/sh -c echo; read nothing \\x1b]0;owned\\x07');
    expect(titleOf(2 ** 22 + 1, 'kworker\u001b')).toBe('[kworker\\x1b]');
  });
});
