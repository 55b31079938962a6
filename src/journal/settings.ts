/** The settings of the journal: maximum size and retention. */
import { z } from 'zod';
import { duration, size } from '../settings/values.ts';

/** `journal` */
export const journalSettings = z
  .strictObject({
    maxSize: size({ min: '16MiB' })
      .prefault('10GiB')
      .describe(
        'Maximum size of the state on disk. When it is reached, collection pauses; nothing is lost while the service keeps its log',
      ),
    retention: duration()
      .prefault('30d')
      .describe('How long entries that every sink has acknowledged stay available for replay; shorter once half of `maxSize` is used'),
  })
  .prefault({})
  .describe('Durable buffer between sources and sinks');
