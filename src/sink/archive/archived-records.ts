/** Opens the archive of a sink to read its records again. */
import { ArchivedRecordReader, type JournalEnd } from '../../archive/archived-records.ts';
import type { ArchivedRecords } from '../../model/journal.ts';
import type { SinkContext } from '../define.ts';
import { signingKeysOf } from './key.ts';
import { openStore } from './open-store.ts';
import type { ArchiveSettings } from './settings.ts';

/** @param context  `id` is the sink of the archive */
export async function openArchivedRecords(settings: ArchiveSettings, context: SinkContext, end: JournalEnd): Promise<ArchivedRecords> {
  const keys = signingKeysOf(settings, context.id);
  const store = await openStore(settings, context);
  try {
    return await ArchivedRecordReader.open(store, keys, end);
  } catch (thrown) {
    await store[Symbol.asyncDispose]();
    throw thrown;
  }
}
