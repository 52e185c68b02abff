import { LINE_LIMIT } from './lines.ts';

/** What is told in sentences and under no heading: when it began, whether it ever worked, what changed, how often. */

const SENTENCE_LIMIT = 600;
/** Sentences that are looked at. */
const SENTENCES_LIMIT = 5000;

const STARTED =
  /\b(?:since (?:yesterday|last|this|the|we|i|upgrad|updat|v?\d|monday|tuesday|wednesday|thursday|friday|saturday|sunday|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|about|around|\w+ \d)|(?:it |this |problem |issue |failures? |errors? |hangs? |we |that )?(?:has |have )?(?:all )?(?:started|began|begun)(?: (?:happening|failing|seeing|to|on|after|around|last|yesterday|this|with|about|at|in|occurring|showing|crashing|hanging|getting|when))|(?:only|appears?|appeared|fails?|failing|broken|happens?|happening) since\b|first (?:seen|noticed|observed|appeared|occurred)|(?:first )?noticed (?:this|it) (?:on|yesterday|last|this|after))\b/i;
const CLOCK_TIME =
  /\b(?:at|around|about|since|from) \d{1,2}:\d\d(?: ?[AP]M)? (?:UTC|GMT|CES?T|[PE][SD]T|IST|today|yesterday|this)\b/i;
const STARTED_NOT =
  /\b(?:server|service|worker|engine|container|pod|i|frontend|process) (?:was |is |has |have )?(?:just )?started\b|started (?:the|a|my|our|\d+)\b/i;
const WORKED =
  /\b(?:used to work|worked? (?:fine|well|ok|okay|correctly|perfectly|before|as expected|without|in|on|with|under|until|for|just fine|flawlessly|great)|(?:works?|runs?) (?:fine|well|ok|okay|correctly|perfectly|as expected|without|just fine)|was (?:working|fine|ok|stable)|were fine|(?:was|is|does) not (?:present|happen|occur|reproduce|seen) (?:in|on|with|under|before)|not present in|never worked|(?:has|have) (?:never|always) (?:worked|been)|did(?: not|n[’']t) (?:happen|occur|have this|see this)|^not happen(?:ed|ing|s)? (?:in|on|with|under)|does(?: not|n[’']t) (?:happen|occur) (?:in|on|with|under)|no (?:such )?(?:issue|problem|error|trouble|bug|failure|hang|crash|crashe)s? (?:in|on|with|before|under|prior)|v?\d{1,4}\.\d{1,4}[\w.]{0,20} (?:is|was|works?|worked|does|did|stayed|runs?|ran) (?:right|fine|ok|okay|correct(?:ly)?|good|stable|flat|true|well|not affected)\b|(?:in|on|with|under) \S{0,40} ?v?\d{1,4}\.\d[\w.]{0,20} (?:it |they |the same \w+ |everything )?(?:pass(?:es|ed)|agrees?|agreed|succeeds?|succeeded|is right|was right)\b|last (?:known )?(?:good|working)|is fine (?:in|on|with)|fine (?:in|on|with) (?:v?\d|the (?:old|previous)|vllm|sglang|torch)|(?:roll(?:ing|ed)? back|downgrad(?:ing|ed)|revert(?:ing|ed)) (?:to |the )\S.{0,60}(?:fix|solve|help|resolve|make|work|go)|ran (?:fine|without|for)|is fine\b|has no (?:this |such )(?:problem|issue|error)|behave[sd]? (?:correctly|well|as expected)|correctly (?:in|on|with|there)\b|not (?:with|in|on) v?\d+\.|before (?:the|that|this) \w+,? (?:it|this|we|everything) (?:was|were|did|had|worked)|has never \w+ (?:in|on|with|before)\b|none of this|(?:saw|see|seen|had|have) (?:none|no) (?:such|of)\b|it (?:has |had )?(?:always )?worked\b|without (?:a |any )?(?:problem|issue|error|failure|trouble)s?\b|never (?:happened|occurred|failed|saw|seen) (?:this |it )?(?:before|until)|before(?:,| that,?) (?:it|this|that|we|everything|the \w+) (?:was|were|did|had|ran|has|took))/i;
