/** Opens the storage of an archive: its directory, or its bucket. */
import { DirectoryStore } from '../../archive/directory-store.ts';
import type { WritableArchiveStore } from '../../archive/store.ts';
import type { SinkContext } from '../define.ts';
import { bucketTarget, type ArchiveSettings } from './settings.ts';

/** Loads the client of S3 only for an archive in a bucket. @param signal  ends reading, and requests that a server does not answer */
export async function openStore(
  { directory = '', s3 }: Pick<ArchiveSettings, 'directory' | 's3'>,
  context: Pick<SinkContext, 'id' | 'clock' | 'ca' | 'proxy' | 'shown' | 'fleet'>,
  signal?: AbortSignal,
): Promise<WritableArchiveStore & AsyncDisposable> {
  if (s3 === undefined) return new DirectoryStore(directory, signal);
  const { BucketStore } = await import('../../archive/bucket/store.ts');
  return new BucketStore(bucketTarget(s3, context), { ...context, signal, setting: `sinks.${context.id}.s3` });
}
