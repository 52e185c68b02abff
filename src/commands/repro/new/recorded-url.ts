import { TraceError } from '../../../core/errors.ts';
import { EXIT } from '../../../core/exit-code.ts';
import { printable } from '../../../core/text.ts';
import type { RecordingView } from '../../../core/types.ts';

/**
 * Where recorded requests went. Recordings come from disk and from others: curl would read a file,
 * too. Throws a TraceError for what is no address of http or https.
 */
export function recordedUrl(view: RecordingView): URL {
  const text = String(view.start.settings['url'] ?? '');
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new TraceError(
    'ERR_NO_TRAFFIC',
    `its requests went to '${printable(text, 100)}', which is no address of http or https`,
    {
      exitCode: EXIT.unsupported,
      remedy: 'Give another recording of trace load or trace proxy.',
    },
  );
}
