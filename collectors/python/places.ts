import { existsSync } from 'node:fs';

/**
 * Whose code a file is: CPython's own library, an installed distribution (`module` is its folder under site-packages), or the
 * application.
 */
export type PythonPlace =
  | { readonly kind: 'standard-library' }
  | { readonly kind: 'package'; readonly module: string }
  | { readonly kind: 'application' };

const STANDARD_LIBRARY: PythonPlace = { kind: 'standard-library' };
const APPLICATION: PythonPlace = { kind: 'application' };

/** Files remembered; a service has some thousands. */
const FILE_LIMIT = 20_000;

/** Debian's dist-packages, everybody else's site-packages, also inside a zipped application. */
const INSTALLED = /^.*\/(?:site|dist)-packages\/(.+)$/;
/** An egg is a folder or a zip named after distribution, version, and Python: its contents follow. */
const EGG = /^([^/]+?)-[^/]*\.egg\//;
/** The folder and the zip that Python's own library can come from. */
const LIBRARY_FOLDER = /^(.*?\/lib(?:64)?\/python3\.\d{1,2})\//;
const LIBRARY_ZIP = /\/lib(?:64)?\/python3\d{1,2}\.zip\//;
/** A module compiled into the interpreter: importlib, runpy, zipimport. */
const FROZEN = /^<frozen [\w.]+>$/;
/** In every library folder that an interpreter can start with. */
const LANDMARK = 'os.py';

/** Tells whose code the files of one target are; `file` is co_filename, untrusted. */
export type PythonPlaces = (file: string) => PythonPlace;

/**
 * Places as the target sees them: a folder counts as Python's library if it looks like one and holds its landmark in the file system
 * of process `pid`. Where that cannot be looked at, looking like one is enough.
 */
export function pythonPlaces(pid: number): PythonPlaces {
  const root = `/proc/${pid}/root`;
  const isReadable = existsSync(root);
  return placesWhere((folder) => !isReadable || existsSync(`${root}${folder}/${LANDMARK}`));
}

/** Places by an oracle that tells whether a folder such as `/usr/lib/python3.11` holds Python's library; asked once a folder. */
export function placesWhere(isLibrary: (folder: string) => boolean): PythonPlaces {
  const folders = new Map<string, boolean>();
  const files = new Map<string, PythonPlace>();
  const holdsLibrary = (folder: string): boolean => {
    const known = folders.get(folder) ?? isLibrary(folder);
    if (folders.size < FILE_LIMIT) folders.set(folder, known);
    return known;
  };
  return (file) => {
    const known = files.get(file);
    if (known !== undefined) return known;
    const place = classify(file, holdsLibrary);
    if (files.size >= FILE_LIMIT) files.clear();
    files.set(file, place);
    return place;
  };
}

function classify(file: string, isLibrary: (folder: string) => boolean): PythonPlace {
  if (FROZEN.test(file)) return STANDARD_LIBRARY;
  const installed = INSTALLED.exec(file)?.[1];
  if (installed !== undefined) return { kind: 'package', module: moduleOf(installed) };
  if (LIBRARY_ZIP.test(file)) return STANDARD_LIBRARY;
  const folder = LIBRARY_FOLDER.exec(file)?.[1];
  return folder !== undefined && isLibrary(folder) ? STANDARD_LIBRARY : APPLICATION;
}

/** `numpy/core/x.py` → numpy, `six.py` → six, `Foo-1.0-py3.8.egg/foo/x.py` → Foo. */
function moduleOf(installed: string): string {
  const egg = EGG.exec(installed)?.[1];
  if (egg !== undefined) return egg;
  const [first = installed] = installed.split('/', 1);
  return first.replace(/\.[^.]*$/, '');
}
