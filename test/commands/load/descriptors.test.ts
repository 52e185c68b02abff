import { describe, expect, it } from 'vitest';
import { checkDescriptors } from '../../../src/commands/load/descriptors.ts';
import { EXIT } from '../../../src/core/exit-code.ts';
import { TraceError } from '../../../src/core/errors.ts';
import type { Arrival, StagePlan } from '../../../src/load/plan.ts';

const stage = (arrival: Arrival): StagePlan => ({
  label: 'x',
  arrival,
  maxConcurrency: null,
  duration: 1,
  requests: null,
});
const closed = (concurrency: number) => stage({ kind: 'closed', concurrency, rampUp: 0 });
const open = stage({ kind: 'open', rate: 5000, rateTo: 5000, burstiness: 1 });

function said(stages: readonly StagePlan[], limit: number | null, workers = 1): TraceError | null {
  try {
    checkDescriptors({ stages, workers }, limit);
    return null;
  } catch (error) {
    if (error instanceof TraceError) return error;
    throw error;
  }
}

describe('a closed loop under a limit of open files', () => {
  it('that is too low for it is refused, with the limit and what would do', () => {
    const error = said([closed(10), closed(2000)], 1024);
    expect(error).toMatchObject({ code: 'ERR_TOO_FEW_DESCRIPTORS', exitCode: EXIT.usage });
    expect(error?.message).toMatch(
      /^2000 connections at once take 2\d{3} open files, and trace may have 1024$/,
    );
    expect(error?.remedy).toMatch(/ulimit -n 2\d{3}.*or ask for at most \d{3} at once\.$/);
    const most = Number(/at most (\d+)/.exec(error?.remedy ?? '')?.[1]);
    expect(said([closed(most)], 1024)).toBeNull();
    // Some are opened and closed meanwhile by whatever else runs in this process.
    expect(said([closed(most + 40)], 1024)).not.toBeNull();
  });

  it('needs more for more workers', () => {
    expect(said([closed(850)], 1024)).toBeNull();
    expect(said([closed(850)], 1024, 16)).not.toBeNull();
  });

  it('is sent where there is room, and where the limit is not known', () => {
    expect(said([closed(2000)], 1_048_576)).toBeNull();
    expect(said([closed(2000)], null)).toBeNull();
  });

  it('is all that is judged: what a rate takes is up to the server', () => {
    expect(said([open], 256)).toBeNull();
  });
});
