import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A certificate that signs itself, and its key, as PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
/** Object identifiers, encoded. */
const OID = {
  commonName: '0603550403',
  ecdsaWithSha256: '06082a8648ce3d040302',
  subjectAltName: '0603551d11',
  basicConstraints: '0603551d13',
} as const;

/**
 * Makes one (RFC 5280; Node reads certificates and does not write them) for a name or an IPv4 address, valid from a day ago; `days` below 0: it
 * has expired.
 */
export function makeCertificate(options: { name: string; days?: number }): Certificate {
  const { name, days = 2 } = options;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = sequence(Buffer.from(OID.ecdsaWithSha256, 'hex'));
  const subject = sequence(
    der(0x31, sequence(Buffer.from(OID.commonName, 'hex'), der(0x0c, Buffer.from(name)))),
  );
  const isAddress = /^[\d.]+$/.test(name);
  const alternative = isAddress
    ? der(0x87, Buffer.from(name.split('.').map(Number)))
    : der(0x82, Buffer.from(name));
  const extension = (oid: string, value: Buffer) =>
    sequence(Buffer.from(oid, 'hex'), der(0x04, value));
  const unsigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    subject,
    sequence(utcTime(Math.min(-1, days - 1)), utcTime(days)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        extension(OID.subjectAltName, sequence(alternative)),
        extension(OID.basicConstraints, sequence(der(0x01, Buffer.from([0xff])))),
      ),
    ),
  );
  const signature = der(
    0x03,
    Buffer.concat([Buffer.from([0]), sign('sha256', unsigned, privateKey)]),
  );
  const body = sequence(unsigned, algorithm, signature).toString('base64');
  const lines = body.match(/.{1,64}/g)?.join('\n') ?? '';
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function utcTime(inDays: number): Buffer {
  const at = new Date(Date.now() + inDays * DAY_MS).toISOString();
  return der(0x17, Buffer.from(`${at.slice(2, 19).replaceAll(/\D/g, '')}Z`));
}
