import { expect, it } from 'vitest';
import { parseCommandLine } from '../../../src/commands/command-line/command-line.ts';
import { attachUsage, parseAttachOptions } from '../../../src/commands/attach/options.ts';
import type { AttachPlan } from '../../../src/commands/attach/probe.ts';
import { AttachScreen } from '../../../src/commands/attach/screen.ts';
import type { ProcessTreeWatch } from '../../../src/commands/attach/tree.ts';
import type { Observation, Seconds } from '../../../src/core/types.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const gap = (collector: string, from: Seconds, to: Seconds): Observation => ({
  kind: 'gap',
  collector,
  reason: 'late',
  from,
  to,
  detail: '',
});

it('counts a time in which nothing was seen once, however many collectors miss it', () => {
  const { values, positionals } = parseCommandLine(attachUsage, ['1', '-d', '100s']);
  const environment = fakeEnvironment();
  const screen = new AttachScreen(parseAttachOptions(values, positionals), environment);
  const plan = {
    found: { target: { pid: 1 }, title: 'server' },
    infos: [],
    messages: [],
    details: [],
  } as unknown as AttachPlan;
  screen.announce(plan, { infos: [] } as unknown as ProcessTreeWatch);
  screen.write(gap('event-loop', 10, 70));
  screen.write(gap('process', 11, 70));
  screen.write(gap('event-loop', 80, 82));
  screen.tick(85);
  expect(environment.err()).toContain('62 s not covered');
});
