/** A session's name in the file system: `login-fails-on-mobile-safari`. */

/** Longest slug, in characters. */
export const SLUG_LIMIT = 30;
const SLUG = /^[a-z0-9][a-z0-9-]*$/;
/** A title is looked at for so many characters: what is beyond cannot reach a slug, unless a megabyte of punctuation stands before it. */
const TITLE_LIMIT = 4096;

/** Whether `text` can be a slug of ours. */
export function isSlug(text: string): boolean {
  return text.length <= SLUG_LIMIT && SLUG.test(text);
}

/**
 * The slug of a title: lower case, everything else to single hyphens, at most {@link SLUG_LIMIT} characters, none of `taken`. A title of which
 * nothing is left gives `session-<date>`, by UTC.
 */
export function slugOf(
  title: string,
  { taken, now }: { readonly taken: ReadonlySet<string>; readonly now: Date },
): string {
  const plain = trimmed(
    title
      .slice(0, TITLE_LIMIT)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replace(/^-/, '')
      .slice(0, SLUG_LIMIT),
  );
  const base = plain === '' ? `session-${now.toISOString().slice(0, 10)}` : plain;
  if (!taken.has(base)) return base;
  for (let n = 2; ; n++) {
    const suffix = `-${n}`;
    const slug = `${trimmed(base.slice(0, SLUG_LIMIT - suffix.length))}${suffix}`;
    if (!taken.has(slug)) return slug;
  }
}

const trimmed = (text: string): string => text.replaceAll(/^-+|-+$/g, '');
