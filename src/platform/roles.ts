import { basename } from 'node:path';

/**
 * What a process is to the server it belongs to, by its title or command line, and by its place in the tree where those say nothing. Names
 * as the servers' own sources set them; a title is only believed for what it is: a word in a report.
 */

/** A server program that is known to spread over several processes. */
export type ServerFamily =
  | 'vLLM'
  | 'SGLang'
  | 'Dynamo'
  | 'TensorRT-LLM'
  | 'TGI'
  | 'llama.cpp'
  | 'Ray'
  | 'Triton'
  | 'gunicorn'
  | 'uvicorn'
  | 'celery'
  | 'nginx'
  | 'Node cluster';

/** What a process does in its server. */
export interface Role {
  /** Null for helpers that any program may have. */
  readonly family: ServerFamily | null;
  /** In words: `API server`, `engine core`, `worker TP0`. */
  readonly name: string;
}

/** What there is to judge a process by. */
export interface RoleEvidence {
  /** Arguments, as in `/proc/<pid>/cmdline`; a program that sets its title has it in the first. */
  readonly commandLine: readonly string[];
  /** Of the process that started it; null for one outside the tree. */
  readonly parent: RoleEvidence | null;
  /** Whether a child of it runs the same command line: a master that forked its workers. */
  readonly hasTwins: boolean;
}

interface Rule {
  readonly family: ServerFamily | null;
  readonly pattern: RegExp;
  /** `$1` and so on are the pattern's groups. */
  readonly name: string;
}

/**
 * The first that fits decides. vLLM: `set_process_title` in vllm/utils (`VLLM::EngineCore_DP0`, `VLLM::Worker_TP0`); SGLang: setproctitle in
 * its managers (`sglang::scheduler_DP0_TP1`, `sglang::detokenizer`); gunicorn: `util._setproctitle`; celery: `set_process_title`; ray: `ray::`.
 */
