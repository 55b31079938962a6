/** Sends requests to one source. Calibration uses it before there is a ledger; the scheduler uses it afterwards. */
import type { CollectJournal } from '../model/journal.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { Log, Meters, Tracer } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { Handoff } from './handoff.ts';
import type { Paging } from './page-size.ts';
import { Requester } from './requester.ts';
import { Suspensions, waitsFor, type Waits } from './suspension.ts';

export interface SourceAccess {
  readonly requester: Requester;
  readonly suspensions: Suspensions;
  readonly handoff: Handoff;
  readonly waits: Waits;
}

interface SourceAccessParts {
  readonly sourceId: string;
  readonly source: Source;
  readonly uidOf: ConstructorParameters<typeof Requester>[0]['uidOf'];
  readonly journal: CollectJournal;
  readonly paging?: Paging;
  readonly serverClock: ServerClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Pick<Meters, 'sourceSuspended'>;
  readonly tracer?: Tracer | undefined;
  /** ms */
  readonly closeDelay: number;
  /** `VisibilityProfile.lastFullVisibility` from before a restart. */
  readonly lastFullVisibility: Micros | undefined;
}

export function accessSource(parts: SourceAccessParts): SourceAccess {
  const waits = waitsFor(parts.closeDelay);
  const handoff = new Handoff();
  const suspensions = new Suspensions({ ...parts, waits });
  return { requester: new Requester({ ...parts, suspensions, waits, handoff }), suspensions, handoff, waits };
}
