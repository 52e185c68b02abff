/** What the catalogue says of one finding code, in short; the page has the rest. */
export interface CatalogueEntry {
  readonly code: string;
  readonly kind: string;
  /** A few words, as a heading has them. */
  readonly title: string;
  /** What it means, in two sentences at most. */
  readonly means: string;
  /**
   * What each mechanism is, in a few words, by its name in JSON. A name with `<number>` or `<name>`
   * stands for all that have a number or any text there. Most findings have one; null, where none
   * is known, is allowed everywhere.
   */
  readonly mechanisms: Readonly<Record<string, string>>;
  /** Several of them may be true at once: they are then a list with commas. */
  readonly isList?: true;
  /** How grave it is, by which rule. */
  readonly severity: string;
}
