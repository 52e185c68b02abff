import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** An nvidia-smi that is none: it answers from a capture of a real one, and does what it is told to. */

const FIXTURES = join(import.meta.dirname, '../fixtures/nvidia-smi');

/** The captures, by what they are of. */
export const CAPTURE = {
  rtx2080: join(FIXTURES, 'nvidia-geforce-rtx-2080-super__610.57.04.txt'),
  h100: join(FIXTURES, 'nvidia-h100-80gb-hbm3__590.48.01.txt'),
  mig: join(FIXTURES, 'nvidia-h100-mig__590.48.01.txt'),
  h200: join(FIXTURES, 'nvidia-h200__590.48.01.txt'),
  l40s: join(FIXTURES, 'nvidia-l40s__595.80.txt'),
} as const;

/** Cells by column, in place of those of the capture. */
export type Cells = Readonly<Record<string, string>>;

/** What `fake_smi.py` reads; it explains them. */
export interface FakeSettings {
  readonly capture: string;
  readonly state?: 'idle' | 'load';
  readonly processes?: readonly (readonly [pid: number, memory: number | string, gpu?: number])[];
  readonly values?: Cells | readonly Cells[];
  readonly drop?: readonly string[];
  readonly lie?: boolean;
  readonly behaviour?: string;
  readonly after?: number;
  readonly only?: string;
  /** Seconds for which a killed one stays, of `hang-hard`. */
  readonly held?: number;
  /** Lines come so many times faster than asked for. */
  readonly speed?: number;
}

export class FakeSmi {
  /** A folder to put on PATH. */
  readonly folder: string;
  readonly program: string;
  readonly #config: string;
  #settings: FakeSettings;

  /** `finished`: of the test's own context, where tests run side by side. */
  constructor(settings: FakeSettings, finished: typeof onTestFinished = onTestFinished) {
    this.folder = mkdtempSync(join(tmpdir(), 'fake-smi-'));
    this.program = join(this.folder, 'nvidia-smi');
    this.#config = join(this.folder, 'settings.json');
    this.#settings = settings;
    this.set({});
    const fake = join(import.meta.dirname, 'fake_smi.py');
    writeFileSync(
      this.program,
      `#!/bin/sh\nFAKE_SMI_CONFIG='${this.#config}' exec python3 -S '${fake}' "$@"\n`,
      { mode: 0o755 },
    );
    finished(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Changes what it does from its next line on. */
  set(change: Partial<FakeSettings>): void {
    this.#settings = { ...this.#settings, ...change };
    const next = `${this.#config}.next`;
    writeFileSync(next, JSON.stringify(this.#settings));
    renameSync(next, this.#config);
  }

  /** The command lines with which it was started, in their order. */
  get calls(): readonly string[] {
    const log = `${this.#config}.log`;
    return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  }
}
