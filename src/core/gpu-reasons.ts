/** Why the clocks of a GPU are held down, as nvidia-smi names it (`clocks_event_reasons.*`), in words that complete `by`. */
export const THROTTLE_WORDS: Readonly<Record<string, string>> = {
  sw_power_cap: 'its power limit',
  sw_thermal_slowdown: 'heat (software slowdown)',
  hw_thermal_slowdown: 'heat (hardware slowdown)',
  hw_power_brake_slowdown: 'the power supply (power brake)',
  hw_slowdown: 'the hardware (slowdown)',
};
