import type { LoadUnit, ThresholdOutcome } from '../core/load-outcome.ts';
import { formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { outside } from './layout.ts';

/** A number of a load run in people's units. */
export function formatLoadValue(value: number, unit: LoadUnit): string {
  switch (unit) {
    case 's':
      return formatSeconds(value);
    case 'ratio':
      return formatRatio(value);
    case 'count':
      return formatCount(value);
    case '1/s':
      return `${formatCount(value)}/s`;
  }
}

/** `ttft.p99>500ms: 612 ms, from 1,234`. */
export function thresholdText({ expression, measured, unit, reason }: ThresholdOutcome): string {
  const value = measured === null ? '' : `${formatLoadValue(measured, unit)}, `;
  return `${outside(expression, 80)}: ${value}${outside(reason, 200)}`;
}
