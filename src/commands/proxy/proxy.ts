import { resolve } from 'node:path';
import { anchoredClock, takeAnchor } from '../../core/clock.ts';
import { errorCode, usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { printable, quoteForShell } from '../../core/text.ts';
import type { Exchange } from '../../proxy/exchange.ts';
import { startProxy, type RunningProxy } from '../../proxy/proxy.ts';
import type { Command, CommandContext, StopSignal } from '../command-line/command.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { parseProxyOptions, type ProxyCommandOptions, proxyUsage } from './options.ts';
import { ProxyRecord } from './record.ts';

/** `trace proxy`: what passes is recorded until a signal or for a time. */
export const proxyCommand: Command = { ...proxyUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const parsed = parseProxyOptions(values, positionals);
  const { listen } = parsed;
  const options = {
    ...parsed,
    listen: 'unix' in listen ? { unix: resolve(environment.cwd, listen.unix) } : listen,
  };
  const signals = new StopSignals(environment);
  try {
    const clock = anchoredClock(takeAnchor());
    let record: ProxyRecord | null = null;
    const early: Exchange[] = [];
    // Before there is a folder: one that cannot listen leaves none behind.
    const proxy = await listenOn(options, {
      clock,
      onExchange: (exchange) => (record === null ? early.push(exchange) : record.add(exchange)),
    });
    try {
      record = await ProxyRecord.open(options, { environment, clock });
      for (const exchange of early) record.add(exchange);
      const { stderr, stdout } = environment;
      if (values['quiet'] !== true)
        stderr.write(
          `${printable(proxy.address)} passes to ${options.target.href}; Ctrl-C ends it\n`,
        );
      await untilOver(signals, options.duration);
      await proxy.close();
      await record.end(signals.received !== null && options.duration !== null);
      stdout.write(record.summary());
      if (record.count > 0 && values['quiet'] !== true)
        stderr.write(
          `Send them again: trace repro new --traffic ${quoteForShell(printable(record.directory, 1000))}\n`,
        );
      return exitCodeOf(signals.received, options.duration !== null);
    } finally {
      await proxy.close();
    }
  } finally {
    signals.close();
  }
}

async function listenOn(
  { target, listen }: ProxyCommandOptions,
  rest: Pick<Parameters<typeof startProxy>[0], 'clock' | 'onExchange'>,
): Promise<RunningProxy> {
  try {
    return await startProxy({ target, listen, ...rest });
  } catch (error) {
    const place = 'unix' in listen ? printable(listen.unix) : `port ${listen.port}`;
    throw usageError(
      `cannot listen on ${place}: ${printable(errorCode(error))}`,
      'unix' in listen
        ? 'Name a path that is not there, in a folder that is.'
        : 'Give another --port, or none for a free one.',
    );
  }
}

async function untilOver(signals: StopSignals, duration: number | null): Promise<void> {
  await new Promise<void>((done) => {
    const timer = duration === null ? null : setTimeout(done, duration * 1e3);
    signals.listen(() => {
      if (timer !== null) clearTimeout(timer);
      done();
    });
  });
}

function exitCodeOf(signal: StopSignal | null, hasDuration: boolean): ExitCode {
  if (signal === 'SIGTERM') return EXIT.terminated;
  return signal === 'SIGINT' && hasDuration ? EXIT.interrupted : EXIT.ok;
}
