import { MASK } from './mark.ts';
import { isCredential, isDrawn } from './values.ts';

/**
 * Users and passwords in addresses: `scheme://user:password@host`, also where the password holds
 * `@` or `/`, which ought to be encoded.
 */

/** `://`, also as JSON may escape it. */
const SEPARATOR = /:(?:\/\/|\\{1,4}\/\\{1,4}\/)/g;
const SCHEME = /[a-z][a-z\d+.-]*$/i;
const SCHEME_LIMIT = 32;
/** What no address holds. */
const OUTSIDE = /[\s"'`<>\\]/;
/** Addresses of these are `user:password@host:port/name`, in which no other `@` stands. */
const STORES = new Set(
  (
    'postgres postgresql mysql mysqlx mariadb mongodb redis rediss valkey valkeys amqp amqps ' +
    'mssql sqlserver oracle clickhouse cockroach cockroachdb ldap ldaps smtp smtps imap imaps ' +
    'ftp ftps sftp kafka nats neo4j bolt cassandra db2 snowflake sqla'
  ).split(' '),
);
/** An address within another, percent-encoded: up to the password, and the password. */
const ENCODED = new RegExp(
  `(%3A%2F%2F(?:[\\w.~-]|%(?!3A|40|2F)[\\dA-F]{2}){0,64}%3A)` +
    `(?:[^\\s"'\`<>&%]|%(?!40|2F)[\\dA-F]{2}){1,256}(?=%40)`,
  'gi',
);

/** The text with passwords of addresses replaced, and users that look like a token. */
export function maskAddresses(text: string): string {
  const pieces: string[] = [];
  let done = 0;
  const separators = new RegExp(SEPARATOR);
  for (let place = separators.exec(text); place !== null;) {
    const from = separators.lastIndex;
    const before = text.slice(Math.max(0, place.index - SCHEME_LIMIT), place.index);
    place = separators.exec(text);
    const scheme = SCHEME.exec(before)?.[0] ?? '';
    // Up to the next address at most: nothing is looked at twice.
    const whole = text.slice(from, place?.index);
    const end = whole.search(OUTSIDE);
    const rest = end === -1 ? whole : whole.slice(0, end);
    const isCut = rest.endsWith('…') || (end === -1 && place === null);
    const length = scheme === '' ? 0 : userinfoLength(scheme, rest, isCut);
    if (length === 0) continue;
    pieces.push(text.slice(done, from), maskedUserinfo(rest.slice(0, length), scheme));
    done = from + length;
  }
  return [...pieces, text.slice(done)].join('').replace(ENCODED, `$1${MASK}`);
}

/** Characters before the `@`; 0 for an address without a user. */
function userinfoLength(scheme: string, rest: string, isCut: boolean): number {
  const query = rest.search(/[?#]/);
  const path = rest.search(/[/?#]/);
  const authority = path === -1 ? rest : rest.slice(0, path);
  const withPath = query === -1 ? rest : rest.slice(0, query);
  // `postgresql+asyncpg`, `mongodb+srv`.
  const isStore = STORES.has(scheme.toLowerCase().split(/[+.-]/)[0] ?? '');
  const at = (isStore ? withPath : authority).lastIndexOf('@');
  if (at !== -1) return isHost(authority, at) ? at : withPath.lastIndexOf('@');
  // A port that is no number: it is the beginning of a password that holds a slash.
  const port = /^(?:\[[^\]]*\]|[^:]*):(.+)$/s.exec(authority)?.[1] ?? '';
  if (/^(?:\d*…?$|[${<*])/.test(port)) return 0;
  const last = rest.lastIndexOf('@');
  if (last !== -1) return last;
  // Where the text ends, what is missing may have begun with the `@`.
  const isWeb = /^(?:git\+)?https?$/i.test(scheme);
  return isCut && authority === rest && (isStore || isWeb) ? rest.replace(/…$/, '').length : 0;
}

/**
 * Whether what stands behind an `@` is the host. One without a dot and a port, behind a password,
 * may be the rest of it, up to a slash: then another `@` follows.
 */
function isHost(authority: string, at: number): boolean {
  const host = authority.slice(at + 1);
  return !authority.slice(0, at).includes(':') || /[.:\]]|^localhost$/.test(host);
}

function maskedUserinfo(text: string, scheme: string): string {
  const colon = text.indexOf(':');
  if (colon === -1) return isLogin(text, scheme) ? text : MASK;
  const [user, password] = [text.slice(0, colon), text.slice(colon + 1)];
  if (!isCredential(password, { strength: 'certain' })) return text;
  return `${user.length >= 16 && isDrawn(user) ? MASK : user}:${MASK}`;
}

/**
 * Whether a user without a password is the name of somebody or of a program; over HTTP a token may
 * stand in its place.
 */
function isLogin(user: string, scheme: string): boolean {
  if (!isCredential(user, { strength: 'certain' })) return true;
  return /^(?:git\+)?(?:http|ws)/i.test(scheme)
    ? /^[a-z][a-z._-]{0,23}$/.test(user)
    : !isDrawn(user) && user.length < 40;
}
