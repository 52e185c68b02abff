import { spawn } from 'node:child_process';
import { ANSWER_LIMIT, REQUEST_LIMIT } from './imported.ts';
import { formatSeconds } from '../../../core/units.ts';
import { withAbsolutePath } from '../../../platform/find-program.ts';

/** GitHub's own program, which keeps its user's credentials: we never see them. */

export type GhAnswer =
  /** Untrusted; undefined where it printed no JSON. */
  { readonly ok: true; readonly json: unknown } | { readonly ok: false; readonly why: string };

const WHY_LIMIT = 2000;

export function askGh(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<GhAnswer> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...withAbsolutePath(env),
        GH_PROMPT_DISABLED: '1',
        GH_NO_UPDATE_NOTIFIER: '1',
        NO_COLOR: '1',
      },
    });
    const parts: Buffer[] = [];
    let [length, said] = [0, ''];
    const timer = setTimeout(
      () => stop(`it did not answer within ${formatSeconds(REQUEST_LIMIT)}`),
      REQUEST_LIMIT * 1e3,
    );
    const end = (answer: GhAnswer): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    const stop = (why: string): void => {
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      end({ ok: false, why });
    };
    child.stdout.on('data', (part: Buffer) => {
      parts.push(part);
      length += part.length;
      if (length > ANSWER_LIMIT) stop('its answer is too large');
    });
    child.stderr.on('data', (part: Buffer) => {
      if (said.length < WHY_LIMIT) said += part.toString().slice(0, WHY_LIMIT);
    });
    child.on('error', ({ message }) => end({ ok: false, why: message }));
    child.on('close', (code) =>
      end(
        code === 0
          ? { ok: true, json: parsed(Buffer.concat(parts).toString()) }
          : { ok: false, why: said.trim().split('\n')[0] ?? `it ended with ${code}` },
      ),
    );
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
