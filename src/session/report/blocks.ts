import { type Field, fieldOf, plainFieldOf } from './labels.ts';
import {
  hasLevel,
  isChatMark,
  isCommandLine,
  isLogLine,
  LINE_LIMIT,
  TRACEBACK,
  unprefixed,
} from './lines.ts';
import { isEnvironmentText } from './versions.ts';

/** A report cut into blocks, each with the part of the report that it stands in. */

export interface Block {
  readonly kind: 'prose' | 'code' | 'command' | 'log' | 'checkbox';
  readonly field: Field;
  /** Verbatim, without the fence around it. */
  readonly text: string;
  /** Of a checkbox. */
  readonly isTicked?: boolean;
}

/** Lines that are read; a log of 1 MB has 10,000. */
const LINES_LIMIT = 50_000;

const FENCE = /^[\s>]{0,12}(?:[-*] )?(`{3,}|~{3,})\s*([\w+.-]{0,20})/;
/** A fence that opens and closes in one line is a line of code. */
const ONE_LINE_FENCE = /^[\s>]{0,12}(?:[-*] )?`{3,}\s*([^`\s][^`]{0,4000}?)\s*`{3,}\s*$/;
/** The begin of a manifest of Kubernetes or Compose, which nobody prints as a log. */
const MANIFEST = /^(?:apiVersion|kind|services|version|spec): ?/;
const HEADING = /^ {0,3}(#{1,6})\s+(.{1,200})$/;
/** `**Expected behavior**`, `*Expected:* text`, `__Logs__:`; Slack has one asterisk. */
const BOLD = /^\s*(?:[-*] )?(\*{1,2}|__)([^*_\n]{1,80})\1\s*:?\s*(.*)$/;
const PLAIN = /^\s*(?:[-*•] |\d{1,2}[.)] )?([A-Za-z][A-Za-z /'’-]{1,45}?)\s?[:：?](?:\s+(\S.*))?$/;
const CHECKBOX = /^\s*[-*] \[([ xX])\]\s+(.*)$/;
const DETAILS = /^\s*<(\/?)details\b[^<>]{0,80}>/i;
const SUMMARY = /<summary>(.{0,300}?)<\/summary>/i;
const TAG_ONLY = /^\s*(?:<\/?(?:details|summary|p|br|b|div|sub)\b[^<>]{0,80}>\s*)+$/i;
/** A picture, with nothing beside it. */
const IMAGE_ONLY = /^\s*(?:<img\b[^<>]{0,600}>|!\[[^[\]]{0,100}\]\([^()\s]{1,400}\))\s*$/i;
const TITLE_TAG = /^(?:\s*\[[^[\]\n]{1,40}\]\s*:?\s*)+/;
const COMMAND_LANGUAGES =
  /^(?:python3?|py|bash|sh|shell|console|zsh|yaml|yml|json|dockerfile|javascript|js|ts|rust|toml)$/i;

export function readBlocks(text: string): {
  readonly blocks: readonly Block[];
  readonly title: string | null;
} {
  const reader = new BlockReader(withoutComments(text.replaceAll(/\r\n?/g, '\n')));
  reader.read();
  return { blocks: reader.blocks, title: reader.title };
}

/** Templates explain themselves in comments. One that does not end is none. */
function withoutComments(text: string): string {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    const from = text.indexOf('<!--', at);
    const to = from === -1 ? -1 : text.indexOf('-->', from + 4);
    if (to === -1) return parts.length === 0 ? text : [...parts, text.slice(at)].join('');
    parts.push(text.slice(at, from));
    at = to + 3;
  }
}

interface Section {
  readonly field: Field;
  /** Of the heading: a deeper one that means nothing stays within. */
  readonly level: number;
}

const TOP: Section = { field: 'none', level: 7 };
/** Labels that are no headings lie below them all. */
const LABEL_LEVEL = 7;

class BlockReader {
  readonly blocks: Block[] = [];
  title: string | null = null;
  readonly #lines: readonly string[];
  #at = 0;
  #section: Section = TOP;
  /** What was open when `<details>` began. */
  readonly #outer: Section[] = [];
  #paragraph: string[] = [];
  #afterBlank = true;
  #hasHeading = false;
  /** Behind `Expected: …` one paragraph is meant, with the block that it leads to; then the part of the heading goes on. */
  #isInline = false;
  #headed: Section = TOP;

  constructor(text: string) {
    this.#lines = text.split('\n', LINES_LIMIT);
  }

  read(): void {
    while (this.#at < this.#lines.length) {
      const whole = this.#lines[this.#at] ?? '';
      const line = whole.slice(0, LINE_LIMIT);
      if (line.trim() === '' || isChatMark(line)) this.#blank();
      else if (!this.#isOfForm(line) && !this.#isRun(line)) this.#paragraph.push(whole);
      else continue;
      this.#at++;
    }
    this.#endParagraph();
  }

  #blank(): void {
    this.#endParagraph();
    this.#afterBlank = true;
  }

  /** Fences, headings, labels and tags. Each steps over what it took. */
  #isOfForm(line: string): boolean {
    const alone = ONE_LINE_FENCE.exec(line)?.[1];
    if (alone !== undefined) {
      this.#endParagraph();
      this.#add(isLogLine(alone) ? 'log' : 'code', alone);
      return this.#took();
    }
    const fence = FENCE.exec(line);
    if (fence !== null) return this.#fence(fence[1] ?? '```', fence[2] ?? '');
    const details = DETAILS.exec(line);
    if (details !== null || SUMMARY.test(line)) return this.#details(line, details?.[1] ?? null);
    if (TAG_ONLY.test(line) || IMAGE_ONLY.test(line)) return this.#took();
    const heading = HEADING.exec(line);
    if (heading !== null) return this.#heading(heading[1]?.length ?? 1, heading[2] ?? '');
    const checkbox = CHECKBOX.exec(line);
    if (checkbox !== null) {
      this.#endParagraph();
      this.#add('checkbox', checkbox[2] ?? '', checkbox[1] !== ' ');
      return this.#took();
    }
    return this.#label(line);
  }

  #took(): true {
    this.#at++;
    return true;
  }

  #fence(mark: string, language: string): true {
    this.#endParagraph();
    const closes = new RegExp(`^[\\s>]{0,12}\\${mark[0] ?? '`'}{${mark.length},}\\s*$`);
    const from = ++this.#at;
    while (
      this.#at < this.#lines.length &&
      !closes.test((this.#lines[this.#at] ?? '').slice(0, 40))
    )
      this.#at++;
    const lines = this.#lines.slice(from, this.#at);
    const text = lines.join('\n');
    if (text.trim() !== '') this.#add(this.#kindOf(lines, text, language), text);
    return this.#took();
  }

  #kindOf(lines: readonly string[], text: string, language: string): Block['kind'] {
    const begin = lines.slice(0, 400).filter((line) => line.trim() !== '');
    if (isEnvironmentText(text)) return 'log';
    const logged = begin.filter(
      (line) => isLogLine(line) || TRACEBACK.test(line.trimStart()),
    ).length;
    const isProgram = COMMAND_LANGUAGES.test(language) || isCommandLine(begin[0] ?? '');
    if (logged > 0 && (!isProgram || logged * 3 > begin.length || !isCommandLine(begin[0] ?? '')))
      return 'log';
    if (this.#section.field === 'logs') return 'log';
    if (this.#section.field === 'reproduction' || MANIFEST.test(begin[0] ?? '')) return 'code';
    if (isProgram || begin.some((line) => /^(?:import|from \w+ import|async def|def)\b/.test(line)))
      return 'code';
    return 'log';
  }

  #details(line: string, slash: string | null): true {
    this.#endParagraph();
    if (slash === '') this.#outer.push(this.#section);
    const summary = SUMMARY.exec(line)?.[1];
    const field = summary === undefined ? null : fieldOf(summary);
    if (field !== null) this.#open(field, LABEL_LEVEL);
    if (slash === '/' || /<\/details>/i.test(line))
      this.#section = this.#outer.pop() ?? this.#section;
    return this.#took();
  }

  #heading(level: number, label: string): true {
    this.#endParagraph();
    const field = fieldOf(label);
    if (field === 'title') this.#section = { field: 'title', level };
    else if (field !== null) this.#open(field, level);
    else if (this.#isTitle()) this.#takeTitle(label);
    else if (level <= this.#section.level) this.#open('other', level);
    this.#headed = this.#section;
    this.#hasHeading = true;
    this.#afterBlank = true;
    return this.#took();
  }

  #label(line: string): boolean {
    const bold = BOLD.exec(line);
    if (bold !== null) {
      const [, , name = '', rest = ''] = bold;
      const field = fieldOf(name.replace(/[:?]\s*$/, ''));
      const isLabel =
        rest === '' ||
        /[:?]\s*$/.test(name) ||
        /^\s*:/.test(line.slice(line.indexOf(name) + name.length).replace(/^[*_]+/, ''));
      if (field !== null && isLabel && !this.#isListed(field)) return this.#opens(field, rest);
      return false;
    }
    const plain = PLAIN.exec(line);
    const [, name = '', rest = ''] = plain ?? [];
    if (plain !== null && /^(?:title|subject)$/i.test(name.trim()) && this.#isTitle()) {
      this.#takeTitle(rest);
      return this.#took();
    }
    const alone = line.trim();
    const field =
      plain !== null
        ? plainFieldOf(name)
        : this.#afterBlank && alone.length < 40
          ? aloneFieldOf(alone)
          : null;
    return field !== null && !this.#isListed(field) && this.#opens(field, rest);
  }

  /** One line of the environment's list, which is read as a whole. */
  #isListed(field: Field): boolean {
    return this.#section.field === 'environment' && field.startsWith('version:');
  }

  #opens(field: Field, rest: string): boolean {
    // Within its own part (`command: …` under "Reproduction") it is text.
    if (rest !== '' && field === this.#section.field) return false;
    this.#endParagraph();
    this.#open(field, LABEL_LEVEL);
    this.#isInline = rest !== '';
    if (field === 'title') this.#takeTitle(rest);
    else if (rest !== '') this.#paragraph.push(rest);
    return this.#took();
  }

  #open(field: Field, level: number): void {
    this.#takeLoneLine();
    this.#isInline = false;
    this.#section = { field, level };
  }

  #isTitle(): boolean {
    return (
      this.title === null &&
      !this.#hasHeading &&
      this.blocks.length < 4 &&
      this.#section.field === 'none'
    );
  }

  #takeTitle(label: string): void {
    const title = label
      .replace(TITLE_TAG, '')
      .replace(/^\s*(["'])(.*)\1\s*$/, '$2')
      .trim()
      // The number that a page shows behind an issue's title; "broken since #123" is the title.
      .replace(/(?<!\b(?:after|before|by|since|in|of|from|to|with|see|PR))\s#\d+$/i, '');
    if (title !== '' && this.title === null) this.title = title;
    this.#hasHeading = true;
  }

  /** A line alone before the first part is what the whole is about. */
  #takeLoneLine(): void {
    const first = this.blocks.length === 1 ? this.blocks[0] : undefined;
    if (first?.kind !== 'prose' || this.#hasHeading || this.title !== null) return;
    if (first.field === 'none' && !first.text.includes('\n') && first.text.length <= 150)
      this.#takeTitle(first.text);
  }

  /** What a program wrote, or a command, with no fence around it. */
  #isRun(line: string): boolean {
    const next = (this.#lines[this.#at + 1] ?? '').slice(0, LINE_LIMIT);
    if (isLogLine(line) || (/^[\w.]{0,60}Error\b/.test(line) && /^\s+at \S/.test(next)))
      return this.#logRun();
    if (isCommandLine(line)) return this.#commandRun();
    return false;
  }

  #logRun(): true {
    this.#endParagraph();
    const from = this.#at;
    let inTraceback = /\bTraceback \(most/.test((this.#lines[from] ?? '').slice(0, LINE_LIMIT));
    this.#at++;
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = (this.#lines[this.#at] ?? '').slice(0, LINE_LIMIT);
      if (isLogLine(line))
        inTraceback =
          TRACEBACK.test(unprefixed(line.trimStart()).said) || /^\s/.test(line) || inTraceback;
      else if (line.trim() === '') {
        if (!this.#goesOn()) break;
      } else if (hasLevel(line)) inTraceback = false;
      else if (inTraceback && !/^\s/.test(line)) {
        // The exception itself ends a traceback; a chained one begins with a sentence.
        if (!/^(?:During handling|The above exception|[\w.]+(?:$|: |\())/.test(line)) break;
        if (!/^(?:During|The above)/.test(line)) inTraceback = false;
      } else if (!/^\s+\S/.test(line) && !/^[\w.]+(?:Error|Exception)(?:$|: )/.test(line)) break;
    }
    this.#add('log', this.#lines.slice(from, this.#at).join('\n').trimEnd());
    return true;
  }

  /** After a blank line: whether the next that is not goes on with the log. */
  #goesOn(): boolean {
    for (let i = this.#at + 1; i < Math.min(this.#at + 4, this.#lines.length); i++) {
      const line = (this.#lines[i] ?? '').slice(0, LINE_LIMIT);
      if (line.trim() !== '')
        return isLogLine(line) || /^(?:During handling of|The above exception)/.test(line);
    }
    return false;
  }

  #commandRun(): true {
    this.#endParagraph();
    const from = this.#at;
    do this.#at++;
    while (
      this.#at < this.#lines.length &&
      (/\\\s*$/.test((this.#lines[this.#at - 1] ?? '').slice(-40)) ||
        isCommandLine(this.#lines[this.#at] ?? ''))
    );
    this.#add('command', this.#lines.slice(from, this.#at).join('\n'));
    return true;
  }

  #endParagraph(): void {
    this.#afterBlank = false;
    if (this.#paragraph.length === 0) return;
    const text = this.#paragraph.join('\n');
    this.#paragraph = [];
    if (this.#section.field === 'title') this.#takeTitle(text.split('\n', 1)[0] ?? '');
    else if (
      this.title === null &&
      this.blocks.length === 0 &&
      TITLE_TAG.test(text) &&
      !text.includes('\n')
    )
      this.#takeTitle(text);
    else {
      if (this.#isInline && this.blocks.at(-1)?.field === this.#section.field) {
        this.#section = this.#headed;
        this.#isInline = false;
      }
      this.#add('prose', text);
    }
  }

  #add(kind: Block['kind'], text: string, isTicked?: boolean): void {
    const field = this.#section.field;
    this.blocks.push({ kind, field, text, ...(isTicked === undefined ? {} : { isTicked }) });
  }
}

/** A heading of a ticket that was pasted without its marks: only words that are nothing else. */
function aloneFieldOf(line: string): Field | null {
  if (!/^[A-Z][\w ’']{2,60}\??$/.test(line)) return null;
  return /\s/.test(line) ? plainFieldOf(line) : ALONE.test(line) ? fieldOf(line) : null;
}

const ALONE =
  /^(?:Expected|Actual|Steps|Reproduction|Repro|Environment|Versions|Logs|Description|Summary|Symptoms|Frequency)$/;
