import { describe, expect, it } from 'vitest';
import { GPU_ATTR, GPU_METRIC } from '../../../src/core/semconv-gpu.ts';
import { CAPTURE, FakeSmi } from '../../nvidia-smi/fake-smi.ts';
import { type Seen, watchGpus } from './watching.ts';

const MIB = 2 ** 20;
const GENERAL = { [GPU_ATTR.task]: 'general' };
const UTILIZATION = GPU_METRIC.gpuUtilization.name;

/** Enough lines to have everything once. */
const rows =
  (count: number) =>
  (seen: Seen): boolean =>
    seen.samples(GPU_METRIC.gpuPower.name).length >= count;

describe.concurrent('real captures', () => {
  it.for([
    [
      'h100',
      {
        utilization: 1,
        activity: 0.11,
        used: 19818,
        total: 81559,
        power: 631.95,
        limit: 700,
        temperature: 59,
        memoryTemperature: 54,
        sm: 1980e6,
        link: 5,
        ecc: 0,
      },
    ],
    [
      'h200',
      {
        utilization: 1,
        activity: 0.07,
        used: 32362,
        total: 143771,
        power: 627.4,
        limit: 700,
        temperature: 52,
        memoryTemperature: 40,
        sm: 1980e6,
        link: 5,
        ecc: 0,
      },
    ],
    [
      'l40s',
      {
        utilization: 0.09,
        activity: 0.02,
        used: 1235,
        total: 46068,
        power: 110.23,
        limit: 350,
        temperature: 54,
        memoryTemperature: undefined,
        sm: 2520e6,
        link: 4,
        ecc: 0,
      },
    ],
    [
      'rtx2080',
      {
        utilization: 0.08,
        activity: 0.03,
        used: 815,
        total: 8192,
        power: 98.14,
        limit: 250,
        temperature: 38,
        memoryTemperature: undefined,
        sm: 2070e6,
        link: 3,
        ecc: undefined,
      },
    ],
  ] as const)(
    'of a %s under load give its numbers in base units',
    async ([machine, says], { onTestFinished }) => {
      const smi = new FakeSmi({ capture: CAPTURE[machine] }, onTestFinished);
      const seen = await watchGpus(smi, rows(1));
      expect(seen.availability.available).toBe(true);
      expect({
        utilization: seen.last(UTILIZATION, GENERAL),
        activity: seen.last(GPU_METRIC.gpuMemoryActivity.name),
        used: (seen.last(GPU_METRIC.gpuMemoryUsage.name) ?? 0) / MIB,
        total: (seen.last(GPU_METRIC.gpuMemoryLimit.name) ?? 0) / MIB,
        power: seen.last(GPU_METRIC.gpuPower.name),
        limit: seen.last(GPU_METRIC.gpuPowerLimit.name),
        temperature: seen.last(GPU_METRIC.gpuTemperature.name, { [GPU_ATTR.sensor]: 'gpu' }),
        memoryTemperature: seen.last(GPU_METRIC.gpuTemperature.name, {
          [GPU_ATTR.sensor]: 'memory',
        }),
        sm: seen.last(GPU_METRIC.gpuClock.name, { [GPU_ATTR.clock]: 'sm' }),
        link: seen.last(GPU_METRIC.gpuLinkGeneration.name),
        ecc: seen.last(GPU_METRIC.gpuErrors.name, { [GPU_ATTR.errorType]: 'ecc.uncorrected' }),
      }).toEqual(says);
      expect(seen.gaps).toEqual([]);
    },
  );

  it('keep one nvidia-smi for all its lines', async ({ onTestFinished }) => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 10 }, onTestFinished);
    await watchGpus(smi, rows(8));
    expect(smi.calls.filter((call) => call.includes('-lms'))).toHaveLength(1);
    expect(smi.calls.filter((call) => call.includes('-lms 1000'))).toHaveLength(1);
  });
});

