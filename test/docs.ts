import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** A page of documentation, with its path from the root of the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** The pages at the top and all below docs/. */
export function pages(root: string): Page[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md'));
  const below = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  return [...top, ...below].map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** A command line shown in a ```console block, and the page it stands on. */
export interface Example {
  readonly page: string;
  readonly line: string;
}

/** Every `$ trace …` of a page's ```console blocks. */
export function examples({ path, text }: Page): Example[] {
  return [...text.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    [...block.matchAll(/^\$ (trace\b.*)$/gm)].map(([, line = '']) => ({ page: path, line })),
  );
}

/** Every command line below `Examples:` of a help text, without variables before it, a pipe or a remark behind it. */
export function helpExamples({ path, text }: Page): Example[] {
  const [, below = ''] = text.split(/^Examples:$/m);
  return [...below.matchAll(/^ {2}(?:[A-Z_]+=\S+ )?(trace\b.*?)(?: \| .*| {2,}.*)?$/gm)].map(
    ([, line = '']) => ({ page: path, line }),
  );
}

/** The words of a command line: spaces separate, single quotes keep together, nothing else is special. */
export function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
}

/** Links of a page that stay inside the repository, as written. */
export function localLinks({ text }: Page): string[] {
  const withoutCode = text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '');
  return [...withoutCode.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors that GitHub gives to a page's headings. */
export function anchors({ text }: Page): Set<string> {
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.*)$/gm);
  return new Set(
    [...headings].map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
        .trim()
        .replaceAll(/\s/g, '-'),
    ),
  );
}

/** Flags that a page mentions in code, without those that are said to be another program's. */
export function mentionedFlags({ text }: Page): string[] {
  const code = [...text.matchAll(/`([^`\n]+)`|^\*\*(--[^*]+)\*\*/gm)].map(
    ([, inline, bold]) => inline ?? bold ?? '',
  );
  return code
    .filter((piece) => piece.startsWith('-') || piece.startsWith('trace '))
    .flatMap((piece) => piece.match(/(?<![\w>-])--?[a-z][a-z-]*(?![\w-])/g) ?? []);
}
