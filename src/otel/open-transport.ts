import type { SignalTarget } from './environment.ts';
import type { Transport } from './transport.ts';

/** A way to `target`. What its protocol needs is loaded when there is something to send, and HTTP/2 for gRPC alone. */
export function openTransport(target: SignalTarget, userAgent: string): Transport {
  let opened: Promise<Transport> | null = null;
  const open = async (): Promise<Transport> => {
    if (target.protocol === 'grpc')
      return (await import('./grpc.ts')).grpcTransport(target, userAgent);
    return (await import('./http.ts')).httpTransport(target, userAgent);
  };
  return {
    async send(message, deadline) {
      opened ??= open();
      return (await opened).send(message, deadline);
    },
    close() {
      void opened?.then((transport) => transport.close());
    },
  };
}
