/** The definition of the sink `file`, one message per line; FileSink (sink.ts) writes it. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { duration, size } from '../../settings/values.ts';
import { messageOf } from '../../errors/errors.ts';
import { sideFile } from '../../settings/side-file.ts';
import { defineSink, error, ok, warning, type Finding } from '../define.ts';
import { isAbsent, kindAt, linksWords } from './disk.ts';
import { rotationProblem } from './rotation.ts';
import { FileSink } from './sink.ts';

const config = z.strictObject({
  path: z.string().min(1).describe('The file; its directory must exist. Relative to the working directory; must not be a link'),
  rotate: z
    .strictObject({
      size: size({ min: '4KiB' }).optional().describe('Rotate before the file exceeds this size; a larger batch gets a separate file'),
      interval: duration({ min: '1m' })
        .optional()
        .describe('Rotate at the first batch after the interval, counted from 1970: `1d` ends at midnight UTC'),
    })
    .optional()
    .describe('When to rename the file to `<path>.20261121T230000.000Z`; default never. Rotated files are never deleted'),
  compression: z.enum(['none', 'gzip']).default('none').describe('Compression of rotated files; `gzip` adds `.gz` to the name'),
});

export const file = defineSink('file', {
  summary: 'a file on a local disk, one message per line',
  config,
  formats: 'any',
  batch: { records: 250, bytes: 1024 * 1024, wait: 1_000 },
  resolvable: () => true,
  keepsPosition: () => true,
  deadline: 60_000,
  path: { setting: 'path', kind: 'file', kept: ['position', 'lock'] },
  refusedInFleet: () =>
    'file is not possible with "fleet": another process would continue in a file that it does not have; use kafka, elasticsearch, splunk-hec, syslog, or an archive in S3',
  destination: ({ path }) => resolve(path),
  guarantees: [
    {
      delivery: 'exactly once',
      duplicates:
        '0; if another program rotates the file between the start of a batch and the restart after a kill: one batch, ' +
        'after a power failure up to 10,000 entries',
      losses: '0',
    },
  ],
  async check({ path, rotate, compression }, { id }) {
    const setting = `sinks.${id}.path`;
    const message = (what: string, cause: unknown): string => `cannot ${what} "${path}" (${setting}): ${messageOf(cause)}`;
    try {
      await access(dirname(resolve(path)), constants.W_OK | constants.X_OK);
    } catch (cause) {
      return [error(message('write in the directory of', cause), setting)];
    }
    const tooLong = rotate && rotationProblem(path, compression === 'gzip');
    if (tooLong !== undefined) return [error(`cannot use "${path}" (${setting}): ${tooLong}`, setting)];
    const found: Finding[] = [];
    for (const each of [path, sideFile(path, 'position'), sideFile(path, 'lock')]) {
      try {
        const kind = await kindAt(each);
        if (kind !== undefined) return [error(`cannot use "${each}" (${setting}): ${kind}`, setting)];
        await access(each, constants.R_OK | constants.W_OK);
        const { nlink } = await stat(each);
        if (each === path && nlink > 1) return [error(`cannot use "${each}" (${setting}): ${linksWords(nlink)}`, setting)];
        if (each === path) found.push(ok(`"${path}" exists and is writable`));
      } catch (cause) {
        if (!isAbsent(cause)) return [error(message('write', cause), setting)];
        if (each === path) found.push(ok(`"${path}" can be created`));
      }
    }
    if (compression !== 'none' && rotate === undefined)
      found.push(
        warning(
          `"compression: ${compression}" has no effect without "rotate": only rotated files are compressed`,
          `sinks.${id}.compression`,
        ),
      );
    return found;
  },
  open: (settings, context, kept) => FileSink.open(settings, context, kept),
});
