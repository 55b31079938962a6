/**
 * The access to one source, which all parts of its collector share. Calibration uses it before there is a ledger; the scheduler uses it
 * afterwards.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { ServerClock, Source } from '../model/source.ts';
import type { Log, Meters, Tracer } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { Handoff } from './handoff.ts';
import type { Paging } from './page-size.ts';
import { Requester } from './requester.ts';
import { Suspensions, waitsFor, type Waits } from './suspension.ts';

interface Given {
  readonly sourceId: string;
  readonly journal: CollectJournal;
  readonly paging: Paging;
  readonly serverClock: ServerClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly closeDelay: Micros;
}

export interface SourceAccess extends Given {
  readonly requester: Requester;
  readonly suspensions: Suspensions;
  readonly handoff: Handoff;
  readonly waits: Waits;
}

interface SourceAccessParts extends Given {
  readonly source: Source;
  readonly uidOf: ConstructorParameters<typeof Requester>[0]['uidOf'];
  readonly meters: Pick<Meters, 'sourceSuspended'>;
  readonly tracer?: Tracer | undefined;
  /** `VisibilityProfile.lastFullVisibility` from before a restart. */
  readonly lastFullVisibility: Micros | undefined;
}

export function accessSource(parts: SourceAccessParts): SourceAccess {
  const waits = waitsFor(parts.closeDelay / 1000);
  const handoff = new Handoff();
  const suspensions = new Suspensions({ ...parts, waits });
  return { ...parts, requester: new Requester({ ...parts, suspensions, waits, handoff }), suspensions, handoff, waits };
}
