/**
 * What the built program says of a pid, as one JSON line: how `findTarget` and `judgeAccess` answer for the user and the
 * capabilities that this runs with. Arguments: the folder of dist/, a pid, and optionally the start ticks that are expected.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , dist, pid, startTicks] = process.argv;
const load = (path) => import(pathToFileURL(join(dist, 'src', 'platform', path)).href);
const { findTarget, isSameProcess } = await load('target.js');
const { judgeAccess } = await load('permission.js');
const { detectRuntime } = await load('runtime.js');

function answer() {
  try {
    const { target } = findTarget({ pid });
    const expected = { ...target, startTicks: Number(startTicks ?? target.startTicks) };
    return {
      target,
      isSame: isSameProcess(expected),
      access: judgeAccess(target),
      runtime: detectRuntime(target.pid),
    };
  } catch (error) {
    return {
      code: error.code,
      exitCode: error.exitCode,
      message: error.message,
      remedy: error.remedy,
    };
  }
}

process.stdout.write(JSON.stringify(answer()));