/** "It hangs without any error" is no praise. */
const WORKED_NOT =
  /\b(?:hangs?|stuck|stops?|fails?|crash\w*|dies?)\b[^.]{0,80}\bwithout (?:a |any )?error/i;
const CHANGED =
  /\b(?:after (?:we |i |the )?(?:upgrad|updat|bump|chang|switch|mov|migrat|deploy|enabl|disabl|merg|pull|install|rebuild|adding|added|rollout|last deploy|increas|turning|setting)\w*|(?:we|i|they|infra|ops|team|somebody|someone)(?: have| had|[’']ve)?(?: recently| just)? (?:upgraded|updated|bumped|changed|switched|moved|migrated|deployed|enabled|merged|rolled out|added|turned on|replaced|increased)\b|since (?:we |i |the )?(?:upgrad|updat|bump|chang|switch|mov|migrat|deploy|enabl|merg|rollout)\w*|upgraded? (?:from|to)|(?:nothing|no code) (?:else )?(?:has |was |has been )?(?:changed|changes|deployed)|since (?:the |last |our |a )?(?:\w+ ){0,3}(?:upgrade|update|rollout|deploy(?:ment)?|release|migration|change)\b|with the (?:rollout|upgrade|update|release|deployment) (?:of|to) \S|only (?:thing|change)|(?:was|were|has been|have been|got) (?:recently |just )?(?:upgraded|updated|bumped|changed|switched|moved to|migrated|replaced|swapped|rolled out|rebuilt)\b|got (?:a |an )?new\b|(?:#\d+|PR|commit [0-9a-f]{6,40}) (?:changed|replaced|introduced|added|removed|switched)|bisect(?:ed|ing)?|the (?:only )?change (?:was|is)|introduced (?:by|in))/i;
/** A conclusion and no wish: "agg works, so NATS should be up". */
const EXPECTED_NOT = /\bworks?\b[^.]{0,60}\bso [^.,]{1,40} should\b/i;
const EXPECTED =
  /\b(?:(?:i|we)(?: would|[’']d)? expect(?:ed)?\b|expected (?:it|the|that|to|a|all|no)\b|it should\b|should (?:have|not|return|be|either|stay|finish|complete|respond|release|recover|drop|go|fall|keep|reject|slow|continue|give|print|agree|match|survive|handle|serve|answer|come|start|end)|ought to|(?:is|was|are) expected\b|supposed to)/i;

const INTERMITTENT =
  /\b(?:intermittent(?:ly)?|sometimes|occasional(?:ly)?|sporadic(?:ally)?|flak(?:y|es|iness)|randomly|at random|random (?:hang|crash|fail|time|error|stall|dead|interval|request)\w*|from time to time|now and then|once in a while|every (?:few|couple|so|other|\d+[–-]?\d*|two|three|several) (?:often|of |hours?|days?|minutes?|min|requests?|runs?|thousand)\w*|not (?:always|every|deterministic|100 ?%|reproducible every|consistently|reliably)|(?:is|are) rare|rarely|hard to reproduce|(?:can[’']?t|cannot|could not|couldn[’']t|unable to) (?:reliably|consistently|always) reproduce|probabilistic(?:ally)?|\b\d{1,2} [a-z]{3,12} (?:in|out of) (?:every )?\d{2,6}\b|heisenbug|non-?deterministic(?:ally)?|(?:about|roughly|around|approximately|~|maybe|only)? ?(?:one|two|three|1|2|3|4|5|\d{1,3}) (?:(?:in|out of|in every|of every) (?:every |about )?(?:two|three|four|five|six|eight|ten|twenty|thirty|forty|fifty|hundred|a hundred|\d{1,6})\b|of \d{1,6} (?:requests?|restarts?|runs?|times?|answers?|attempts?|starts?|prompts?|tries))|(?:\d+|two|three|four|five|several|(?:two|three) or (?:three|four)) times (?:a|an|per) \w+|(?:once|twice|once or twice) (?:a|an|per|every|in) (?:day|hour|week|night|few|\d)|comes and goes|goes away after|a few times (?:a|per))/i;
const RATIO =
  /(?:^|[\s(~])(\d{1,4})\/(\d{1,5})(?= (?:runs?|times?|tries|attempts?|requests?|restarts?|iterations?|launches|starts|of)\b|\s*[).,]|$)/i;
/** `3 of 20 times`, `10 out of 10 runs`. */
const COUNTED =
  /\b(\d{1,4}) (?:out of|of|in) (\d{1,5}) (?:runs?|times?|tries|attempts?|requests?|restarts?|starts?)\b/i;
const SHARE =
  /(?:~|\babout |\baround |\broughly |\bin )?(\d{1,2}(?:\.\d+)?) ?% of (?:the |all |our )?(?:requests?|runs?|time|times|cases|attempts?|starts|restarts|calls|prompts)/i;
const ALWAYS =
  /\b(?:(?<!\b(?:logs?|lines?|lines? (?:is|are)) )always(?! use| set| been| pass| make| include| return| work| succeed| fine)|every (?:single )?(?:time|run|request|start|attempt|launch|restart|prompt|call|benchmark|iteration)|each (?:time|run|request|start|benchmark|iteration|attempt|cancelled)|consistently|deterministic(?:ally)?|reliably|100 ?% (?:repro|of (?:the )?(?:time|runs|requests|attempts))|reproduc\w* (?:it |this )?(?:at |in |with )?100 ?%|reproduc(?:es|ible|ibly|ed) (?:every|each|always|on every|100)|fully reproducible|immediately reproduc\w+|(?:10|5|20|3|100)\/(?:10|5|20|3|100)\b)/i;

/** Sentences of a person, verbatim; a line that is long is cut. */
function* sentencesOf(told: readonly string[]): Iterable<string> {
  let count = 0;
  for (const text of told) {
    // A sentence may go on in the next line; an entry of a list is one of its own.
    for (const part of text.slice(0, LINE_LIMIT * 60).split(/\n(?=\s*(?:[-*•>]|\d{1,2}[.)])\s)/)) {
      for (const sentence of part.split(
        /(?<=[.!?])(?<!\b(?:e\.g|i\.e|vs|etc|approx|ca|cf)\.)\s+(?=[\p{L}\d`"'*(@#])|\n{2,}/u,
      )) {
        if (++count > SENTENCES_LIMIT) return;
        const cut = sentence.slice(0, SENTENCE_LIMIT).trim();
        if (cut !== '') yield cut;
      }
    }
  }
}

function firstWith(told: readonly string[], cue: RegExp, except?: RegExp): string | null {
  for (const sentence of sentencesOf(told)) {
    const match = cue.exec(sentence);
    if (match !== null && except?.test(sentence) !== true) return withoutBullet(sentence);
  }
  return null;
}

function withoutBullet(sentence: string): string {
  return sentence.replace(/^(?:[-*•>]|\d{1,2}[.)])\s+/, '');
}

/** When it began; the time of day alone, where nothing says more. */
export function startedIn(told: readonly string[]): string | null {
  return firstWith(told, STARTED, STARTED_NOT) ?? firstWith(told, CLOCK_TIME);
}

/** Whether it ever worked. */
export function workedIn(told: readonly string[]): string | null {
  return firstWith(told, WORKED, WORKED_NOT);
}

/** What was changed before. */
export function changedIn(told: readonly string[]): string | null {
  return firstWith(told, CHANGED);
}

/** What should have been. */
export function expectedIn(told: readonly string[]): string | null {
  return firstWith(told, EXPECTED, EXPECTED_NOT);
}

/** Intermittent is said by those who looked; "always" also by those who saw it once: the first counts more. */
export function frequencyIn(told: readonly string[]): 'always' | 'intermittent' | null {
  let found: 'always' | null = null;
  for (const sentence of sentencesOf(told)) {
    const [, k, n] = RATIO.exec(sentence) ?? [];
    const [, times, tries] = COUNTED.exec(sentence) ?? [];
    if (times !== undefined && times === tries && Number(times) > 1) {
      found = 'always';
      continue;
    }
    const isPart = k !== undefined && Number(k) < Number(n) && Number(k) > 0;
    const isNegated = /\bnot (?:intermittent|flaky|random|sporadic)/i.test(sentence);
    if (!isNegated && (INTERMITTENT.test(sentence) || isPart || SHARE.test(sentence)))
      return 'intermittent';
    if (ALWAYS.test(sentence) || (k !== undefined && k === n && Number(k) > 1)) found = 'always';
  }
  return found;
}
