import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { all, childText, parseDocument } from '../../../collectors/gpu/document.ts';
import { faultIn, xidIn } from '../../../collectors/gpu/faults.ts';
import { KNOWN_FIELDS, listedFields, queryFor } from '../../../collectors/gpu/fields.ts';
import { parsePmon, parseProcesses } from '../../../collectors/gpu/processes.ts';
import { type GpuReading, readingOf } from '../../../collectors/gpu/reading.ts';
import { resolveVisible } from '../../../collectors/gpu/scope.ts';
import { parseList, parseSlices } from '../../../collectors/gpu/slices.ts';
import { CsvTable } from '../../../collectors/gpu/table.ts';
import { CAPTURE } from '../../nvidia-smi/fake-smi.ts';

const MIB = 2 ** 20;

function read(text: string): readonly GpuReading[] {
  const table = new CsvTable(KNOWN_FIELDS);
  return text.split('\n').flatMap((line) => {
    const row = table.take(line);
    return row === null || row === 'header' ? [] : (readingOf(row) ?? []);
  });
}

const HEADER =
  'index, name, pci.bus_id, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu, power.draw [W]';

describe('a row of the query for GPUs', () => {
  it.each([
    '[N/A]',
    'N/A',
    '[Not Supported]',
    '[Insufficient Permissions]',
    '[Unknown Error]',
    '[Requested functionality has been deprecated]',
    'ERR!',
    '',
    '-',
    '1e9999 %',
    '250 %',
    '-500 %',
    '0x10',
    '100 furlongs',
    '1 2',
  ])('has nothing, and never 0, for %s', (cell) => {
    const [reading] = read(
      `${HEADER}\n0, H100, 00000000:01:00.0, 81559 MiB, ${cell}, ${cell}, ${cell}, ${cell}`,
    );
    expect(reading).toMatchObject({
      memoryTotal: 81559 * MIB,
      memoryUsed: null,
      utilization: null,
      temperature: null,
      power: null,
    });
  });

  it('has no more memory used than there is', () => {
    const [reading] = read(`${HEADER}\n0, H100, 1:1:0.0, 100 MiB, 200 MiB, 5 %, 40, 30 W`);
    expect(reading).toMatchObject({ memoryUsed: null, utilization: 0.05 });
  });

  it('has its units from the cell, from the header, or as usual', () => {
    const bare = HEADER.replaceAll(/ \[[^\]]*\]/g, '');
    for (const text of [
      `${HEADER}\n0, A, 1:1:0.0, 1024 MiB, 512 MiB, 40 %, 41, 30.50 W`,
      `${HEADER}\n0, A, 1:1:0.0, 1024, 512, 40, 41, 30.50`,
      `${bare}\n0, A, 1:1:0.0, 1024, 512, 40, 41, 30.50`,
      `${HEADER}\n0, A, 1:1:0.0, 1 GiB, 524288 KiB, 40 %, 41 C, 30500 mW`,
    ])
      expect(read(text)[0]).toMatchObject({
        memoryTotal: 1024 * MIB,
        memoryUsed: 512 * MIB,
        utilization: 0.4,
        temperature: 41,
        power: 30.5,
      });
  });

  it('may have commas in its name, and in no other cell', () => {
    const line = '0, NVIDIA RTX, 6000, Ada, 1:1:0.0, 100 MiB, 1 MiB, 5 %, 40, 30 W';
    expect(read(`${HEADER}\n${line}`)[0]).toMatchObject({
      name: 'NVIDIA RTX, 6000, Ada',
      power: 30,
    });
    expect(read(`index, uuid, power.draw [W]\n0, GPU-1, 2, 30 W`)).toEqual([]);
  });

  it('that is cut off is none', () => {
    expect(read(`${HEADER}\n0, H100, 1:1:0.0, 81559 MiB, 5`)).toEqual([]);
  });

  it('goes by the last header, with columns in any order and unknown ones between', () => {
    const other = 'power.draw [W], warp.factor, utilization.gpu [%], uuid';
    const text = `${HEADER}\n0, H, 1:1:0.0, 9 MiB, 5 MiB, 5 %, 40, 30 W\n${other}\n77.5 W, 9, 12 %, GPU-1`;
    expect(read(text)[1]).toMatchObject({ power: 77.5, utilization: 0.12, uuid: 'GPU-1' });
  });

  it('may say that the GPU is gone', () => {
    const text = `${HEADER}\n0, H100, 1:1:0.0, [GPU is lost], [GPU is lost], [GPU is lost], 1, 2 W`;
    expect(read(text)[0]?.fault).toBe('[GPU is lost]');
  });

  it('may ask for an action, and tells of repairs', () => {
    const text =
      'index, gpu_recovery_action, remapped_rows.pending, remapped_rows.failure\n' +
      '0, Drain and Reset, Yes, No\n1, None, No, [N/A]\n2, [Unknown Error], No, No';
    expect(read(text).map(({ repairs }) => [...repairs])).toEqual([
      [
        ['remapped_rows.pending', true],
        ['remapped_rows.failure', false],
        ['recovery.drain_and_reset', true],
      ],
      [['remapped_rows.pending', false]],
      [
        ['remapped_rows.pending', false],
        ['remapped_rows.failure', false],
      ],
    ]);
  });
});

