import type { Bytes, Ratio, Seconds } from './types.ts';

/** People's units: the only module that turns base units into text for people. */

/** The steps a duration is written in; `from` is where each begins. */
const STEPS = [
  { from: 172_800, size: 86_400, unit: 'd' },
  { from: 7200, size: 3600, unit: 'h' },
  { from: 120, size: 60, unit: 'min' },
  // 0.9995 s would be written as 1000 ms.
  { from: 0.9995, size: 1, unit: 's' },
  { from: 0.0009995, size: 1e-3, unit: 'ms' },
  { from: 0, size: 1e-6, unit: 'µs' },
] as const;

/** Digits for a number on its own: three significant, no digits after the point from 100 on. */
function threeDigits(value: number): string {
  if (!Number.isFinite(value)) return '?';
  const size = Math.abs(value);
  if (size >= 99.95) return formatCount(Math.round(value));
  if (size >= 9.995) return trimZeros(value.toFixed(1));
  return trimZeros(value.toFixed(2));
}

function trimZeros(digits: string): string {
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}

function stepOf(seconds: Seconds): (typeof STEPS)[number] {
  return STEPS.find((step) => Math.abs(seconds) >= step.from) ?? STEPS[5];
}

/** `840 µs`, `58.3 ms`, `3.2 s`, `2.5 min`. */
export function formatSeconds(seconds: Seconds): string {
  if (seconds === 0) return '0 ms';
  const step = stepOf(seconds);
  return `${threeDigits(seconds / step.size)} ${step.unit}`;
}

/** `58–66 ms`: a duration known only to lie between two bounds; an open upper bound is `≥ 58 ms`. */
export function formatInterval(low: Seconds, high: Seconds): string {
  if (!Number.isFinite(high)) return `≥ ${formatSeconds(low)}`;
  const step = stepOf(high);
  const [from, to] = [threeDigits(low / step.size), threeDigits(high / step.size)];
  return from === to ? `${to} ${step.unit}` : `${from}–${to} ${step.unit}`;
}

/** How far into a run, or how long a pause was, to the second: `9.82 s`, `23 h 59 min`. */
export function formatOffset(seconds: Seconds): string {
  if (!Number.isFinite(seconds)) return '?';
  if (seconds < 99.995) return `${trimZeros(seconds.toFixed(2))} s`;
  const whole = Math.round(seconds);
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** `1,234,567`. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return '?';
  if (!Number.isInteger(count)) return threeDigits(count);
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `12,345`, `3.21`, `0.00123`: in no unit, with three significant digits where it is small. */
export function formatNumber(value: number): string {
  return Math.abs(value) < 0.995 ? String(Number(value.toPrecision(3))) : formatCount(value);
}

/** How likely chance alone does as much, behind a `p`: `= 0.013`, `< 0.0001`. */
export function formatProbability(p: number): string {
  return p < 0.0001 ? '< 0.0001' : `= ${Number(p.toPrecision(2))}`;
}

/** `93 %`, `0.4 %`, `<0.1 %`. */
export function formatRatio(ratio: Ratio): string {
  const percent = ratio * 100;
  if (percent > 0 && percent < 0.095) return '<0.1 %';
  if (!Number.isFinite(percent)) return '?';
  return `${Math.abs(percent) < 9.95 ? trimZeros(percent.toFixed(1)) : Math.round(percent)} %`;
}

/** How often something happens, where it may be rare: `33 %`, `1.2 %`, `0.034 %`. */
export function formatRate(rate: Ratio): string {
  const percent = rate * 100;
  if (!Number.isFinite(percent)) return '?';
  return `${percent < 9.95 ? Number(percent.toPrecision(2)) : Math.round(percent)} %`;
}

/** `812 B`, `1.5 KiB`, `120 MiB`. */
export function formatBytes(bytes: Bytes): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${threeDigits(value)} ${units[unit]}`;
}

/** A point in time, UTC, to the second. */
export function formatTime(at: Seconds): string {
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return 'at an impossible time';
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** A number whose key ends in its unit (`worst_s`, `share_ratio`, `growth_bytes_per_s`), for people. */
export function formatMeasure(key: string, value: number): string {
  if (key.endsWith('_bytes_per_s')) return `${formatBytes(value)}/s`;
  if (key.endsWith('_per_s')) return `${formatCount(value)}/s`;
  if (key.endsWith('_s')) return formatSeconds(value);
  if (key.endsWith('_ratio')) return formatRatio(value);
  if (key.endsWith('_bytes')) return formatBytes(value);
  return formatCount(value);
}

/** What is left of a measure's key when its unit is taken off: `worst_s` → `worst`. */
export function measureName(key: string): string {
  return key.replace(/(?:_bytes)?_per_s$|_(?:s|ratio|bytes)$/, '').replaceAll('_', ' ');
}
