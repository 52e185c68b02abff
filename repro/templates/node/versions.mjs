// Says as JSON what Node this is and which packages a file's project needs: node --input-type=module -e "…" file#name folder
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { argv, exit, version } from 'node:process';
import { pathToFileURL } from 'node:url';

const [target = '', folder = '.'] = argv.slice(1);

/** Dependencies of the nearest package.json, at the versions that are installed. */
function packagesOf(from) {
  for (let at = from; ; at = dirname(at)) {
    const file = join(at, 'package.json');
    if (existsSync(file)) {
      const names = Object.keys(JSON.parse(readFileSync(file, 'utf8')).dependencies ?? {});
      return Object.fromEntries(names.map((name) => [name, installed(at, name)]));
    }
    if (at === dirname(at)) return {};
  }
}

function installed(at, name) {
  try {
    return JSON.parse(readFileSync(join(at, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    return 'not installed';
  }
}

async function problemOf() {
  if (target === '') return null;
  const [path, name = 'default'] = target.split('#');
  try {
    const isFile = path.startsWith('.');
    const url = isFile
      ? resolve(folder, path)
      : createRequire(join(resolve(folder), 'x.js')).resolve(path);
    const module = await import(pathToFileURL(url).href);
    const found = name.split('.').reduce((at, key) => at?.[key] ?? at?.default?.[key], module);
    return typeof found === 'function' ? null : `it exports no function ${name}`;
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

const problem = await problemOf();
const answer = { version: version.slice(1), packages: packagesOf(resolve(folder)), problem };
process.stdout.write(`\n${JSON.stringify(answer)}\n`, () => exit(0));
