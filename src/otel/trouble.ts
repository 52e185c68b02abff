import { printable } from '../core/text.ts';
import type { SignalTarget } from './environment.ts';
import type { Trouble } from './transport.ts';

/** What an attempt without an answer means, and what to do about it. */

/** OpenSSL's verdicts on a certificate (nodejs.org/api/tls.html#x509-certificate-error-codes) that trusting its issuer mends. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);
/** Other verdicts, and the remedy of each. */
const BAD_CERTIFICATE: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'name the host as its certificate does',
  CERT_HAS_EXPIRED: 'renew its certificate, or set the clock right',
  CERT_NOT_YET_VALID: 'renew its certificate, or set the clock right',
};
const NO_SUCH_HOST: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);
/** Ended in the middle; what a TLS port does with plain text, too. */
const CUT_OFF: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR']);
/** OpenSSL found something else than TLS. */
const NOT_TLS = /wrong version number|packet length too long|unknown protocol/i;
/** OpenSSL: the server speaks TLS, and does not offer HTTP/2. */
const NO_ALPN = /no application protocol/i;

/** What `error` says about the way to the receiver. `answered`: it has answered before, so that it speaks our protocol. */
export function troubleOf(error: unknown, target: SignalTarget, answered: boolean): Trouble {
  const { code, text } = facts(error);
  const secure = target.url.protocol === 'https:';
  const stays = (why: string, remedy: string): Trouble => ({ why, lasting: !answered, remedy });
  const passes = (remedy: string | null): Trouble => ({ why: code, lasting: false, remedy });
  if (UNTRUSTED.has(code))
    return stays(
      `its certificate is not trusted: ${code}`,
      "set OTEL_EXPORTER_OTLP_CERTIFICATE to the file of its authority's certificate",
    );
  const certificate = BAD_CERTIFICATE[code];
  if (certificate !== undefined) return stays(`its certificate is wrong: ${code}`, certificate);
  if (NOT_TLS.test(text)) return stays('it does not speak TLS', 'write http:// for https://');
  if (NO_ALPN.test(text) || isOtherProtocol(code)) return otherProtocol(target, answered);
  if (code === 'ECONNREFUSED') return passes('start it, or correct the endpoint');
  if (NO_SUCH_HOST.has(code)) return passes('correct the name of the host');
  if (CUT_OFF.has(code)) return passes(secure ? null : 'a port that wants TLS needs https://');
  return passes(null);
}

/** Node's parser of HTTP/1, or of HTTP/2, met something else. */
function isOtherProtocol(code: string): boolean {
  return code.startsWith('HPE_') || code === 'ERR_HTTP2_ERROR';
}

/** The usual mistake: the one protocol's port with the other protocol. */
export function otherProtocol({ protocol }: SignalTarget, answered: boolean): Trouble {
  return protocol === 'grpc'
    ? {
        why: 'it does not speak gRPC',
        lasting: !answered,
        remedy: 'use --otlp-protocol http/protobuf, or the port for gRPC (usually 4317)',
      }
    : {
        why: 'it does not speak HTTP/1.1',
        lasting: !answered,
        remedy: 'use --otlp-protocol grpc, or the port for HTTP (usually 4318)',
      };
}

/** The innermost code (Node's HTTP/2 wraps the socket's error) and everything that was said. */
function facts(error: unknown): { code: string; text: string } {
  let code = '';
  let text = '';
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('code' in one && typeof one.code === 'string') code = one.code;
    text += `${one.message}\n`;
  }
  const known = code === '' || code === 'ERR_HTTP2_STREAM_CANCEL';
  return { code: printable(known ? (text.split('\n')[0] ?? '') : code, 60), text };
}
