import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { workerProcesses } from '../../src/platform/worker-processes.ts';
import { start } from './processes.ts';

/** Node that runs this and says when its children are up; they end with it. */
async function startNode(program: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-workers-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'program.cjs');
  writeFileSync(file, program);
  const { pid } = await start(process.execPath, [file]);
  return pid;
}

/** Ends when whoever started it does. */
const CHILD = `process.stdin.resume().once('end', process.exit); console.log('up')`;

describe('the processes in which work may be done', () => {
  it('are the workers of a cluster, the one that worked most first', async () => {
    const pid = await startNode(`
      const cluster = require('node:cluster');
      if (cluster.isPrimary) {
        const said = [];
        const add = (worker) => worker.on('message', () => said.push(worker.process.pid) === 2 && console.log('up'));
        add(cluster.fork({ WORK_MS: '0' }));
        add(cluster.fork({ WORK_MS: '400' }));
      } else {
        const end = performance.now() + Number(process.env.WORK_MS);
        while (performance.now() < end);
        process.send('ready');
      }`);
    const workers = workerProcesses(pid);
    expect(workers).toHaveLength(2);
    const [busiest, other] = workers.map(({ userTicks, systemTicks }) => userTicks + systemTicks);
    expect(busiest).toBeGreaterThanOrEqual(other ?? 0);
    expect(workers.every(({ parent }) => parent === pid)).toBe(true);
  });

  it('are also found behind a shell, as below npm start', async () => {
    const pid = await startNode(`
      const { spawn } = require('node:child_process');
      const command = '"' + process.execPath + '" -e "' + ${JSON.stringify(CHILD)} + '"; true';
      spawn('sh', ['-c', command], { stdio: ['pipe', 'inherit', 'inherit'] });`);
    const [child, ...others] = workerProcesses(pid);
    expect(others).toEqual([]);
    expect(child?.parent).not.toBe(pid);
  });

  it('are not those of another program, nor of a process without children', async () => {
    const pid = await startNode(`
      require('node:child_process').spawn('cat').once('spawn', () => console.log('up'));`);
    expect(workerProcesses(pid)).toEqual([]);
    expect(workerProcesses(2 ** 30)).toEqual([]);
  });
});
