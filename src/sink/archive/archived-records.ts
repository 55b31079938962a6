/** Opens the archive of a sink to read its records again. */
import { ArchivedRecordReader, type JournalEnd } from '../../archive/archived-records.ts';
import type { ArchivedRecords } from '../../model/journal.ts';
import type { SinkContext } from '../define.ts';
import { signingKeysOf } from './key.ts';
import { openStore } from './open.ts';
import type { ArchiveSettings } from './settings.ts';

/** @param context  `id` is the sink of the archive @param signal  ends reading, also while a server does not answer */
export async function openArchivedRecords(
  settings: ArchiveSettings,
  context: SinkContext,
  end: JournalEnd,
  signal: AbortSignal,
): Promise<ArchivedRecords> {
  const keys = signingKeysOf(settings, context.id);
  const store = await openStore(settings, context, signal);
  try {
    return await ArchivedRecordReader.open(store, keys, end);
  } catch (thrown) {
    await store[Symbol.asyncDispose]();
    throw thrown;
  }
}
