/**
 * What nvidia-smi prints into a cell. Its texts are for people and change with the driver: a number is taken where one stands, in the unit that stands
 * behind it, and all else is absent. Nothing is ever 0 because it was not understood.
 */

interface Unit {
  /** What is measured in it: cells of another kind than their column are nonsense. */
  readonly of: 'share' | 'size' | 'power' | 'temperature' | 'frequency' | 'time';
  /** To the base unit. */
  readonly factor: number;
}

const unit = (of: Unit['of'], factor: number): Unit => ({ of, factor });

const UNITS: Readonly<Record<string, Unit>> = {
  '%': unit('share', 0.01),
  B: unit('size', 1),
  KiB: unit('size', 2 ** 10),
  MiB: unit('size', 2 ** 20),
  GiB: unit('size', 2 ** 30),
  TiB: unit('size', 2 ** 40),
  // As older drivers wrote for MiB.
  MB: unit('size', 2 ** 20),
  mW: unit('power', 1e-3),
  W: unit('power', 1),
  C: unit('temperature', 1),
  Hz: unit('frequency', 1),
  KHz: unit('frequency', 1e3),
  MHz: unit('frequency', 1e6),
  GHz: unit('frequency', 1e9),
  ns: unit('time', 1e-9),
  us: unit('time', 1e-6),
  ms: unit('time', 1e-3),
  s: unit('time', 1),
};

const NUMBER = /^([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%]+)?$/;

/**
 * A number in base units; null for `[N/A]`, `[Not Supported]`, `ERR!`, a unit that is unknown or of another kind, and whatever else is no number.
 * `usual` is what a bare number is in where neither the cell nor the header (`[MiB]`) says it; null: it has no unit.
 */
export function numberOf(
  text: string | undefined,
  usual: string | null,
  header: string | null = null,
): number | null {
  const match = NUMBER.exec(text?.trim() ?? '');
  if (match === null) return null;
  const stated = match[2] ?? header ?? usual;
  const value = Number(match[1]);
  if (!Number.isFinite(value)) return null;
  if (stated === null) return value;
  const [known, expected] = [UNITS[stated], usual === null ? undefined : UNITS[usual]];
  if (known === undefined || known.of !== expected?.of) return null;
  return scaled(value, known.factor);
}

/** 40 % is 0.4, not 0.4000…2. */
function scaled(value: number, factor: number): number {
  return factor < 1 ? value / Math.round(1 / factor) : value * factor;
}

/** `Active` and `Yes` of a flag; null for what is neither that nor their opposites. */
export function flagOf(text: string | undefined): boolean | null {
  const word = text?.trim().toLowerCase() ?? '';
  if (SET.has(word)) return true;
  return UNSET.has(word) ? false : null;
}

const SET: ReadonlySet<string> = new Set(['active', 'yes', 'enabled']);
const UNSET: ReadonlySet<string> = new Set(['not active', 'no', 'disabled']);

/** Text of a cell; null where it says in one of nvidia-smi's ways that there is none. */
export function textOf(text: string | undefined): string | null {
  const trimmed = text?.trim() ?? '';
  return trimmed === '' || /^(?:\[.*\]|n\/a|-|err!?|unknown error)$/i.test(trimmed)
    ? null
    : trimmed;
}
