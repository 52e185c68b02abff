import { readFileSync } from 'node:fs';
import { usageError } from '../core/errors.ts';
import { printable } from '../core/text.ts';

/** What TLS to a receiver needs beyond the system's certificates, as PEM; the names are node:tls's. */
export interface TlsSettings {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** A variable's name and value, the value undefined when it is not set. */
type Named = (setting: string) => readonly [name: string, value: string | undefined];

/** The files of OTEL_EXPORTER_OTLP_CERTIFICATE, …_CLIENT_CERTIFICATE and …_CLIENT_KEY. One that cannot be read is a usage error. */
export function readTls(named: Named): TlsSettings {
  const [ca, cert, key] = [
    readPem(named('CERTIFICATE'), 'CERTIFICATE'),
    readPem(named('CLIENT_CERTIFICATE'), 'CERTIFICATE'),
    readPem(named('CLIENT_KEY'), 'PRIVATE KEY'),
  ];
  return {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
}

/** Text of a PEM file; its content is checked as far as to name a wrong file before the run instead of after it. */
function readPem(
  [name, path]: readonly [name: string, path: string | undefined],
  holds: 'CERTIFICATE' | 'PRIVATE KEY',
): string | null {
  if (path === undefined) return null;
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw usageError(`${name}: cannot read ${printable(path)}: ${code}`, `Correct ${name}.`);
  }
  if (new RegExp(`-----BEGIN [A-Z ]*${holds}-----`).test(text)) return text;
  throw usageError(
    `${name}: ${printable(path)} holds no ${holds.toLowerCase()} in PEM form`,
    `Correct ${name}.`,
  );
}
