/** Findings about an event loop, and about processes and their limits. */
export const LOOP_FINDINGS = [
  {
    code: 'TRC101',
    kind: 'loop-blocked',
    title: 'The event loop did not turn',
    means:
      'One callback, or one turn of the loop, took longer than the threshold, and nothing else ran meanwhile. Without a place of its own, the machine held it up.',
    mechanisms: {
      sleep: 'a sleep that blocks the thread',
      'file-io': 'reading or writing a file',
      'network-io': 'waiting for a socket',
      subprocess: 'waiting for a child process',
      pipe: 'reading or writing a pipe',
      dns: 'resolving a name',
      lock: 'waiting for a lock',
      gil: 'waiting for the GIL, which another thread has',
      'nested-poll': 'another loop that runs inside this one',
      cpu: 'computing',
      'quadratic work': 'computing, and more each time',
      import: 'importing a module while the loop runs',
      gc: 'collecting garbage',
      'page-fault': 'waiting for memory that has to be read first',
      starved: 'waiting for a core that others have',
      unknown: 'what it did could not be read',
    },
    severity:
      'critical from a second or a fifth of the run of its own, a note where it waited for a core or only imported once, else a warning',
  },
  {
    code: 'TRC102',
    kind: 'cpu-spin',
    title: 'The event loop turns at full speed for nothing',
    means:
      'The loop takes a core for four seconds or more while hardly anything arrives: something asks to be run again at once, and never waits.',
    mechanisms: { 'loop-without-wait': 'a callback that schedules itself without waiting' },
    severity: 'a warning',
  },
  {
    code: 'TRC103',
    kind: 'process-exit',
    title: 'A process ended',
    means: 'A process of the run ended, with the exit code or signal that the kernel has.',
    mechanisms: {
      'out of memory': 'killed by the kernel, because the machine had no memory left',
      'out of memory (cgroup)': 'killed by the kernel at the memory limit of its control group',
      'SIG<name>': 'ended by this signal',
      'signal <number>': 'ended by a signal that has no name here',
      'exit code': 'left with an exit code other than 0',
      exited: 'left with exit code 0',
      unknown: 'how it ended could not be seen',
    },
    severity:
      'critical when killed for want of memory or crashed, a note when asked to end or in order, else a warning',
  },
  {
    code: 'TRC104',
    kind: 'process-exit',
    title: 'The target was restarted',
    means: 'With --follow-restarts: the service ended and came back, as often as it says.',
    mechanisms: {
      restart: 'it came back and stayed',
      'crash loop': 'it keeps ending soon after its start',
    },
    severity: 'critical for a crash loop, else a note',
  },
  {
    code: 'TRC120',
    kind: 'cpu-throttled',
    title: 'Stopped by a CPU quota',
    means:
      'The control group used up its CPU quota and was stopped until the next period, again and again.',
    mechanisms: { 'cgroup-quota': 'the quota of the control group' },
    severity: 'a warning where it stopped in a quarter of the periods, else a note',
  },
  {
    code: 'TRC121',
    kind: 'memory-limit',
    title: 'Near the memory limit',
    means:
      'The control group has little left below its memory limit, or the kernel has already acted on it.',
    mechanisms: {
      'near-limit': 'what is held comes close to the limit',
      'held-up': 'the kernel makes it wait while it takes memory back',
      'oom-kill': 'the kernel has killed a process of the group',
    },
    severity: 'a warning from 95 % of the limit on or when the kernel acted, else a note',
  },
] as const;
