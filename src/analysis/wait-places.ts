import type { LockActor } from '../core/lock-look.ts';
import { frameOrigin } from '../core/place.ts';
import type { Frame, Place } from '../core/types.ts';

/** Who waits where, in words and as places. */

/** The program's own frame first, then what it called to wait, then its caller. */
export function placesOf(actor: LockActor): readonly Place[] {
  const { frames, caller } = actor;
  return [frames[caller], frames[caller - 1], frames[caller + 1]].flatMap((frame) =>
    frame === undefined
      ? []
      : [
          {
            function: frame.function,
            file: frame.file,
            line: frame.line,
            module: frameOrigin(frame.file).module,
            thread: actor.name,
            share: 1,
          },
        ],
  );
}

/** `thread worker 3`. */
export function actorName({ kind, name }: LockActor): string {
  return name.startsWith(`${kind} `) ? name : `${kind} ${name}`;
}

/** `settle (/srv/app.py:7)`. */
export function placeName({ frames, caller }: LockActor): string {
  const frame = frames[caller] ?? frames[0];
  return frame === undefined ? 'code without frames' : `${frame.function} (${position(frame)})`;
}

/** `/srv/app.py:7`. */
export function position({ file, line }: Pick<Frame, 'file' | 'line'>): string {
  return line === null ? file : `${file}:${line}`;
}