describe('the query', () => {
  it('has each property once, by the first name that is listed', () => {
    const help =
      'List of valid properties\n\n"uuid" or "gpu_uuid"\nThe "name" of it.\n\n"clocks_throttle_reasons.hw_slowdown"\r\n"unknown.thing"\n';
    const listed = listedFields(help);
    expect([...listed]).toEqual([
      'uuid',
      'gpu_uuid',
      'clocks_throttle_reasons.hw_slowdown',
      'unknown.thing',
    ]);
    expect(queryFor(listed)).toEqual(['uuid', 'clocks_throttle_reasons.hw_slowdown']);
  });

  it.each(Object.entries(CAPTURE))('finds what it needs in the help of %s', (_, file) => {
    const fields = queryFor(listedFields(readFileSync(file, 'utf8')));
    expect(fields).toContain('utilization.gpu');
    expect(fields.length).toBeGreaterThan(35);
    expect(new Set(fields).size).toBe(fields.length);
  });
});

describe('a list of processes', () => {
  it('has names with commas, absent memory and lines of other kinds', () => {
    const text =
      'timestamp, gpu_bus_id, pid, process_name, used_gpu_memory [MiB]\r\n' +
      '2026/07/03 22:11:09.916, 00000000:83:00.0, 17, python -c "a, b, c", 2566 MiB\r\n' +
      '2026/07/03 22:11:09.916, 00000000:83:00.0, 18, [Insufficient Permissions], [N/A]\n' +
      '2026/07/03 22:11:09.916, 00000000:83:00.0, [N/A], x, 1 MiB\nwarning: infoROM is corrupted\n';
    expect(parseProcesses(text)).toEqual([
      { pid: 17, gpu: '00000000:83:00.0', memory: 2566 * MIB },
      { pid: 18, gpu: '00000000:83:00.0', memory: null },
    ]);
  });

  it('may be empty, which is not the same as none', () => {
    expect(parseProcesses('gpu_bus_id, gpu_uuid, pid, used_gpu_memory [MiB]\n')).toEqual([]);
    expect(parseProcesses('No devices were found\n')).toBeNull();
  });

  it('of pmon goes by its header, whichever columns the driver has', () => {
    const old =
      '# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   name\n' +
      '    0      12     C    90    40     -     -   a b\n    1       -     -     -     -     -     -   -\n';
    const recent =
      '# gpu pid type sm mem enc dec jpg ofa command\n# Idx # C/G % % % % % % name\n 0 12 C 90 40 - - - - a\n 0 13 G - - - - - - b\n';
    expect(parsePmon(old)).toEqual([{ pid: 12, index: 0, sm: 0.9 }]);
    expect(parsePmon(recent)).toEqual([
      { pid: 12, index: 0, sm: 0.9 },
      { pid: 13, index: 0, sm: null },
    ]);
  });
});

