import { createRequire } from 'node:module';

/** The version in package.json. Resolved through the package's own name, so it works from the sources and from dist. */
export function toolVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('tracewright/package.json');
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
    return String(manifest.version);
  }
  return '0.0.0';
}
