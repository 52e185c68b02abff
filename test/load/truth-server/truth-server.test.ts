import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TruthLog } from './truth-log.ts';
import {
  isWanted,
  startTruthServer,
  type TruthServer,
  type TruthSettings,
} from './truth-server.ts';

/* What the other tests and the bench measure against has to do what it is told, and to log what it did. */

const CHAT = '/v1/chat/completions';
const CONCURRENCY = 4;

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
  readonly isCut: boolean;
}

describe.runIf(isWanted)('the truth server', () => {
  let server: TruthServer;
  beforeAll(async () => {
    server = await startTruthServer();
  }, 300_000);
  afterAll(() => server.stop());

  async function ask(
    body: object = {},
    path = CHAT,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers,
      body: JSON.stringify({ stream: true, ...body }),
    });
    let text = '';
    let isCut = false;
    try {
      for await (const chunk of answer.body ?? []) text += Buffer.from(chunk).toString();
    } catch {
      isCut = true;
    }
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text, isCut };
  }

  /** Asks n times under these settings, a few at once. */
  async function under(
    settings: TruthSettings,
    n: number,
    body: object = {},
  ): Promise<{ answers: Answer[]; log: TruthLog }> {
    await server.configure({ ttft: 2, itl: 1, tokens: 6, ...settings });
    const answers: Answer[] = [];
    let left = n;
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        while (left-- > 0) answers.push(await ask(body));
      }),
    );
    return { answers, log: await server.log() };
  }

  const count = (log: TruthLog, outcome: string): number =>
    log.requests.filter((request) => request.outcome === outcome).length;
  const dataOf = (text: string): string[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6));

  it('streams as many tokens as asked, never before they are due, and logs them by span id', async () => {
    await server.configure({ ttft: 20, itl: 5, jitter: 0.3, tokens: 8 });
    const spanId = '00f067aa0ba902b7';
    const traceparent = `00-4bf92f3577b34da6a3ce929d0e0e4736-${spanId}-01`;
    const body = { max_tokens: 5, stream_options: { include_usage: true } };
    const { text } = await ask(body, CHAT, { traceparent });
    expect(text.split('" line"')).toHaveLength(6);
    expect(text).toContain('"completion_tokens":5');
    expect(dataOf(text).at(-1)).toBe('[DONE]');
    const [request] = (await server.log()).requests;
    expect(request).toMatchObject({ spanId, tokens: 5, status: 200, outcome: 'answered' });
    const { arrivedAt = 0, readAt = 0, firstAt, lastAt, gaps } = request ?? {};
    expect(arrivedAt).toBeLessThanOrEqual(readAt);
    expect((firstAt ?? 0) - readAt).toBeGreaterThanOrEqual(14e-3);
    expect(gaps).toHaveLength(4);
    const total = Array.from(gaps ?? []).reduce((sum, gap) => sum + gap, 0);
    expect(total).toBeCloseTo((lastAt ?? 0) - (firstAt ?? 0), 6);
  });

  it('stamps with the clock that other processes have', async () => {
    const before = Number(process.hrtime.bigint()) * 1e-9;
    const { log } = await under({}, 3);
    const after = Number(process.hrtime.bigint()) * 1e-9;
    for (const { arrivedAt, readAt, firstAt, endedAt } of log.requests) {
      const times = [before, arrivedAt, readAt, firstAt ?? 0, endedAt, after];
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
  });

  it('answers without streaming, and the older API', async () => {
    await server.configure({ ttft: 2, itl: 1, tokens: 3 });
    const whole = await ask({ stream: false });
    expect(JSON.parse(whole.text)).toMatchObject({
      choices: [{ message: { content: ' line line line' } }],
      usage: { completion_tokens: 3 },
    });
    const { text } = await ask({}, '/v1/completions');
    expect(text).toContain('"text":" line"');
    expect((await server.log()).requests.map(({ tokens }) => tokens)).toEqual([3, 3]);
  });

  it('writes several tokens at once, each an event of its own', async () => {
    const { answers, log } = await under({ tokens: 10, tokensPerPacket: 4 }, 1);
    expect(answers[0]?.text.split('" line"')).toHaveLength(11);
    expect(log.requests[0]?.gaps).toHaveLength(2);
  });

  it('sends the role before the first token where it is told to', async () => {
    const { answers, log } = await under({ role: 0, ttft: 10 }, 1);
    const [role] = dataOf(answers[0]?.text ?? '');
    expect(role).toContain('"content":""');
    const [{ firstAt, readAt } = { firstAt: null, readAt: 0 }] = log.requests;
    expect((firstAt ?? 0) - readAt).toBeGreaterThanOrEqual(10e-3);
  });

  it('refuses every k-th with 500, and with 429 and Retry-After', async () => {
    const settings = { internalErrorEvery: 4, rateLimitEvery: 5, retryAfter: 7 };
    const { answers, log } = await under(settings, 20);
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 500)).toHaveLength(5);
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.map(({ retryAfter }) => retryAfter)).toEqual(['7', '7', '7']);
    expect(count(log, 'internal-error')).toBe(5);
    expect(count(log, 'rate-limited')).toBe(3);
    expect(count(log, 'answered')).toBe(12);
  });

  it('cuts, breaks off with an error event, stalls', async () => {
    const broken = await under({ cutEvery: 2 }, 6);
    expect(broken.answers.filter(({ isCut }) => isCut)).toHaveLength(3);
    expect(count(broken.log, 'cut')).toBe(3);
    const { answers, log } = await under({ errorEventEvery: 2 }, 6);
    const failed = answers.filter(({ text }) => text.includes('"error"'));
    expect(failed.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(failed.map(({ text }) => dataOf(text).at(-1))).toEqual(['[DONE]', '[DONE]', '[DONE]']);
    expect(count(log, 'error-event')).toBe(3);
    // A stall moves what is due; the write before it may itself have been late, so the gap may be shorter than the stall.
    const stalled = await under({ stallEvery: 1, stall: 200 }, 1);
    expect(Math.max(...(stalled.log.requests[0]?.gaps ?? []))).toBeGreaterThanOrEqual(100e-3);
    expect(count(stalled.log, 'stalled')).toBe(1);
  });

  it('queues beyond its slots, in the order of arrival', async () => {
    const { log } = await under({ slots: 1, ttft: 5 }, 8);
    const answered = log.requests.filter(({ outcome }) => outcome === 'answered');
    expect(answered).toHaveLength(8);
    for (const [i, { readAt, firstAt }] of answered.entries()) {
      const free = Math.max(readAt, answered[i - 1]?.endedAt ?? 0);
      expect((firstAt ?? 0) - free).toBeGreaterThanOrEqual(5e-3);
    }
  });

  it('knows that the client went away', async () => {
    await server.configure({ ttft: 1, itl: 200, tokens: 20 });
    const gone = new AbortController();
    const answer = await fetch(server.url + CHAT, {
      method: 'POST',
      body: JSON.stringify({ stream: true }),
      signal: gone.signal,
    });
    await answer.body?.getReader().read();
    gone.abort();
    await expect
      .poll(async () => count(await server.log(), 'abandoned'), { timeout: 10_000 })
      .toBe(1);
  });

  it('refuses settings that make no sense', async () => {
    await expect(server.configure({ tokens: 0 })).rejects.toThrow('refuses');
  });
});