describe('CUDA_VISIBLE_DEVICES', () => {
  const gpus = [
    {
      key: 'A',
      index: 0,
      uuid: 'GPU-aaaa1',
      name: 'H100',
      slices: [{ uuid: 'MIG-1', key: 'A 1/0' }],
    },
    { key: 'B', index: 1, uuid: 'GPU-aaab2', name: 'H100', slices: [] },
  ];
  it.each([
    ['0', ['A']],
    ['1,0', ['B', 'A']],
    [' 1 , -1, 0', ['B']],
    ['GPU-aaab', ['B']],
    // Both begin so.
    ['GPU-aaa', []],
    ['MIG-1', ['A 1/0']],
    ['MIG-GPU-aaaa1/1/0', ['A 1/0']],
    ['7', []],
    ['', []],
    ['$(rm -rf /)', []],
  ])('%j shows %j', (value, keys) => {
    expect(resolveVisible(value, gpus, true)).toEqual({ known: true, keys: new Set(keys) });
  });

  it('is not believed where its numbers may be of other GPUs', () => {
    expect(resolveVisible('0', gpus, false)).toMatchObject({ known: false });
    const mixed = [gpus[0], { ...gpus[1], name: 'T4' }].filter((one) => one !== undefined);
    expect(resolveVisible('0', mixed as typeof gpus, true)).toMatchObject({ known: false });
    expect(resolveVisible('GPU-aaab2', mixed as typeof gpus, false)).toMatchObject({ known: true });
  });
});

describe('slices', () => {
  it('and their processes are read from the text of -q as from XML', () => {
    const text = readFileSync(CAPTURE.mig, 'utf8').split('# load :: query (-q)')[1] ?? '';
    const slices = parseSlices(text);
    expect(slices?.slices.map(({ instance, used }) => [instance, (used ?? 0) / MIB])).toEqual([
      ['2/0', 11091],
      ['3/0', 17],
      ['9/0', 9],
      ['10/0', 9],
    ]);
    expect(slices?.processes.map(({ pid, memory }) => [pid, (memory ?? 0) / MIB])).toEqual([
      [21180, 2296],
      [21181, 1272],
      [21198, 7484],
    ]);
  });

  it('have their UUIDs in the list of GPUs', () => {
    expect(parseList(readFileSync(CAPTURE.mig, 'utf8'))[0]?.slices[1]).toEqual({
      index: 1,
      uuid: 'MIG-00000001-0000-0000-0000-000000000001',
      profile: '2g.20gb',
    });
  });

  it.each([
    ['nothing', ''],
    ['a message', 'No devices were found'],
    ['XML without a GPU', '<nvidia_smi_log></nvidia_smi_log>'],
  ])('cannot be read from %s', (_, text) => {
    expect(parseSlices(text)).toBeNull();
  });
});

describe('XML', () => {
  const wrap = (text: string) => `<?xml version="1.0"?><nvidia_smi_log>${text}</nvidia_smi_log>`;

  it('is read with entities, empty elements, comments, and elements that are not closed', () => {
    const root = parseDocument(
      wrap('<!-- gpu --><gpu id="a"><name>x &lt;y&gt; &amp; &unknown;</name><b/><c><d>1</c></gpu>'),
    );
    const [gpu] = root === null ? [] : all(root, 'gpu');
    expect(childText(gpu, ['name'])).toBe('x <y> & &unknown;');
    expect(gpu?.children.map(({ name }) => name)).toEqual(['name', 'b', 'c']);
  });

  it('that is deep, long or broken costs no more than its length', () => {
    const deep = parseDocument(wrap(`<gpu>${'<a>'.repeat(100_000)}`));
    expect(deep).not.toBeNull();
    expect(parseDocument(wrap(`<gpu>${'<a/>'.repeat(250_000)}</gpu>`))).not.toBeNull();
    expect(parseDocument(wrap(`<gpu>${'<'.repeat(200_000)}`))).not.toBeNull();
    expect(parseDocument(wrap(`<gpu>${'<a x="'.repeat(50_000)}`))).not.toBeNull();
    expect(parseDocument(wrap(`<gpu>${'<!--'.repeat(100_000)}`))).not.toBeNull();
  });
});

describe('messages of faults', () => {
  it.each([
    ['Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error', 'no-handle'],
    ['Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot', 'lost'],
    ['GPU 00000000:3B:00.0: GPU requires reset', 'reset-required'],
  ])('are known with their GPU: %s', (line, fault) => {
    expect(faultIn(line)).toMatchObject({ fault, busId: '00000000:3B:00.0' });
  });

  it('of the driver as a whole have none', () => {
    expect(faultIn('Failed to initialize NVML: Driver/library version mismatch')).toMatchObject({
      fault: 'driver',
      busId: null,
    });
    expect(faultIn('0, NVIDIA H100 80GB HBM3, 40 %')).toBeNull();
  });

  it('of the kernel are XIDs', () => {
    expect(
      xidIn('NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.'),
    ).toMatchObject({ fault: 'xid', xid: 79, busId: '00000000:3B:00.0' });
    expect(xidIn('usb 1-1: new device')).toBeNull();
  });
});
