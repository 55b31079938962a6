/** When others confirmed the checkpoint of a proof: by its time stamp, and by cosignatures of a quorum of witnesses. */
import type { Micros } from '../../model/time.ts';
import type { OpenedNote } from '../signed-note.ts';
import type { WitnessOptions } from './cosignatures.ts';
import type { TimeStampOptions } from './timestamps.ts';

/** What must date each proof; undefined: nothing. */
export interface ProofDates {
  readonly timeStamps?: TimeStampOptions | undefined;
  readonly cosignatures?: WitnessOptions | undefined;
}

/** @returns the earliest time; undefined if nothing was asked for; the reason as text if what was asked for does not date the proof */
export async function dateOf(
  { checkpoint, timeStamp }: { readonly checkpoint: Buffer; readonly timeStamp?: Buffer | undefined },
  cosignedBy: OpenedNote['cosignedBy'],
  { timeStamps, cosignatures }: ProofDates,
): Promise<Micros | undefined | string> {
  const times: Micros[] = [];
  if (timeStamps) {
    const time = timeStamp && (await timeOf(timeStamp, checkpoint, timeStamps));
    if (time === undefined) return 'it has no time stamp that --timestamp-ca proves today';
    times.push(time);
  }
  if (cosignatures) {
    const { witnesses, quorum } = cosignatures;
    const firsts = witnesses.map((each) => Math.min(...cosignedBy.flatMap(({ witness, time }) => (witness === each ? time : []))));
    const cosigned = firsts.filter(Number.isFinite).sort((a, b) => a - b);
    if (cosigned.length < quorum)
      return `${cosigned.length} of ${witnesses.length} witnesses cosigned its checkpoint, fewer than --quorum ${quorum}`;
    times.push(cosigned[quorum - 1] ?? Infinity);
  }
  return times.length > 0 ? Math.min(...times) : undefined;
}

/** @returns undefined unless its certificate is valid at its time and now: nothing in a proof covers it later, as the next time stamp of an archive does */
async function timeOf(bytes: Buffer, content: Buffer, { roots, now }: TimeStampOptions): Promise<Micros | undefined> {
  const { leadsTo, validToken } = await import('../timestamp/token.ts');
  const token = validToken(bytes, content, roots);
  return typeof token === 'object' && leadsTo(roots, token, now) ? token.time : undefined;
}
