import { packageManifest } from '../platform/standalone.ts';

/** The version in package.json. */
export function toolVersion(): string {
  const manifest = packageManifest();
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
    return String(manifest.version);
  }
  return '0.0.0';
}
