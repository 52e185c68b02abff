/** Names of entries in a run's list of what is seen and what not that more than one module has to know. */
export const COLLECTOR = {
  /** The load engine itself. */
  load: 'load',
  /** Processes of the same program that the target started; always `available: false`, as only the target itself is watched. */
  workers: 'worker-processes',
  /** V8's heap and garbage collector, through an inspector that trace may evaluate in (`--inspect`). */
  heap: 'v8-heap',
  /** Where a Node process allocates what stays, through the same inspector, while it grows. */
  nodeHeap: 'v8-allocations',
  /** The objects of a Python process, looked at while its memory grows. */
  pythonHeap: 'python-heap',
} as const;
