import type { FindingKind } from '../../core/types.ts';
import {
  either,
  measured,
  type Explanation,
  pidOf,
  SOME,
  STRONG,
  type Subject,
  SURE,
  PRIOR,
} from './explanation.ts';

/** A GPU, or a limit of the machine, holds it up. */

export function explainDevices(subject: Subject): readonly Explanation[] {
  const { main, all } = subject;
  const has = (kind: FindingKind): boolean => all.some((one) => one.kind === kind);
  const hostBound = main.kind === 'gpu-idle' && main.mechanism === 'host-bound';
  const pid = pidOf(subject);
  return [
    {
      mechanism: 'host-bound',
      claim: 'the GPU waits for the CPU side: scheduling, tokenizing, Python',
      confirming: 'the gaps of the GPU fall together with the engine thread computing',
      refuting: 'the engine thread waits while the GPU does',
      test: () => `trace profile ${pid} --mode cpu`,
      prior: PRIOR.USUAL,
      clues: [
        ...either(main.kind === 'gpu-idle', { summary: main.summary, weight: SOME }),
        ...either(hostBound, {
          summary: 'the engine thread was computing in the gaps',
          weight: STRONG,
        }),
      ],
    },
    {
      mechanism: 'throttled',
      claim: 'the GPU is held down by power, heat or a fault',
      confirming: 'its clocks rise with the limit lifted, and the rate with them',
      refuting: 'its clocks are at their maximum',
      test: () => `trace attach ${pid} --gpu -d 60s`,
      prior: PRIOR.SOMETIMES,
      clues: [
        ...either(has('gpu-throttled') || has('gpu-fault'), {
          summary: 'it says so itself',
          weight: SURE,
        }),
        ...either(!has('gpu-throttled') && !has('gpu-fault'), {
          summary: 'it names no reason that holds its clocks down',
          weight: -SOME,
        }),
      ],
    },
    {
      mechanism: 'little-work',
      claim: 'there is not enough work: batches are small, or requests are few',
      confirming: 'with more requests at a time the GPU is busier and the rate rises',
      refuting: 'requests wait in a queue while the GPU idles',
      test: () => 'trace load <url> --sweep 1,4,16,64',
      prior: PRIOR.RARER,
      clues: either(has('saturation') || measured(main, 'waiting_mean_count') !== null, {
        summary: 'requests were waiting meanwhile',
        weight: -STRONG,
      }),
    },
    {
      mechanism: 'memory-limit',
      claim: 'memory is near its limit, and the work waits for room',
      confirming: 'with a higher limit, or less KV cache, it moves',
      refuting: 'there is room all the time',
      test: () => `trace attach ${pid} -d 2m`,
      prior: PRIOR.SEEN_BEFORE,
      clues: either(has('memory-limit') || has('gpu-memory-leak'), {
        summary: 'memory was seen near its limit, or growing',
        weight: STRONG,
      }),
    },
  ];
}
