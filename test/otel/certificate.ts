import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A certificate that signs itself, and its key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes one with the openssl program: Node can read certificates, not write them. */
export function makeCertificate(options: { name: string }): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'trace-certificate-'));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const { name } = options;
  const kind = /^[\d.]+$/.test(name) ? 'IP' : 'DNS';
  try {
    const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'.split(' ');
    const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${kind}:${name}`];
    const files = ['-keyout', key, '-out', cert, '-days', '2'];
    execFileSync('openssl', [...request, ...names, ...files], { stdio: 'pipe' });
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