describe.concurrent('drivers that differ', () => {
  it('are asked only what they list', async ({ onTestFinished }) => {
    const old = [
      'clocks_event_reasons.sw_power_cap',
      'temperature.gpu.tlimit',
      'gpu_recovery_action',
      'mig.mode.current',
    ];
    const smi = new FakeSmi({ capture: CAPTURE.h100, drop: old }, onTestFinished);
    const seen = await watchGpus(smi, rows(1));
    expect(seen.last(UTILIZATION, GENERAL)).toBe(1);
    const asked = smi.calls.filter((call) => call.includes('--query-gpu='));
    for (const name of old) expect(asked.join(' ')).not.toContain(name);
    // Its other name is listed still.
    expect(asked.join(' ')).toContain('clocks_throttle_reasons.sw_power_cap');
    expect(
      seen.samples(GPU_METRIC.gpuThrottled.name, { [GPU_ATTR.reason]: 'sw_power_cap' }),
    ).not.toHaveLength(0);
  });

  it('may refuse what they list', async ({ onTestFinished }) => {
    const drop = ['fan.speed', 'utilization.memory', 'pcie.link.gen.max'];
    const smi = new FakeSmi({ capture: CAPTURE.h100, drop, lie: true }, onTestFinished);
    const seen = await watchGpus(smi, rows(1));
    expect(seen.last(UTILIZATION, GENERAL)).toBe(1);
    expect(seen.samples(GPU_METRIC.gpuMemoryActivity.name)).toEqual([]);
    expect(seen.gaps).toEqual([]);
  });

  it('may refuse it from one minute to the next, after an update', async ({ onTestFinished }) => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 10 }, onTestFinished);
    let changed = false;
    const seen = await watchGpus(smi, (so) => {
      if (!changed && rows(3)(so)) {
        changed = true;
        smi.set({ behaviour: 'die' });
        setTimeout(() => smi.set({ behaviour: 'ok', drop: ['utilization.memory'] }), 300);
      }
      return changed && so.gaps.length > 0 && rows(8)(so);
    });
    expect(seen.gaps[0]).toMatchObject({ collector: 'gpu', reason: 'failed' });
    expect(seen.gaps[0]?.detail).toMatch(/ended/);
    const after = seen.samples(GPU_METRIC.gpuPower.name).at(-1)?.at ?? 0;
    expect(seen.samples(GPU_METRIC.gpuMemoryActivity.name).at(-1)?.at).toBeLessThan(after);
  });

  it('may end their lines as Windows does', async ({ onTestFinished }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.rtx2080,
        behaviour: 'crlf',
        processes: [[process.pid, 100]],
      },
      onTestFinished,
    );
    const seen = await watchGpus(
      smi,
      (so) => rows(1)(so) && so.samples(GPU_METRIC.gpuProcessMemory.name).length > 0,
      { pids: [process.pid] },
    );
    expect(seen.last(UTILIZATION, GENERAL)).toBe(0.08);
    expect(seen.last(GPU_METRIC.gpuProcessMemory.name)).toBe(100 * MIB);
    expect(seen.gaps).toEqual([]);
  });

  it('may call a GPU by a name with commas', async ({ onTestFinished }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        values: { name: 'NVIDIA RTX 6000, Ada, "pro"' },
      },
      onTestFinished,
    );
    const seen = await watchGpus(smi, rows(1));
    expect(seen.last(GPU_METRIC.gpuPower.name)).toBe(631.95);
    expect(seen.samples(UTILIZATION)[0]?.attributes?.[GPU_ATTR.name]).toBe(
      'NVIDIA RTX 6000, Ada, "pro"',
    );
  });

  it('may give the same UUID to several GPUs', async ({ onTestFinished }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        values: [
          { index: '0', 'pci.bus_id': '00000000:01:00.0', 'utilization.gpu': '10 %' },
          { index: '1', 'pci.bus_id': '00000000:02:00.0', 'utilization.gpu': '20 %' },
        ],
      },
      onTestFinished,
    );
    const seen = await watchGpus(smi, rows(2));
    const ids = seen
      .samples(UTILIZATION, GENERAL)
      .map(({ attributes, value }) => [attributes?.[GPU_ATTR.id], value]);
    expect(ids).toContainEqual([
      'GPU-00000000-0000-0000-0000-000000000000 (00000000:01:00.0)',
      0.1,
    ]);
    expect(ids).toContainEqual([
      'GPU-00000000-0000-0000-0000-000000000000 (00000000:02:00.0)',
      0.2,
    ]);
  });

  it('wake a GPU that nobody uses, which is not taken for work', async ({ onTestFinished }) => {
    const smi = new FakeSmi({ capture: CAPTURE.l40s, state: 'idle', speed: 10 }, onTestFinished);
    const seen = await watchGpus(smi, rows(3));
    // 100 % with no memory taken: the capture was made by a program that had just loaded the driver.
    const first = seen.samples(GPU_METRIC.gpuPower.name)[0]?.at;
    expect(seen.samples(UTILIZATION, GENERAL).some(({ at }) => at === first)).toBe(false);
  });
});

