/** Findings about what waits for what. */
export const WAIT_FINDINGS = [
  {
    code: 'TRC105',
    kind: 'deadlock',
    title: 'Threads or tasks wait for one another',
    means:
      'Threads or tasks wait for what none of them can give any more. Nothing of it moves again by itself.',
    mechanisms: {
      'lock order': 'each of a circle waits for what the next one has',
      'lock taken twice': 'a thread waits for a lock that it has itself',
      'loop waits for itself': 'a thread waits for what only its own event loop can complete',
      'lost wake-up': 'what is waited for is there, and the waiter was not woken',
      'pool exhaustion': 'everything in a pool is taken, and nobody is left to give one back',
    },
    severity: 'critical; a lost wake-up is a warning',
  },
  {
    code: 'TRC106',
    kind: 'lock-contention',
    title: 'Threads that wait for a lock',
    means:
      'Threads get on, but spend their time waiting for a lock, or for a connection of a pool, that others have.',
    mechanisms: {
      lock: 'a lock that is nearly always taken',
      'pool exhaustion': 'the same threads keep the connections of a pool',
    },
    severity:
      'a warning where somebody waits half of the time or connections are kept, else a note',
  },
  {
    code: 'TRC122',
    kind: 'lock-contention',
    title: 'Sessions of a database wait for a lock',
    means: 'Sessions of the database wait for a lock that another session keeps.',
    mechanisms: {
      'database lock': 'a session that is at work has the lock',
      'idle in transaction': 'a session that does nothing has the lock, its transaction being open',
    },
    severity:
      'critical from 30 s of waiting, a warning from 3 s or behind an idle session, a note from 1 s',
  },
  {
    code: 'TRC123',
    kind: 'deadlock',
    title: 'Transactions that wait for each other',
    means: 'Transactions of a database waited for each other until the server ended one of them.',
    mechanisms: {
      'transactions in opposite order': 'two transactions take the same locks in another order',
    },
    severity: 'a warning; a note where it was before this run',
  },
  {
    code: 'TRC201',
    kind: 'wedge',
    title: 'The server is wedged',
    means: 'Requests are running at an inference server and nothing comes out.',
    mechanisms: {
      'stopped process': 'a process of the engine is stopped or frozen',
      'kernel never returned': 'a kernel on the GPU does not end',
      spinning: 'the engine takes a core while the GPU does nothing',
      sleeping: 'a process of the engine sleeps',
      'lost wake-up': 'every process of the engine waits for another',
      deadlock: 'one process of the engine waits for a lock, the others for it',
      unknown: 'what it waits for cannot be told from outside',
    },
    severity: 'critical',
  },
] as const;
