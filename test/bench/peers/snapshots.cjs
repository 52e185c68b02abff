'use strict';
// Loaded before a program: three snapshots of V8's heap, as memlab wants them.
const { renameSync, writeFileSync } = require('node:fs');
const { writeHeapSnapshot } = require('node:v8');
const path = require('node:path');

const folder = process.env.SNAPSHOTS;

function snapshot(name) {
  const file = path.join(folder, `${name}.heapsnapshot`);
  const from = performance.now();
  writeHeapSnapshot(`${file}.part`);
  writeFileSync(path.join(folder, `${name}.seconds`), String((performance.now() - from) / 1e3));
  // It is there when it is whole.
  renameSync(`${file}.part`, file);
}

// Not in the driver's own peers, whose first argument is no number.
if (folder && Number(process.argv[2]) > 0) {
  for (const [index, name] of ['baseline', 'target', 'final'].entries())
    setTimeout(() => snapshot(name), (4 + 8 * index) * 1e3);
}
