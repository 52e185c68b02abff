import { describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../../src/core/load-types.ts';
import { RecordPack, unpackRecords } from '../../../src/load/engine/record-pack.ts';
import { Slot } from '../../../src/load/engine/slot.ts';
import { StageRun } from '../../../src/load/engine/stage-run.ts';
import { requestSpanId } from '../../../src/load/trace-context.ts';
import { closed, failure, stage } from './simulation.ts';

const STAGE = new StageRun({
  index: 2,
  plan: stage(closed(1)),
  startsAt: 0,
  warmup: null,
  isStreaming: true,
});
const TRACE = { traceId: '0af7651916cd43dd8448eb211c80319c', sample: 1 };

/** A slot whose request is over, with these fields. */
function slotOf(fields: Partial<Slot>, index = 5): Slot {
  const slot = new Slot(() => undefined);
  slot.begin({
    stage: STAGE,
    request: {
      index,
      body: Buffer.alloc(0),
      promptClass: 'chat',
      session: 3,
      turn: 1,
      due: null,
    },
    owner: { ended: () => undefined },
    warmup: false,
    scheduledAt: 10,
    readyAt: 10,
    dispatchedAt: 10.5,
  });
  return Object.assign(slot, fields);
}

const FULL: Omit<
  RequestRecord,
  | 'index'
  | 'worker'
  | 'stage'
  | 'warmup'
  | 'spanId'
  | 'promptClass'
  | 'session'
  | 'turn'
  | 'scheduledAt'
> = {
  startedAt: 11.000_000_1,
  sentAt: 11.000_000_2,
  connectedAt: 10.9,
  firstByteAt: 12,
  firstOutputAt: 12.1,
  lastOutputAt: 13.1,
  endedAt: 14,
  longestGap: 0.25,
  outputs: 7,
  inputTokens: 2 ** 40,
  outputTokens: 9,
  cachedTokens: 0,
  reasoningTokens: 4,
  status: 200,
  error: null,
  finishReason: 'length',
  responseId: 'chatcmpl-1',
  resends: 1,
  bytesSent: 700,
  bytesReceived: 12_000,
};

const EMPTY = {
  connectedAt: null,
  firstByteAt: null,
  inputTokens: null,
  outputTokens: null,
  cachedTokens: null,
  reasoningTokens: null,
  status: null,
  finishReason: null,
  responseId: null,
} satisfies Partial<Slot>;

function through(slots: readonly Slot[], trace: typeof TRACE | null = TRACE): RequestRecord[] {
  const pack = new RecordPack();
  for (const slot of slots) pack.add(slot);
  expect(pack.count).toBe(slots.length);
  const packed = structuredClone(pack.take());
  expect(pack.count).toBe(0);
  return unpackRecords(packed, { worker: 4, trace, part: { index: 1, of: 2 } });
}

describe('records on their way between threads', () => {
  it('arrive with every field', () => {
    expect(through([slotOf(FULL as Partial<Slot>)])).toEqual([
      {
        ...FULL,
        index: 5,
        worker: 4,
        stage: 2,
        warmup: false,
        scheduledAt: 10,
        spanId: requestSpanId(TRACE.traceId, 1, 5),
        promptClass: 'chat',
        session: 3,
        turn: 1,
      },
    ]);
  });

  it('keep apart what is not there and what is nothing', () => {
    const [record] = through([slotOf(EMPTY)], null);
    expect(record).toMatchObject({ ...EMPTY, firstOutputAt: null, lastOutputAt: null, spanId: '' });
    expect(through([slotOf({ ...EMPTY, cachedTokens: 0 })])[0]?.cachedTokens).toBe(0);
  });

  it('share words, and each has its own error', () => {
    const records = through([
      slotOf({ error: failure('cut'), finishReason: 'stop' }, 0),
      slotOf({ finishReason: 'length' }, 1),
      slotOf({ error: failure('refused'), finishReason: 'stop' }, 2),
    ]);
    expect(records.map(({ error }) => error?.class ?? null)).toEqual(['cut', null, 'refused']);
    expect(records.map(({ finishReason }) => finishReason)).toEqual(['stop', 'length', 'stop']);
  });

  it('are as many as there were', () => {
    const slots = Array.from({ length: 1000 }, (_, i) => slotOf({ responseId: `r${i}` }, i));
    const records = through(slots);
    expect(records.map(({ index }) => index)).toEqual(slots.map((_, i) => i));
    expect(records[999]?.responseId).toBe('r999');
  });
});
