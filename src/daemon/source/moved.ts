/** Under one id, path and tenant of a source stay the same unless an operator moves it. */
import type { SourceConfig } from '../../config/load.ts';
import { orAborted } from '../../time/deadline.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Suspension } from '../../model/ledger.ts';
import type { Meters } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { fieldsOf } from '../../collect/suspension.ts';
import type { DaemonOptions } from '../options.ts';
import { destinationOf } from '../../source/destination.ts';
import { whenWritable } from '../when-writable.ts';

/**
 * Suspends a source while the state has another path or tenant under its id; other sources continue. The suspension ends when an operator has
 * moved the source, or when the configuration names the former service again.
 */
export async function whileMoved(
  settings: SourceConfig,
  journal: Journal,
  { clock, log: root }: Pick<DaemonOptions, 'clock' | 'log'>,
  meters: Pick<Meters, 'sourceSuspended'>,
  signal: AbortSignal,
): Promise<void> {
  const { id } = settings;
  if (!journal.hasSource(id)) return;
  const log = root.child('collect');
  const now = (): Micros => clock.now() * 1000;
  const write = (suspension: Suspension | undefined): Promise<void> =>
    whenWritable(() => journal.setSuspension(id, suspension, now()), { clock, log }, signal);
  for (let isFirst = true; ; isFirst = false) {
    const changed = journal.changed();
    const message = journal.movedSource(id, destinationOf(settings));
    const { suspension } = journal.progress(id);
    const held = suspension?.reason === 'moved' ? suspension : undefined;
    if (message === undefined) {
      if (!held) return;
      await write(held.previous);
      log.write('source.suspension_ended', { source: id, ...fieldsOf(held) });
      return;
    }
    if (held?.message === message) {
      if (isFirst) log.write('source.still_suspended', { source: id, ...fieldsOf(held) });
      await orAborted(changed, signal);
      continue;
    }
    const previous = held ? held.previous : suspension;
    const begun: Suspension = { reason: 'moved', message, since: now(), ...(previous && { previous }) };
    await write(begun);
    meters.sourceSuspended(id, 'moved');
    log.write('source.suspended', { source: id, ...fieldsOf(begun) });
  }
}
