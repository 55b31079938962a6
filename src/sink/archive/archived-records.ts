/** Opens the archive of a sink to read its records again. */
import { ArchivedRecordReader } from '../../archive/archived-records.ts';
import type { JournalEnd } from '../../archive/archived-records.ts';
import { DirectoryStore } from '../../archive/directory-store.ts';
import type { ArchivedRecords } from '../../model/journal.ts';
import { signingKeyOf } from './key.ts';
import type { ArchiveSettings } from './settings.ts';

export function openArchivedRecords(id: string, { directory, signingKey }: ArchiveSettings, end: JournalEnd): Promise<ArchivedRecords> {
  return ArchivedRecordReader.open(new DirectoryStore(directory), signingKeyOf(signingKey, `sinks.${id}.signingKey`), end);
}
