/** Findings about inference servers and GPUs. */
export const SERVER_FINDINGS = [
  {
    code: 'TRC210',
    kind: 'saturation',
    title: 'The server is full, by its own numbers',
    means: 'An inference server has more to do than it gets done, by the numbers of its own page.',
    mechanisms: {
      'kv-cache-full': 'requests wait for room in the KV cache',
      'batch-limit': 'as many run at once as may',
      'queue-grows': 'the queue becomes longer and longer',
      preemption: 'running requests are put back and begin anew',
      'long-prefill': 'others wait while a long prompt is worked on',
      'cpu-tokenizer': 'the process that makes tokens of text uses all of a core',
      'cpu-detokenizer': 'the process that makes text of tokens uses all of a core',
    },
    severity: 'a warning; in a sweep a note',
  },
  {
    code: 'TRC221',
    kind: 'gpu-idle',
    title: 'The GPU does little while requests wait',
    means: 'Requests wait at the server while even the busiest of its GPUs does little.',
    mechanisms: { 'host-bound': 'a thread of the engine uses all of a core meanwhile' },
    severity: 'a warning',
  },
  {
    code: 'TRC222',
    kind: 'gpu-throttled',
    title: 'The clocks of a GPU are held down',
    means: 'The driver held the clocks of a GPU down in a share of the readings, for one reason.',
    mechanisms: {
      'power-cap': 'its power limit',
      thermal: 'heat',
      'power-brake': 'the power supply asks for it',
      'hw-slowdown': 'the hardware, without saying why',
    },
    severity: 'a warning; at the power limit a note unless the clock falls by a tenth',
  },
  {
    code: 'TRC223',
    kind: 'gpu-fault',
    title: 'A GPU is at fault',
    means:
      'The driver says that a GPU is lost, counts errors that could not be corrected, or waits for a repair.',
    mechanisms: {
      lost: 'it no longer answers on the bus',
      'no-handle': 'the driver cannot reach it',
      'reset-required': 'it needs a reset',
      driver: 'the driver does not answer',
      'xid-<number>': "an XID error in the kernel's log",
      'ecc-uncorrected': 'errors of memory that ECC could not correct',
      'remapped_rows.failure': 'a bad row of memory could not be replaced',
      'remapped_rows.pending': 'a bad row of memory waits for a reset',
      'retired_pages.pending': 'bad pages of memory wait for a reset',
      'sram.threshold_exceeded': 'more errors in SRAM than it may have',
      'recovery.<name>': 'the driver asks for this action',
    },
    severity:
      'critical when it cannot be used, else a warning; a note where it is not the target’s',
  },
] as const;