describe('an nvidia-smi that misbehaves', () => {
  const restored = (so: Seen) => so.gaps.length > 0 && rows(6)(so);

  it('and hangs, deaf to SIGTERM, is killed and started again, with a gap', async () => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 10, only: '-lms' });
    let hung = false;
    const seen = await watchGpus(smi, (so) => {
      if (!hung && rows(3)(so)) {
        hung = true;
        smi.set({ behaviour: 'hang' });
        setTimeout(() => smi.set({ behaviour: 'ok' }), 1800);
      }
      return hung && restored(so);
    });
    expect(seen.gaps).toHaveLength(1);
    expect(seen.gaps[0]).toMatchObject({ collector: 'gpu', reason: 'failed' });
    expect(seen.gaps[0]?.detail).toMatch(/printed nothing for 1\.2 s and was killed/);
    const { from = 0, to = 0 } = seen.gaps[0] ?? {};
    expect(to - from).toBeGreaterThan(1.2);
  });

  it('and cannot be killed is neither waited for nor joined by another', async () => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 10, only: '-lms', held: 4 });
    let hung = 0;
    let calls = 0;
    const seen = await watchGpus(smi, (so) => {
      if (hung === 0 && rows(3)(so)) {
        hung = performance.now();
        smi.set({ behaviour: 'hang-hard' });
      }
      if (hung === 0 || performance.now() - hung < 2500) {
        calls = smi.calls.length;
        return false;
      }
      return performance.now() - hung > 3500;
    });
    expect(smi.calls).toHaveLength(calls);
    expect(seen.ending).toBeLessThan(1);
    expect(seen.gaps).toHaveLength(1);
  });

  it('and hangs from the beginning does not hold up the run, and is seen when it answers', async () => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, behaviour: 'hang', speed: 10 });
    setTimeout(() => smi.set({ behaviour: 'ok' }), 3000);
    const seen = await watchGpus(smi, restored, { limits: { probe: 0.5 } });
    expect(seen.availability.available).toBe(true);
    expect(seen.gaps[0]?.detail).toMatch(/did not answer within 500 ms and was killed/);
    expect(seen.last(UTILIZATION, GENERAL)).toBe(1);
  });

  it('and dies again and again is started again, with one gap until it lives', async () => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 10, only: '-lms' });
    let died = false;
    const seen = await watchGpus(smi, (so) => {
      if (!died && rows(3)(so)) {
        died = true;
        smi.set({ behaviour: 'die' });
        setTimeout(() => smi.set({ behaviour: 'ok' }), 1500);
      }
      return died && restored(so);
    });
    expect(seen.gaps).toHaveLength(1);
    expect(seen.gaps[0]?.detail).toMatch(/exited with code 9/);
    expect(smi.calls.filter((call) => call.includes('-lms')).length).toBeGreaterThan(2);
  });

  it('and prints garbage between its lines loses only that, and says so', async () => {
    const smi = new FakeSmi({
      capture: CAPTURE.h100,
      speed: 10,
      behaviour: 'garbage',
      only: '-lms',
    });
    const seen = await watchGpus(smi, rows(4));
    expect(new Set(seen.values(UTILIZATION, GENERAL))).toEqual(new Set([1]));
    expect(seen.gaps.map(({ reason }) => reason)).toEqual(['dropped']);
  });

  it('and prints a line without end is killed before that fills memory', async () => {
    const smi = new FakeSmi({
      capture: CAPTURE.h100,
      speed: 10,
      behaviour: 'endless',
      only: '-lms',
      after: 2,
    });
    const seen = await watchGpus(smi, (so) => rows(1)(so) && smi.calls.length > 6);
    expect(seen.gaps.some(({ detail }) => detail.includes('no table'))).toBe(true);
  });

  it('and answers slowly is waited for', async () => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, behaviour: 'slow', only: '--query-gpu' });
    const seen = await watchGpus(smi, rows(1), { limits: { answer: 5, probe: 5 } });
    expect(seen.last(UTILIZATION, GENERAL)).toBe(1);
  });

  it('and finds no driver is unavailable, with its words', async () => {
    const says =
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.";
    const smi = new FakeSmi({ capture: CAPTURE.h100, behaviour: `text:${says}` });
    const { availability } = await watchGpus(smi, () => true);
    expect(availability).toMatchObject({ available: false });
    expect(availability.available || availability.reason).toContain("couldn't communicate");
  });

  it('and has lost a GPU is an event, also where it says nothing else', async () => {
    const says =
      'Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU';
    const smi = new FakeSmi({ capture: CAPTURE.h100, behaviour: `text:${says}`, only: '--query' });
    const seen = await watchGpus(smi, (so) => so.events.length > 0);
    expect(seen.availability.available).toBe(true);
    expect(seen.events[0]).toMatchObject({ name: 'tracewright.gpu.fault', severity: 'error' });
    expect(seen.events[0]?.attributes).toMatchObject({
      [GPU_ATTR.fault]: 'lost',
      [GPU_ATTR.busId]: '00000000:3B:00.0',
    });
  });
});

