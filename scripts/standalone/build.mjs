import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, posix, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compileFunction } from 'node:vm';
import { build } from 'esbuild';

/**
 * Makes one executable of dist/ and of the Node that runs this: build/trace-linux-x64 (docs/standalone.md). `--out FOLDER` puts it elsewhere.
 */

const ROOT = join(import.meta.dirname, '..', '..');
const DIST = join(ROOT, 'dist');
const NAME = 'trace-linux-x64';
/** The oldest Node that trace runs on (`engines`); `sea.getAsset` came earlier, with 20.12. */
const OLDEST_NODE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  .engines.node.replace('>=', '')
  .split('.')
  .map(Number);
/** Stands in each Node that can carry a program; postject changes the digit behind it. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
const POSTJECT = fileURLToPath(import.meta.resolve('postject/dist/cli.js'));
/** A module that starts on its own, as dist/ names it: what `startThread` and `moduleCommand` are given. */
const OWN_MODULE = /new URL\('(\.[^']+)', import\.meta\.url\)/g;

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'build') } },
});
const out = resolve(values.out);
/** Where the parts are made; what Node's stacks call `/main.js` is there as `main.js`. */
const work = join(out, 'standalone');
const began = performance.now();

checkNode();
mkdirSync(work, { recursive: true });
const executable = join(out, NAME);
const draft = makeDraft(makeBlob(await bundleAll()));
check(draft);
renameSync(draft, executable);
const seconds = ((performance.now() - began) / 1e3).toFixed(1);
const megabytes = (statSync(executable).size / 1e6).toFixed(1);
process.stdout.write(
  `${relative(process.cwd(), executable)}: ${megabytes} MB, Node ${process.versions.node}, made in ${seconds} s\n`,
);

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (process.platform !== 'linux' || process.arch !== 'x64')
    fail(`it is made on linux-x64, and this is ${process.platform}-${process.arch}`);
  if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]))
    fail(`it takes Node ${OLDEST_NODE.join('.')} or later, and this is ${process.versions.node}`);
  if (!readFileSync(process.execPath).includes(FUSE))
    fail(
      `${process.execPath} cannot carry a program (is its Node in a shared library?): take the one of nodejs.org`,
    );
}

/** Bundles the start, trace, and each module that starts on its own; gives what the executable carries, names to files. */
async function bundleAll() {
  const found = new Set();
  const here = (name) => join(import.meta.dirname, name);
  await bundle({ entry: here('start.mjs'), script: join(work, 'start.cjs'), found });
  await bundle({ entry: here('main.mjs'), script: join(work, 'main.js'), found });
  const assets = {
    '/package.json': join(ROOT, 'package.json'),
    ...documentation(),
    ...templates(),
  };
  addScript(assets, '/main.js');
  // A module that starts on its own may start another: the set grows while it is gone through.
  for (const path of found) {
    await bundle({ entry: join(DIST, path), script: join(work, path), found });
    addScript(assets, path);
  }
  return assets;
}

/** What `trace explain` prints from. */
function documentation() {
  return { '/docs/detectors.md': join(ROOT, 'docs', 'detectors.md') };
}

/** What reproductions are made of and run under (repro/): carried as it is. */
function templates() {
  return Object.fromEntries(
    readdirSync(join(ROOT, 'repro'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:py|mjs|sh|md)$/.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((file) => [`/${relative(ROOT, file)}`, file]),
  );
}

/** One script of a module and all that it imports; adds to `found` the modules that it starts. */
async function bundle({ entry, script, found }) {
  const { metafile } = await build({
    entryPoints: [entry],
    outfile: script,
    bundle: true,
    // Wrapped: at the top level of what a worker evaluates, declarations would be globals.
    format: 'iife',
    platform: 'node',
    target: `node${process.versions.node}`,
    // What is loaded late is loaded by require(): a script that is not a file has no import().
    supported: { 'dynamic-import': false },
    // Optional packages of ws, which are not installed: a worker would look for them below the working directory, where anybody may put some.
    define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    plugins: [
      {
        name: 'own modules',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.m?js$/ }, ({ path }) => moduleWithUrl(path, found)),
      },
    ],
    metafile: true,
    logLevel: 'warning',
  });
  const strangers = Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports.map(({ path }) => path))
    .filter((path) => !path.startsWith('node:') && !builtinModules.includes(path));
  if (strangers.length > 0)
    fail(`${relative(ROOT, entry)} needs ${strangers.join(', ')}, which it cannot carry`);
}

/** A module of dist/ with the URL that it has in the executable: its path below dist/. */
function moduleWithUrl(path, found) {
  if (!path.startsWith(`${DIST}/`)) return undefined;
  const text = readFileSync(path, 'utf8');
  const own = `/${relative(DIST, path)}`;
  for (const [, started] of text.matchAll(OWN_MODULE)) found.add(posix.join(dirname(own), started));
  const url = JSON.stringify(`file://${own}`);
  return { contents: text.replaceAll('import.meta.url', url), loader: 'js' };
}

/** Adds a script and, as start.mjs takes it, its compiled code: `--help` in 69 ms instead of 86 (medians of 30, Node 20.20). */
function addScript(assets, path) {
  const file = join(work, path);
  const options = { filename: path, produceCachedData: true };
  const { cachedData } = compileFunction(readFileSync(file, 'utf8'), ['require'], options);
  writeFileSync(`${file}.cache`, cachedData);
  assets[path] = file;
  assets[`${path}.cache`] = `${file}.cache`;
}

/** What Node reads its program from. */
function makeBlob(assets) {
  const config = join(work, 'sea-config.json');
  const output = join(work, 'sea.blob');
  const main = join(work, 'start.cjs');
  writeFileSync(
    config,
    JSON.stringify({ main, output, assets, disableExperimentalSEAWarning: true }),
  );
  run(process.execPath, ['--experimental-sea-config', config]);
  return output;
}

/** This Node, without symbols, and the program in it. */
function makeDraft(blob) {
  const draft = join(work, NAME);
  copyFileSync(process.execPath, draft);
  chmodSync(draft, 0o755);
  // Before the program comes in: strip would take it out again.
  try {
    run('strip', [draft]);
  } catch (error) {
    process.stderr.write(`build:standalone: with symbols, which are 12 MB: ${error.message}\n`);
  }
  run(process.execPath, [POSTJECT, draft, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE]);
  return draft;
}

/** Starts it once: what does not start is not left under the name. */
function check(program) {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const said = run(program, ['--version']).trim();
  if (said !== `trace ${version}`) fail(`it says '${said}' of itself, not 'trace ${version}'`);
}

/** What it writes is in the error when it fails, and else of no interest. */
function run(program, args) {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function fail(why) {
  process.stderr.write(`build:standalone: ${why}\n`);
  process.exit(1);
}
