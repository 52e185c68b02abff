import { describe, expect, it } from 'vitest';
import { type RoleEvidence, roleOf } from '../../src/platform/roles.ts';

const alone = (commandLine: string, hasTwins = false): RoleEvidence => ({
  commandLine: commandLine.split(' '),
  parent: null,
  hasTwins,
});
const below = (parent: RoleEvidence, commandLine: string): RoleEvidence => ({
  ...alone(commandLine),
  parent,
});
const named = (evidence: RoleEvidence): string | null => {
  const role = roleOf(evidence);
  return role === null ? null : `${role.family ?? '-'}: ${role.name}`;
};

describe('the role of a process', () => {
  it.each([
    ['VLLM::EngineCore', 'vLLM: engine core'],
    ['VLLM::EngineCore_DP1', 'vLLM: engine core DP1'],
    ['VLLM::Worker_TP0', 'vLLM: worker TP0'],
    ['VLLM::Worker_DP0_TP1_EP3', 'vLLM: worker DP0 TP1 EP3'],
    ['VLLM::APIServer_2', 'vLLM: API server 2'],
    ['VLLM::DPCoordinator', 'vLLM: coordinator'],
    ['VLLM::Something_new', 'vLLM: Something new'],
    ['sglang::scheduler_DP0_TP1', 'SGLang: scheduler DP0 TP1'],
    ['sglang::scheduler', 'SGLang: scheduler'],
    ['sglang::detokenizer', 'SGLang: detokenizer'],
    ['sglang::tokenizer_worker:812', 'SGLang: tokenizer'],
    ['sglang::data_parallel_controller', 'SGLang: controller'],
    ['gunicorn: master [app:app]', 'gunicorn: master'],
    ['gunicorn: worker [app:app]', 'gunicorn: worker'],
    ['[celeryd: celery@host:MainProcess] -active-', 'celery: master'],
    ['[celeryd: celery@host:ForkPoolWorker-3]', 'celery: worker'],
    ['nginx: worker process', 'nginx: worker'],
    ['ray::RayWorkerWrapper.execute', 'Ray: worker'],
    ['/usr/bin/python3 /opt/venv/bin/vllm serve Qwen/Qwen3-8B --port 8000', 'vLLM: API server'],
    ['python -m vllm.entrypoints.openai.api_server --model x', 'vLLM: API server'],
    ['python3 -m sglang.launch_server --model-path x', 'SGLang: API server'],
    ['python -m sglang_router.launch_router --worker-urls http://a', 'SGLang: router'],
    ['python -m dynamo.frontend --http-port 8000', 'Dynamo: frontend'],
    ['python -m dynamo.mocker --model-path x', 'Dynamo: engine worker'],
    ['text-generation-router --port 80', 'TGI: router'],
    ['./llama-server -m model.gguf', 'llama.cpp: server'],
    ['python -c from multiprocessing.resource_tracker import main;main(5)', '-: resource tracker'],
    ['/bin/sh -c vllm serve x', '-: shell'],
    ['npm start', '-: launcher'],
    ['/usr/bin/gunicorn app:app -w 4', 'gunicorn: master'],
    ['python -m uvicorn app:app --workers 4', 'uvicorn: supervisor'],
  ])('of %s is %s', (commandLine, role) => {
    expect(named(alone(commandLine))).toBe(role);
  });

  it.each([
    'python app.py',
    'uvicorn app:app',
    'uvicorn app:app --workers 1',
    'node server.js',
    'vim vllm.py',
    'tail -f /var/log/vllm.log',
    'python train.py --out sglang',
    '',
  ])('of "%s" is not known', (commandLine) => {
    expect(named(alone(commandLine))).toBeNull();
  });

  it('is that of a worker where a parent forked it with its own command line', () => {
    const master = alone('gunicorn app:app -w 2', true);
    expect(named(master)).toBe('gunicorn: master');
    expect(named(below(master, 'gunicorn app:app -w 2'))).toBe('gunicorn: worker');
    const server = alone('/opt/venv/bin/vllm serve x', true);
    expect(named(below(server, '/opt/venv/bin/vllm serve x'))).toBe('vLLM: worker');
    const cluster = alone('node server.js', true);
    expect(named(cluster)).toBe('Node cluster: primary');
    expect(named(below(cluster, 'node server.js'))).toBe('Node cluster: worker');
  });

  it('is that of a worker of the server whose multiprocessing spawned it', () => {
    const spawned =
      'python -c from multiprocessing.spawn import spawn_main; spawn_main(parent_pid=1)';
    expect(named(below(alone('uvicorn app:app --workers 4'), spawned))).toBe('uvicorn: worker');
    expect(named(below(alone('python train.py'), spawned))).toBe('-: worker');
  });
});