describe.concurrent('processes', () => {
  const own = [4711, 4712];
  const two = [
    { index: '0', 'pci.bus_id': '00000000:01:00.0', uuid: 'GPU-aaaa1111-0' },
    { index: '1', 'pci.bus_id': '00000000:02:00.0', uuid: 'GPU-bbbb2222-0' },
  ];
  const byGpu = (seen: Seen) =>
    new Set(seen.samples(UTILIZATION, GENERAL).map(({ attributes }) => attributes?.[GPU_ATTR.id]));

  it('of the target have their memory and use, and the others are summed', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        processes: [
          [4711, 1000],
          [4712, 500],
          [999, 300],
          [998, 30],
        ],
      },
      onTestFinished,
    );
    const seen = await watchGpus(
      smi,
      (so) =>
        so.samples(GPU_METRIC.gpuMemoryOthers.name).length > 0 &&
        so.samples(GPU_METRIC.gpuProcessUtilization.name).length > 0,
      { pids: own },
    );
    const pid = (value: number) => ({ 'process.pid': value });
    expect(seen.last(GPU_METRIC.gpuProcessMemory.name, pid(4711))).toBe(1000 * MIB);
    expect(seen.last(GPU_METRIC.gpuProcessMemory.name, pid(4712))).toBe(500 * MIB);
    expect(seen.samples(GPU_METRIC.gpuProcessMemory.name, pid(999))).toEqual([]);
    expect(seen.last(GPU_METRIC.gpuMemoryOthers.name)).toBe(330 * MIB);
    expect(seen.last(GPU_METRIC.gpuProcessUtilization.name, pid(4711))).toBe(0.37);
    expect(seen.blindSpots).toEqual([]);
  });

  it('tell which GPUs are the target’s, and the others are left out', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.h100,
        values: two,
        processes: [
          [4711, 1000, 1],
          [5, 1000, 0],
        ],
      },
      onTestFinished,
    );
    const seen = await watchGpus(smi, rows(1), { pids: own });
    expect(byGpu(seen)).toEqual(new Set(['GPU-bbbb2222-0']));
  });

  it('that are not listed although memory is taken: the pid namespace is why, and it is said', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, processes: [] }, onTestFinished);
    const { blindSpots } = await watchGpus(smi, () => true, { pids: own });
    expect(blindSpots).toHaveLength(1);
    expect(blindSpots[0]?.name).toBe('gpu-processes');
    expect(blindSpots[0]?.reason).toMatch(/19\.4 GiB .* pid namespace/);
    expect(blindSpots[0]?.remedy).toContain('--pid=host');
  });

  it('whose memory the driver does not tell have none, and it is said', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi(
      { capture: CAPTURE.h100, processes: [[4711, '[N/A]']] },
      onTestFinished,
    );
    const seen = await watchGpus(smi, rows(2), { pids: own });
    expect(seen.samples(GPU_METRIC.gpuProcessMemory.name)).toEqual([]);
    expect(seen.blindSpots.map(({ name }) => name)).toEqual(['gpu-processes']);
  });

  it('that are not listed: CUDA_VISIBLE_DEVICES tells', async ({ onTestFinished }) => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, values: two, processes: [] }, onTestFinished);
    const seen = await watchGpus(smi, rows(1), { pids: own, visible: ['GPU-bbbb'] });
    expect(byGpu(seen)).toEqual(new Set(['GPU-bbbb2222-0']));
  });

  it('and numbers that mean nothing here leave all GPUs shown, and say why', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi({ capture: CAPTURE.h100, values: two, processes: [] }, onTestFinished);
    const options = { pids: own, visible: ['1'], sameView: false };
    const seen = await watchGpus(smi, rows(2), options);
    expect(byGpu(seen).size).toBe(2);
    const [spot] = seen.blindSpots.filter(({ name }) => name === 'gpu-of-target');
    expect(spot?.reason).toContain('another container');
  });
});

