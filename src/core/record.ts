/** Whether a value from outside has fields that may be asked for: an object of any kind, also an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
