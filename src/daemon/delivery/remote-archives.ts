/** The present settings of archives, for the replays of a loop in another thread. */
import { carriedSettings, revivedSettings } from '../../settings/carried.ts';
import type { Environment } from '../../settings/reference.ts';
import type { ArchiveSettings } from '../../sink/archive/settings.ts';
import type { Remote } from '../channel.ts';
import type { LoopParts } from './loop.ts';

export type ArchiveService = ReturnType<typeof archiveService>;

/** In the main thread. */
export function archiveService(archive: LoopParts['archive']) {
  return { settings: async (sink: string): Promise<unknown> => carriedSettings(await archive(sink)) };
}

/** In the thread of the loop. @param environment  where the settings find environment variables */
export function remoteArchives(service: Remote<ArchiveService>, environment: Environment): LoopParts['archive'] {
  return async (sink) => revivedSettings(await service.settings(sink), environment) as ArchiveSettings | undefined;
}
