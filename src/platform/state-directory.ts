/** Where trace keeps what outlives a run: `$XDG_STATE_HOME/tracewright`, by default below `~/.local/state`. */
export function stateDirectory(env: Readonly<Record<string, string | undefined>>): string {
  const xdg = env['XDG_STATE_HOME'];
  // The XDG specification has relative paths ignored.
  if (xdg !== undefined && xdg.startsWith('/')) return `${xdg}/tracewright`;
  return `${env['HOME'] ?? '/tmp'}/.local/state/tracewright`;
}
