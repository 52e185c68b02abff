/**
 * Which names say that their value is a credential: of options, variables, headers, parameters,
 * members.
 */

/**
 * How sure a name makes it. `certain`: whatever stands there. `likely`: unless it is a path, a
 * count or the like. `possible`: only what looks as if it had been drawn by lot.
 */
export type Strength = 'certain' | 'likely' | 'possible';

/** Where a name stands. */
export interface NamePlace {
  /** The word before it, which may belong to it (`API key`). */
  readonly before?: string;
  /** In the query or the fragment of an address. */
  readonly isQuery?: boolean;
  /** In a sentence, rather than as an option, a member or an assignment. */
  readonly isLoose?: boolean;
}

/** Longer names are told by their end. */
const NAME_LIMIT = 160;

const CERTAIN =
  /passw(?:or)?[dt]|passphrase|passcode|secret(?!ar|s$)|apikey|requirepass|masterauth/;
/** Of one word, where others write two. */
const LIKELY = new RegExp(
  '(?:access|private|priv|secret|signing|encryption|account|auth|master|shared|storage)key$|' +
    'credentials?$|^jwt$|^bearer$|sess(?:ion)?id$|^secrets$',
);

/** At the end of a name they make it that of something about a credential. */
const METADATA = new Set(
  (
    'file files path paths dir directory folder name names count counts limit length len size ' +
    'type types mode id ids ttl expiry expires expiration expired age url uri endpoint ' +
    'algorithm alg algo version provider policy prompt field fields column header headers ' +
    'stdin fd env var variable store manager class format encoding template usage rotation ' +
    'error errors required enabled disabled lifetime interval retries min max hint reset ref ' +
    'arn index position pos offset budget rate kind location source helper process cache ' +
    'caching change changed server strategy method'
  ).split(' '),
);
/** At its beginning they make it a switch, or a number. */
const NO_VALUE = new Set(
  (
    'no without disable enable require requires required skip ask show prompt has is allow ' +
    'ignore hide mask max min num n count total'
  ).split(' '),
);
/** At its end they only say which one it is. */
const WHICH = new Set(
  (
    'value text raw plain string base b data default prod production dev development test ' +
    'staging old new current primary secondary main hash'
  ).split(' '),
);
/** Tokens of text, not of access. */
const TOKENS = new Set(
  (
    'eos bos pad unk sep cls mask stop stopping end start begin special image audio video ' +
    'first last next prev previous per output input prompt completion max min num total each ' +
    'every single think thinking tool control draft reserved extra added vocab of unexpected ' +
    'expected unknown parser syntax cancellation cancel lookahead delimiter separator word ' +
    'sampled generated'
  ).split(' '),
);
/** Keys that open something. */
const KEYS = new Set(
  (
    'api access secret private priv signing sign signature encryption encrypt decryption ' +
    'account shared storage master auth license subscription service client admin aes hmac ' +
    'jwt ssh gpg ssl tls webhook deploy consumer cipher wrap app application instrumentation ' +
    'integration openai anthropic azure google mistral groq nvidia cohere datadog dd sendgrid ' +
    'mailgun stripe twilio write ingest root functions'
  ).split(' '),
);
/** Keys that find something, or that are pressed. */
const OTHER_KEYS = new Set(
  (
    'primary foreign cache sort partition public pub group hash idempotency object prompt row ' +
    'lookup dict hot map json yaml index column unique composite natural surrogate ' +
    'translation locale arrow enter return escape shift ctrl tab space any press each every ' +
    'no missing unknown unexpected duplicate config registry kv query attention head routing ' +
    'message event bucket blob file foreign'
  ).split(' '),
);
const PASSES = /(?:^|[a-z])(?:pass|pwd)$|^(?:root|user|db|admin|my)?pw$/;
const OTHER_PASSES = /(?:by|com|tres|sur|encom|under|over|one|two|multi|single)pass$/;
/** Before `pass`: one of several. */
const PASS_OF = new Set(
  'two multi single first second third one high low band test number by'.split(' '),
);

/** What a name says of its value; null for one that says nothing. */
export function strengthOf(name: string, place: NamePlace = {}): Strength | null {
  const own = wordsOf(name);
  const first = own[0] ?? '';
  if (METADATA.has(own.at(-1) ?? '') || (own.length > 1 && NO_VALUE.has(first))) return null;
  if (own.some((word) => CERTAIN.test(word))) return 'certain';
  const words = own.length === 1 ? [...wordsOf(place.before ?? ''), ...own] : own;
  while (words.length > 1 && WHICH.has(words.at(-1) ?? '')) words.pop();
  return byLastWord(words, place);
}

function byLastWord(words: readonly string[], place: NamePlace): Strength | null {
  const last = words.at(-1) ?? '';
  const before = words.at(-2) ?? '';
  if (LIKELY.test(last)) return 'likely';
  if (last.endsWith('token')) return TOKENS.has(before) ? null : 'likely';
  if (last === 'key') return ofKey(before, place);
  if (PASSES.test(last) && !OTHER_PASSES.test(last)) {
    if (PASS_OF.has(before)) return null;
    return last === 'pass' && place.isLoose === true ? 'possible' : 'likely';
  }
  if (last === 'sig' || last === 'signature') return place.isQuery === true ? 'likely' : 'possible';
  if (last === 'auth' && words[0] === 'x') return 'likely';
  if (['auth', 'pat', 'otp', 'totp', 'sid', 'csrf', 'xsrf'].includes(last)) return 'possible';
  const isOfQuery = ['code', 'assertion', 'samlresponse', 'response', 'session'].includes(last);
  return place.isQuery === true && isOfQuery ? 'possible' : null;
}

function ofKey(before: string, place: NamePlace): Strength | null {
  if (KEYS.has(before)) return 'likely';
  if (OTHER_KEYS.has(before)) return null;
  return place.isQuery === true && before === '' ? 'likely' : 'possible';
}

/** `keyStorePassword2`, `KEY_STORE_PASSWORD`: in words, in lower case, without digits. */
function wordsOf(name: string): string[] {
  return name
    .slice(-NAME_LIMIT)
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');
}

/** Headers, query parameters and the like of which nothing is kept, by their name alone. */
const NEVER_KEPT = new RegExp(
  'auth(?!ors?$)|token$|secret|passw|cookie|credential|signature|session|api[-_]?key|' +
    'access[-_]?key|^key$|^sig$',
  'i',
);

/**
 * Whether a header or a query parameter of that name is kept without its value: sooner than in
 * text, since nobody misses it.
 */
export function isNeverKept(name: string): boolean {
  const strength = strengthOf(name, { isQuery: true });
  return NEVER_KEPT.test(name) || strength === 'certain' || strength === 'likely';
}
