/** Why the clocks of a GPU are held down, as nvidia-smi names it (`clocks_event_reasons.*`). */
export type ThrottleReason =
  | 'sw_power_cap'
  | 'sw_thermal_slowdown'
  | 'hw_thermal_slowdown'
  | 'hw_power_brake_slowdown'
  | 'hw_slowdown';

/** In words that complete `by`. */
export const THROTTLE_WORDS: Readonly<Record<ThrottleReason, string>> = {
  sw_power_cap: 'its power limit',
  sw_thermal_slowdown: 'heat (software slowdown)',
  hw_thermal_slowdown: 'heat (hardware slowdown)',
  hw_power_brake_slowdown: 'the power supply (power brake)',
  hw_slowdown: 'the hardware (slowdown)',
};

/** Null for a reason that costs no work, and for one that is not known. */
export function throttleReason(text: string | null): ThrottleReason | null {
  const known = Object.keys(THROTTLE_WORDS) as ThrottleReason[];
  return known.find((one) => one === text) ?? null;
}
