/** The settings of the journal: how much it may hold, and for how long. */
import { z } from 'zod';
import { duration, size } from '../settings/values.ts';

/** `journal` */
export const journalSettings = z
  .strictObject({
    maxSize: size({ min: '16MiB' })
      .prefault('10GiB')
      .describe(
        'The most that the state may take on disk: beyond it collecting pauses, and nothing is lost while the service keeps its log',
      ),
    retention: duration()
      .prefault('30d')
      .describe('How long entries that every sink has taken stay for replay; less when half of `maxSize` is used'),
  })
  .prefault({})
  .describe('What lies between collecting and delivering');
