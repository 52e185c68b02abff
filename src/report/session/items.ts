/** The items of a list as a session's file has it; one that was edited by hand is one item, as it stands. */
export function itemsOf(text = ''): readonly string[] {
  try {
    const items: unknown = JSON.parse(text);
    if (Array.isArray(items)) return items.map(String);
  } catch {
    // No list of ours.
  }
  return text === '' ? [] : [text];
}
