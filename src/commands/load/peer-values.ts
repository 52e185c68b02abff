import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { OptionValues } from '../command-line/command.ts';
import { PEER_FLAGS, type PeerFlag } from './peer-flags.ts';

/** The flags of other tools on one command line, said in ours. */
export interface Translated {
  readonly values: OptionValues;
  /** What was accepted and does nothing, and why: for stderr. */
  readonly notes: readonly string[];
}

/** A translation that only holds where the command line says nothing itself. */
const DEFAULT_MARK = '?';

/** What other tools call differently becomes what we call it. A usage error for what cannot mean the same here, or is said twice. */
export function translatePeerFlags(given: OptionValues): Translated {
  const values: Record<string, OptionValues[string]> = { ...given };
  const origin = new Map<string, string>(Object.keys(given).map((name) => [name, `--${name}`]));
  const defaults = new Map<string, string | true>();
  const notes: string[] = [];

  const set = (name: string, value: string | true, from: string): void => {
    if (name.startsWith(DEFAULT_MARK)) {
      defaults.set(name.slice(DEFAULT_MARK.length), value);
      return;
    }
    const before = values[name];
    if (Array.isArray(before) || REPEATED.has(name)) {
      values[name] = [...[before ?? []].flat(), value];
    } else if (before === undefined || before === value || before === false) {
      values[name] = value;
    } else {
      throw usageError(
        `${origin.get(name) ?? `--${name}`} and ${from} say the same thing differently`,
        'Give one of them.',
      );
    }
    if (!origin.has(name)) origin.set(name, from);
  };

  for (const peer of PEER_FLAGS) {
    const value = given[peer.flag];
    if (value === undefined) continue;
    const shown = `--${peer.flag}`;
    const ours = peer.is.kind === 'alias' && peer.is.flag === peer.flag;
    if (!ours) delete values[peer.flag];
    for (const one of [value].flat()) apply(peer, one, { shown, set, notes, ours });
  }
  for (const [name, value] of defaults) values[name] ??= value;
  return { values, notes };
}

/** Flags of which each one given counts. */
const REPEATED = new Set(['header', 'extra-body', 'extra-inputs', 'slo', 'goodput', 'mix']);

function apply(
  { is }: PeerFlag,
  value: string | boolean,
  context: {
    readonly shown: string;
    readonly ours: boolean;
    readonly notes: string[];
    readonly set: (name: string, value: string | true, from: string) => void;
  },
): void {
  const { shown, set, notes, ours } = context;
  switch (is.kind) {
    case 'alias':
      if (!ours) set(is.flag, value === false ? 'false' : value, shown);
      return;
    case 'translated': {
      const translation = is.to(String(value));
      if (translation === null) {
        throw usageError(`${shown} takes ${is.takes} here, got '${printable(String(value), 60)}'`);
      }
      for (const [name, one] of Object.entries(translation)) set(name, one, shown);
      return;
    }
    case 'moot':
      notes.push(`${shown} does nothing here: ${is.why}`);
      return;
    case 'refused':
      throw usageError(`${shown} is not a flag of trace load`, sentence(is.instead));
  }
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
