import { ATTR } from '../core/semconv.ts';
import { GPU_METRIC } from '../core/semconv-gpu.ts';
import { SERVER_METRIC } from '../core/semconv-server.ts';
import { trendOf } from '../core/trend.ts';
import { meanOf } from '../core/statistics.ts';
import type {
  Bytes,
  Detector,
  Ratio,
  RecordingView,
  Seconds,
  UnnumberedFinding,
} from '../core/types.ts';
import { numberAttribute } from './attributes.ts';
import { gpusOf, type RecordedGpu, utilizationOf } from './gpu-readings.ts';
import {
  type Growth,
  grows,
  inconclusiveFinding,
  leakFinding,
  type Least,
} from './growth-finding.ts';

/**
 * TRC220 gpu-memory-leak: memory of a GPU, or of a MIG slice, grows and goes on growing while work is done on it. A model that is being loaded grows as
 * steadily, without any kernel running, and is not called a leak; caching allocators and KV caches level off.
 */

const CODE = 'TRC220';

/**
 * PyTorch's caching allocator takes segments of 20 MiB and of whole allocations above that, and keeps them: some of them are no leak. 128 MiB and a
 * twentieth of what was taken is where growth is more than the last few.
 */
const LEAST: Least = { rise: 128 * 2 ** 20, ratio: 0.05 };
/** As for memory of the host: a first minute under load warms up. */
const LEAST_TIME: Seconds = 58;
/** Kernels in a twentieth of the time: loading weights has none. */
const WORKS_FROM: Ratio = 0.05;
/** What a process has of the growth, to be its owner; its own memory is read less often than the GPU's. */
const OWNER_SHARE: Ratio = 0.5;

export const gpuMemoryLeak: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const gpus = gpusOf(view);
    for (const gpu of gpus) {
      // A GPU that is divided grows where its slices do.
      if (gpus.some(({ parent }) => parent === gpu.id)) continue;
      const series = gpu.one(GPU_METRIC.gpuMemoryUsage);
      if (series === undefined) continue;
      const trend = trendOf(series.at, series.value);
      if (trend.duration < LEAST_TIME || !grows(trend, LEAST, null)) continue;
      const growth: Growth = {
        what: `memory of ${gpu.label}`,
        verb: 'grows',
        unit: 'bytes',
        trend,
      };
      yield findingOf(view, gpu, growth);
    }
  },
};

function findingOf(view: RecordingView, gpu: RecordedGpu, growth: Growth): UnnumberedFinding {
  const rise = growth.trend.last - growth.trend.first;
  const owner = ownerOf(gpu, rise);
  const others = riseOf(gpu.one(GPU_METRIC.gpuMemoryOthers));
  if (owner === null && others > rise * OWNER_SHARE) {
    return inconclusiveFinding(view, growth, {
      why: 'processes that are not the target’s have most of it',
      remedy: 'nvidia-smi lists them; the target will be short of memory when they go on.',
    });
  }
  if (!hasWorked(view, gpu)) {
    return inconclusiveFinding(view, growth, {
      why: 'no work was seen on it meanwhile, so a model may be being loaded',
      remedy: 'Watch it again under steady load, for a minute or more.',
    });
  }
  const name = owner === null ? null : `pid ${owner.pid}`;
  const finding = leakFinding(view, growth, {
    code: CODE,
    kind: 'gpu-memory-leak',
    mechanism: owner === null ? null : 'process',
    owned: name === null ? 'and whose it is could not be seen' : `most of it of ${name}`,
    owner:
      owner === null || name === null
        ? null
        : { name, rise: owner.rise, share: Math.min(1, owner.rise / rise) },
    remedy:
      'Look for tensors that stay reachable (lists of losses or logits with their graph, caches without bounds): torch.cuda.memory._record_memory_history() shows who took them.',
  });
  return { ...finding, pid: owner?.pid ?? null };
}

function ownerOf(
  gpu: RecordedGpu,
  rise: Bytes,
): { readonly pid: number; readonly rise: Bytes } | null {
  const [most] = gpu
    .all(GPU_METRIC.gpuProcessMemory)
    .flatMap((series) => {
      const pid = numberAttribute(series.attributes, ATTR.pid);
      return pid === null ? [] : [{ pid, rise: riseOf(series) }];
    })
    .toSorted((a, b) => b.rise - a.rise);
  return most !== undefined && most.rise > rise * OWNER_SHARE ? most : null;
}

function riseOf(series: { readonly value: Float64Array } | undefined): Bytes {
  return (series?.value.at(-1) ?? 0) - (series?.value[0] ?? 0);
}

/** By its utilisation; where there is none (MIG), by what the server says to have made. */
function hasWorked(view: RecordingView, gpu: RecordedGpu): boolean {
  const use = meanOf(utilizationOf(gpu)?.value ?? []);
  if (use !== null) return use >= WORKS_FROM;
  return view.series(SERVER_METRIC.outputTokens.name).some((series) => riseOf(series) > 0);
}
