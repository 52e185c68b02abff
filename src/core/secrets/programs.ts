import { MASK } from './mark.ts';
import { ValueReader } from './value-reader.ts';
import { isCredential } from './values.ts';

/**
 * Options of well-known programs whose short names say nothing: `-p` is a password here and a port
 * there.
 */

/** What the value of an option is. */
export type ValueKind =
  /** A credential, all of it. */
  | 'secret'
  /** `user:password`, `user%password`, `user,password`. */
  | 'userinfo'
  /** Cookies, or the file that they are in. */
  | 'cookies';

interface ProgramOption {
  readonly flag: string;
  readonly kind: ValueKind;
  /** Where the value stands: in the next word, or in the same one. */
  readonly at: 'next' | 'same' | 'both';
}

interface Program {
  readonly options: readonly ProgramOption[];
  /** They count behind this word alone: `docker login -p`. */
  readonly behind?: string;
  /** Only the first: what follows belongs to another program. */
  readonly once?: boolean;
}

const option = (
  flag: string,
  kind: ValueKind = 'secret',
  at: ProgramOption['at'] = 'next',
): ProgramOption => ({ flag, kind, at });

const MYSQL: Program = { options: [option('-p', 'secret', 'same')] };
const LOGIN: Program = { options: [option('-p', 'secret', 'both')], behind: 'login' };
const LOWER_P: Program = { options: [option('-p')] };
const UPPER_P: Program = { options: [option('-P', 'secret', 'both')] };
const LDAP: Program = { options: [option('-w', 'secret', 'both')] };
const ARCHIVE: Program = { options: [option('-p', 'secret', 'same')] };
const REDIS: Program = { options: [option('-a')] };
const HTTPIE: Program = { options: [option('-a', 'userinfo'), option('--auth', 'userinfo')] };
const SMB: Program = { options: [option('-U', 'userinfo', 'both')] };
const SNMP: Program = { options: [option('-A'), option('-X'), option('-c')] };
const CREDS: Program = {
  options: ['--creds', '--src-creds', '--dest-creds'].map((flag) => option(flag, 'userinfo')),
};
const CURL: Program = {
  options: [
    option('-u', 'userinfo', 'both'),
    option('-U', 'userinfo', 'both'),
    option('--user', 'userinfo'),
    option('--proxy-user', 'userinfo'),
    option('-b', 'cookies', 'both'),
  ],
};
/** Named so that the options of the program before end with them. */
const OTHER: Program = { options: [] };

const PROGRAMS: ReadonlyMap<string, Program> = new Map(
  Object.entries({
    'mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlsh mysqlpump': MYSQL,
    'mariadb mariadb-dump mariadb-admin xtrabackup': MYSQL,
    'docker podman nerdctl helm oc az cf buildah crane oras': LOGIN,
    'mongo mongosh mongodump mongorestore mongoexport mongoimport': LOWER_P,
    'cqlsh beeline rabbitmqadmin hydra': LOWER_P,
    'sqlcmd bcp isql tsql ipmitool mosquitto_pub mosquitto_sub unzip zip': UPPER_P,
    'ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd ldapcompare': LDAP,
    '7z 7za 7zr rar unrar': ARCHIVE,
    'redis-cli valkey-cli keydb-cli': REDIS,
    'http https xh xhs': HTTPIE,
    'smbclient rpcclient smbget': SMB,
    'snmpwalk snmpget snmpset snmpbulkwalk': SNMP,
    skopeo: CREDS,
    curl: CURL,
    lftp: { options: [option('-u', 'userinfo')] },
    sshpass: { options: [option('-p', 'secret', 'both')], once: true },
    'ssh scp sftp rsync psql pg_dump python python3 node': OTHER,
  } satisfies Record<string, Program>).flatMap(([names, program]) =>
    names.split(' ').map((name): [string, Program] => [name, program]),
  ),
);

/**
 * An option that was met: what its value is, and where in the same word it begins; null for the
 * next word.
 */