describe.concurrent('MIG', () => {
  const PARENT = 'GPU-00000000-0000-0000-0000-000000000000';
  const slice = (last: string) => ({
    [GPU_ATTR.id]: `MIG-0000000${last}-0000-0000-0000-00000000000${last}`,
  });

  it.for(['ok', 'missing-xml', 'refuse-xml'])(
    'has memory by slice and no utilisation, and that is said (%s)',
    async (behaviour, { onTestFinished }) => {
      const smi = new FakeSmi({ capture: CAPTURE.mig, behaviour }, onTestFinished);
      const seen = await watchGpus(
        smi,
        (so) =>
          rows(1)(so) &&
          so.samples(GPU_METRIC.gpuMemoryUsage.name, { [GPU_ATTR.parent]: PARENT }).length > 3,
      );
      expect(seen.samples(UTILIZATION)).toEqual([]);
      expect(seen.last(GPU_METRIC.gpuMemoryUsage.name, { [GPU_ATTR.id]: PARENT })).toBe(
        11125 * MIB,
      );
      expect(seen.last(GPU_METRIC.gpuMemoryUsage.name, slice('0'))).toBe(11091 * MIB);
      expect(seen.last(GPU_METRIC.gpuMemoryLimit.name, slice('1'))).toBe(20096 * MIB);
      const [first] = seen.samples(GPU_METRIC.gpuMemoryUsage.name, slice('3'));
      expect(first?.attributes).toMatchObject({
        [GPU_ATTR.parent]: PARENT,
        [GPU_ATTR.instance]: '10/0',
        [GPU_ATTR.name]: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
      });
      expect(seen.blindSpots.find(({ name }) => name === 'gpu-utilization')?.reason).toContain(
        'MIG',
      );
    },
  );

  it('puts a process into its slice, and leaves out those of others', async ({
    onTestFinished,
  }) => {
    const smi = new FakeSmi(
      {
        capture: CAPTURE.mig,
        processes: [
          [4711, 2296],
          [4712, 1272],
          [4713, 7484],
        ],
      },
      onTestFinished,
    );
    const seen = await watchGpus(
      smi,
      (so) => so.samples(GPU_METRIC.gpuProcessMemory.name).length > 0,
      { pids: [4711] },
    );
    expect(seen.last(GPU_METRIC.gpuProcessMemory.name, slice('0'))).toBe(2296 * MIB);
    const sliced = seen.samples(GPU_METRIC.gpuMemoryLimit.name, { [GPU_ATTR.parent]: PARENT });
    expect(new Set(sliced.map(({ value }) => value / MIB))).toEqual(new Set([40448]));
  });

  it.for(['MIG-00000001', 'MIG-00000001-0000-0000-0000-000000000001', `MIG-${PARENT}/3/0`])(
    'is found by CUDA_VISIBLE_DEVICES=%s',
    async (value, { onTestFinished }) => {
      const smi = new FakeSmi({ capture: CAPTURE.mig, processes: [] }, onTestFinished);
      const of = (so: Seen) =>
        so.samples(GPU_METRIC.gpuMemoryLimit.name, { [GPU_ATTR.parent]: PARENT });
      const seen = await watchGpus(smi, (so) => of(so).length > 0, {
        pids: [4711],
        visible: [value],
      });
      expect(new Set(of(seen).map((one) => one.value / MIB))).toEqual(new Set([20096]));
    },
  );
});