const TITLES: readonly Rule[] = [
  { family: 'vLLM', pattern: /^VLLM::API_?Server(?:_(\w+))?/i, name: 'API server $1' },
  { family: 'vLLM', pattern: /^VLLM::EngineCore(?:_(\w+))?/i, name: 'engine core $1' },
  { family: 'vLLM', pattern: /^VLLM::Worker(?:_(\w+))?/i, name: 'worker $1' },
  { family: 'vLLM', pattern: /^VLLM::DPCoordinator/i, name: 'coordinator' },
  { family: 'vLLM', pattern: /^VLLM::(\w+)/i, name: '$1' },
  { family: 'SGLang', pattern: /^sglang::(?:\w+_)?scheduler(?:_(\w+))?/, name: 'scheduler $1' },
  {
    family: 'SGLang',
    pattern: /^sglang::detokenizer(?:_handler)?(?:_(\w+))?/,
    name: 'detokenizer $1',
  },
  { family: 'SGLang', pattern: /^sglang::tokenizer_worker/, name: 'tokenizer' },
  { family: 'SGLang', pattern: /^sglang::data_parallel_controller/, name: 'controller' },
  { family: 'SGLang', pattern: /^sglang::gpu_worker(?:_(\w+))?/, name: 'worker $1' },
  { family: 'SGLang', pattern: /^sglang::(\w+)/, name: '$1' },
  { family: 'Ray', pattern: /^ray::(?:IDLE|\w*)/, name: 'worker' },
  { family: 'gunicorn', pattern: /^gunicorn: master/, name: 'master' },
  { family: 'gunicorn', pattern: /^gunicorn: worker/, name: 'worker' },
  { family: 'gunicorn', pattern: /^gunicorn: arbiter/, name: 'master' },
  { family: 'celery', pattern: /^\[?celeryd?: .*MainProcess/, name: 'master' },
  { family: 'celery', pattern: /^\[?celeryd?: .*Pool/, name: 'worker' },
  { family: 'nginx', pattern: /^nginx: master/, name: 'master' },
  { family: 'nginx', pattern: /^nginx: worker/, name: 'worker' },
];

/** By the program and its arguments, for processes that kept their command line: matched with one space between arguments. */
const COMMANDS: readonly Rule[] = [
  {
    family: 'vLLM',
    pattern: /(?:^|\/|\s)vllm serve\b|vllm\.entrypoints\.\w+(?:\.\w+)*/,
    name: 'API server',
  },
  { family: 'SGLang', pattern: /sglang_router|(?:^|\/)sgl-router\b/, name: 'router' },
  {
    family: 'SGLang',
    pattern: /sglang[./]launch_server|(?:^|\/)sglang serve\b/,
    name: 'API server',
  },
  { family: 'Dynamo', pattern: /-m dynamo\.frontend\b/, name: 'frontend' },
  { family: 'Dynamo', pattern: /-m dynamo\.router\b/, name: 'router' },
  {
    family: 'Dynamo',
    pattern: /-m dynamo\.(?:vllm|sglang|trtllm|mocker)\b/,
    name: 'engine worker',
  },
  { family: 'TensorRT-LLM', pattern: /(?:^|\/|\s)trtllm-serve\b/, name: 'API server' },
  {
    family: 'TensorRT-LLM',
    pattern: /mpi4py\.futures\.server|trtllm-llmapi-launch/,
    name: 'worker',
  },
  { family: 'TGI', pattern: /(?:^|\/)text-generation-launcher\b/, name: 'launcher' },
  { family: 'TGI', pattern: /(?:^|\/)text-generation-router\b/, name: 'router' },
  { family: 'TGI', pattern: /(?:^|\/|\s)text-generation-server serve\b/, name: 'worker' },
  { family: 'llama.cpp', pattern: /(?:^|\/)llama-server\b|llama_cpp\.server\b/, name: 'server' },
  { family: 'Triton', pattern: /(?:^|\/)tritonserver\b/, name: 'server' },
  { family: 'Triton', pattern: /(?:^|\/)triton_python_backend_stub\b/, name: 'Python back end' },
  { family: 'Ray', pattern: /(?:^|\/)raylet\b/, name: 'raylet' },
  { family: 'Ray', pattern: /(?:^|\/)gcs_server\b/, name: 'control store' },
];

/** Helpers that the standard library or a shell puts between a server and its processes. */
const HELPERS: readonly Rule[] = [
  { family: null, pattern: /multiprocessing\.resource_tracker/, name: 'resource tracker' },
  { family: null, pattern: /multiprocessing\.forkserver/, name: 'fork server' },
  { family: null, pattern: /^(?:\S*\/)?(?:ba|da|z)?sh -c /, name: 'shell' },
  { family: null, pattern: /^(?:\S*\/)?(?:npm|npx|yarn|pnpm|uv|poetry) /, name: 'launcher' },
];

/** Started by `multiprocessing` with the spawn method: what it runs does not stand in its command line. */
const SPAWNED = /multiprocessing\.spawn\b/;
const GUNICORN = /(?:^|\/|\s)gunicorn\b/;
const UVICORN = /(?:^|\/|\s)uvicorn\b/;
const UVICORN_WORKERS = /\s--(?:workers[= ](?!1\b)\d+|reload)\b/;
const NODE = /^(?:\S*\/)?node\b/;

/** A role as reports write it: `vLLM engine core`, `shell`; null where nothing tells. */
export function roleText(role: Role | null): string | null {
  if (role === null || role.family === null) return role?.name ?? null;
  return `${role.family} ${role.name}`;
}

/** What a process is; null where nothing tells. */
export function roleOf(evidence: RoleEvidence): Role | null {
  const text = evidence.commandLine.join(' ').trim();
  const named = byRule(TITLES, text) ?? byRule(HELPERS, text) ?? byRule(COMMANDS, text);
  if (named !== null) return sameAsParent(named, text, evidence) ?? named;
  return byPlace(text, evidence);
}

function byRule(rules: readonly Rule[], text: string): Role | null {
  for (const { family, pattern, name } of rules) {
    const match = pattern.exec(text);
    if (match === null) continue;
    const filled = name.replace('$1', (match[1] ?? '').replaceAll('_', ' ')).trim();
    return { family, name: filled };
  }
  return null;
}

/** A child with the command line of its parent was forked by it: it is not a second API server. */
function sameAsParent(
  role: Role,
  text: string,
  { commandLine, parent }: RoleEvidence,
): Role | null {
  if (role.family === null || parent === null || TITLES.some(({ pattern }) => pattern.test(text)))
    return null;
  return isTwin(commandLine, parent.commandLine) ? { ...role, name: 'worker' } : null;
}

/** Whether two processes run the same command line; Node gives its workers the whole path of what it was called by name. */
export function isTwin(one: readonly string[], other: readonly string[]): boolean {
  return one.length > 0 && textOf(one) === textOf(other);
}

function textOf([program = '', ...rest]: readonly string[]): string {
  return [basename(program), ...rest].join('\0');
}

/** gunicorn without setproctitle, uvicorn's workers, Node's cluster and what `multiprocessing` started. */
function byPlace(text: string, { commandLine, parent, hasTwins }: RoleEvidence): Role | null {
  const isWorker = parent !== null && isTwin(commandLine, parent.commandLine);
  if (GUNICORN.test(text)) return { family: 'gunicorn', name: isWorker ? 'worker' : 'master' };
  if (UVICORN.test(text) && UVICORN_WORKERS.test(text))
    return { family: 'uvicorn', name: isWorker ? 'worker' : 'supervisor' };
  if (SPAWNED.test(text)) {
    const family = parent === null ? null : (roleOf(parent)?.family ?? null);
    return { family, name: 'worker' };
  }
  if (NODE.test(text) && (isWorker || hasTwins))
    return { family: 'Node cluster', name: isWorker ? 'worker' : 'primary' };
  return null;
}
