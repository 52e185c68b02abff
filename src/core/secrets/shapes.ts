import { MASK } from './mark.ts';
import { isCredential, isPair } from './values.ts';

/** Credentials that are known by what they look like, whatever stands before them. */

/**
 * One kind. What the first group matches stays, if there is one; the last group is what `isOne`
 * judges. Patterns begin with a fixed text and do not backtrack over more than one word: text from
 * outside may be a megabyte of such beginnings.
 */
interface Shape {
  readonly of: string;
  readonly pattern: RegExp;
  readonly isOne?: (value: string) => boolean;
}

const certain = (value: string): boolean => isCredential(value, { strength: 'certain' });
const isNoWord = (value: string): boolean => !/^[A-Za-z]?[a-z]*[.,:]?$/.test(value);

/** Credentials that begin with one of these texts. */
const begun = (beginnings: string, rest: string): RegExp =>
  new RegExp(`(?<!\\w)(?:${beginnings.split(' ').join('|')})${rest}`, 'g');

const SHAPES: readonly Shape[] = [
  {
    of: 'OpenAI, Anthropic, OpenRouter, Langfuse',
    pattern: /(?<![\w-])[spr]k-(?:proj|ant|or|svcacct|admin|lf|live|test)-[\w-]{6,}/g,
  },
  { of: 'OpenAI, DeepSeek', pattern: /(?<![\w-])[spr]k-[A-Za-z\d]{10,}(?![\w-])/g },
  { of: 'Stripe', pattern: /(?<!\w)(?:[spr]k_(?:live|test)|whsec)_[A-Za-z\d]{8,}/g },
  { of: 'GitHub', pattern: /(?<!\w)(?:gh[pousr]_[A-Za-z\d]{8,}|github_pat_\w{8,})/g },
  {
    of: 'GitLab',
    pattern: /(?<!\w)gl(?:pat|dt|rt|cbt|ptt|soat|ffct|imt|agent|rtr)-[\w.-]{8,}/g,
  },
  { of: 'Hugging Face', pattern: /(?<!\w)hf_(?=[a-z]*[A-Z\d])[A-Za-z\d]{8,}(?!\w)/g },
  { of: 'Slack', pattern: /(?<!\w)(?:xox[a-z](?:\.xox[a-z])?-|xapp-\d-)[\w-]{6,}/g },
  { of: 'Slack', pattern: /(hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/]{8,}/g },
  { of: 'Discord', pattern: /(discord(?:app)?\.com\/api\/webhooks\/\d{1,20}\/)[\w-]{8,}/g },
  { of: 'Telegram', pattern: /(?<![\w:])((?:bot)?\d{8,10}:)[A-Za-z][\w-]{30,}/g },
  {
    of: 'AWS',
    pattern: /(?<![A-Za-z\d])(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA|AGPA|ANPA)[A-Z\d]{12,}/g,
  },
  {
    of: 'Google',
    pattern: /(?<!\w)(?:AIza[\w-]{30,}|ya29\.[\w.-]{10,}|GOCSPX-[\w-]{10,}|1\/\/0[\w-]{20,})/g,
  },
  // Begun once in a run of such characters: one without dots is not read again from each `eyJ`.
  { of: 'JSON web token', pattern: /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){0,4}/g },
  {
    of: 'NVIDIA, xAI, Perplexity, PyPI, Postman, Tailscale, Age, DigitalOcean, Linear, Figma',
    pattern: begun(
      'nvapi- xai- pplx- pypi- PMAK- tskey- AGE-SECRET-KEY-1 dop_v1_ lin_api_ lin_oauth_ figd_',
      '(?=[A-Za-z_-]{0,200}\\d)[\\w-]{12,}',
    ),
  },
  {
    of: 'npm, Groq, Replicate, Fireworks, Docker, Together, Shopify, Sentry, Grafana, Supabase',
    pattern: begun(
      'npm_ gsk_ r8_ fw_ dckr_pat_ dckr_oat_ tgp_v1_ shpat_ shpca_ shppa_ shpss_ sntrys_ sntryu_ ' +
        'rubygems_ glc_ glsa_ sbp_ ntn_ pscale_tkn_ pscale_pw_',
      '[A-Za-z\\d]{16,}',
    ),
  },
  { of: 'SendGrid', pattern: /(?<!\w)SG\.[\w-]{10,100}\.[\w-]{10,100}/g },
  { of: 'Vault', pattern: /(?<![\w.])hv[sbr]\.[\w-]{12,}/g },
  { of: 'Databricks', pattern: /(?<!\w)dapi[\da-f]{32}/g },
  {
    of: 'Bearer',
    pattern: /(\b[Bb]earer(?:[ \t]|%20){1,4})([\w.~+/-]{6,}=*)/g,
    isOne: (value) => isNoWord(value) || value.length > 24,
  },
  {
    of: 'Basic',
    pattern: /(\b[Bb]asic(?:[ \t]|%20){1,4})([A-Za-z\d+/]{8,}={0,2})/g,
    isOne: isPair,
  },
  {
    of: 'what APIs answer',
    pattern:
      /(\b(?:api|access|secret)[ _]key (?:provided|given|was|is|used)\s?:?\s)([^\s"'`,]{4,200})/gi,
    isOne: isNoWord,
  },
  {
    of: 'SQL',
    pattern: /(\bIDENTIFIED(?: WITH \w{1,40})? (?:BY|AS) (?:PASSWORD )?['"])([^'"\n]{1,256})/gi,
    isOne: certain,
  },
  {
    of: 'SMTP, IMAP',
    pattern: /(\bAUTH (?:PLAIN|LOGIN|XOAUTH2) )([A-Za-z\d+/=]{8,})/g,
    isOne: isNoWord,
  },
  {
    of: 'what is piped to a program that asks for it',
    pattern: new RegExp(
      `(\\becho(?: -n)? ["']?)([^\\s"'|]{1,256})` +
        `(?=["']? ?\\| ?(?:sudo -S|(?:docker|podman|helm) login|chpasswd))`,
      'g',
    ),
    isOne: certain,
  },
  {
    of: 'netrc, wpa_supplicant, FTP, SMTP',
    pattern: /(\blogin[ \t]{1,4}[^\s]{1,64}[ \t]{1,4}password[ \t]{1,4})([^\s"'`]{1,256})/gi,
    isOne: certain,
  },
  {
    of: 'redis.conf',
    pattern: /(^[ \t]{0,8}(?:requirepass|masterauth)[ \t]{1,8})([^\s"'`]{1,256})/gm,
    isOne: certain,
  },
  {
    of: 'user:password@host:port without a scheme',
    pattern: /((?:^|[\s"'=])[\w.-]{1,64}:)([^\s"'`@/:]{1,128})(?=@[\w.-]{1,253}:\d{2,5}(?!\w))/g,
    isOne: certain,
  },
];

/** The text with credentials of known shape replaced. */
export function maskShapes(text: string): string {
  return SHAPES.reduce(
    (left, { pattern, isOne }) =>
      left.replace(pattern, (whole: string, ...groups: readonly unknown[]) => {
        // Behind the groups come numbers and the text itself.
        const [kept, value] = groups;
        if (typeof kept !== 'string') return MASK;
        if (typeof value === 'string' && isOne?.(value) === false) return whole;
        return kept + MASK;
      }),
    text,
  );
}

const BEGIN = /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const END = '-----END ';

/**
 * The text without what stands in private keys of PEM's form; of one that is cut, without all that
 * could belong to it.
 */
export function maskPrivateKeys(text: string): string {
  const pieces: string[] = [];
  let done = 0;
  const last = text.lastIndexOf(END);
  const body = /[A-Za-z\d+/=\s\\:,.*-]*/y;
  for (const { 0: head, index } of text.matchAll(BEGIN)) {
    const from = index + head.length;
    if (index < done) continue;
    body.lastIndex = from;
    body.exec(text);
    pieces.push(text.slice(done, from), MASK);
    done = last < from ? body.lastIndex : text.indexOf(END, from);
  }
  return [...pieces, text.slice(done)].join('');
}