export interface MetOption {
  readonly kind: ValueKind;
  readonly at: number | null;
}

/** Goes over the words of a command line, and knows which program's options they are. */
export class ProgramWords {
  #program: Program | null = null;
  #isBehind = false;

  /** The command ended: the next word may be another program. */
  end(): void {
    this.#program = null;
  }

  /** Takes the next word; null where it is no option with a credential. */
  take(word: string): MetOption | null {
    if (!word.startsWith('-')) {
      const found = PROGRAMS.get(word.slice(word.lastIndexOf('/') + 1));
      if (found !== undefined) {
        this.#program = found;
        this.#isBehind = found.behind === undefined;
      } else if (word === this.#program?.behind) this.#isBehind = true;
      return null;
    }
    if (this.#program === null || !this.#isBehind) return null;
    const { options, once } = this.#program;
    for (const { flag, kind, at } of options) {
      const isSame = at !== 'next' && flag.length === 2 && word.startsWith(flag) && word !== flag;
      // `curl -sSu user:password`: several in one word, of which the last has the value.
      const isLast = kind === 'userinfo' && /^-[A-Za-z]{2,8}$/.test(word) && endsWith(word, flag);
      if (!isSame && !isLast && (at === 'same' || word !== flag)) continue;
      if (once === true) this.#program = null;
      return { kind, at: isSame ? flag.length : null };
    }
    return null;
  }
}

const endsWith = (word: string, flag: string): boolean =>
  flag.length === 2 && word.endsWith(flag.slice(1));

/** The value of such an option without the credential in it; null where there is none. */
export function maskedValue(value: string, kind: ValueKind): string | null {
  if (kind === 'secret') return isCredential(value, { strength: 'certain' }) ? MASK : null;
  // A file has no sign in it.
  if (kind === 'cookies') return /^[^=\s]{1,256}=./.test(value) ? MASK : null;
  const [, user = '', password = ''] = /^([^:%,\s]{0,128}[:%,])(.+)$/s.exec(value) ?? [];
  if (user === '' || !isCredential(password, { strength: 'certain' })) return null;
  return /^\d+:\d+$/.test(value) ? null : user + MASK;
}

/** Words of a shell's line, and what ends a command. */
const WORD = /[^\s;|&()[\]{},"'`\\]+|[;|&\n]/g;
/** Before the value: space, `', '` in a list. */
const GAP = /(?:\\{0,16}["'`],?)?(?:[ \t]|\\\r?\n){0,32}/y;
const VALUE_LIMIT = 4096;

/** A line with the values of such options replaced. */
export function maskProgramOptions(text: string): string {
  const reader = new ValueReader(text);
  const words = new ProgramWords();
  const pieces: string[] = [];
  let done = 0;
  const pattern = new RegExp(WORD);
  for (let found = pattern.exec(text); found !== null; found = pattern.exec(text)) {
    const { 0: word, index } = found;
    const end = pattern.lastIndex;
    if (/^[;|&\n]$/.test(word)) {
      if (text[index - 1] !== '\\') words.end();
      continue;
    }
    // `-p'…'`: the word goes on behind a quote that did not stand before it.
    const quote = /["'`]/.exec(text[end] ?? '')?.[0] ?? '';
    const met = words.take(quote === text[index - 1] ? word : word + quote);
    if (met === null) continue;
    GAP.lastIndex = end;
    GAP.exec(text);
    if (met.at === null && GAP.lastIndex === end) continue;
    const at = met.at === null ? GAP.lastIndex : index + met.at;
    const value = reader.read(at, { ending: 'word', sign: ' ', most: VALUE_LIMIT });
    const masked = maskedValue(text.slice(value.from, value.to), met.kind);
    if (masked === null) continue;
    pieces.push(text.slice(done, value.from), masked);
    done = value.to;
    pattern.lastIndex = Math.max(pattern.lastIndex, value.end);
  }
  return [...pieces, text.slice(done)].join('');
}
