/** Where an archive is, and the public keys that verify it. */
import { statSync } from 'node:fs';
import { originOf } from '../../../archive/head.ts';
import { parseVerifier, signerOf, type Verifier } from '../../../archive/signed-note.ts';
import type { WritableArchiveStore } from '../../../archive/store.ts';
import { systemClock } from '../../../time/clock.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { signingKeysOf } from '../../../sink/archive/key.ts';
import { openStore } from '../../../sink/archive/open.ts';
import { placeOf as nameOf, type ArchiveSettings } from '../../../sink/archive/settings.ts';
import type { SinkContext } from '../../../sink/define.ts';
import { byId } from '../../not-found.ts';
import { readAbortable, type Io } from '../../io.ts';
import { configOption, shardNumber, text, texts, type ValuesOf } from '../../option.ts';

export const shardOption = {
  shard: shardNumber(
    'with --sink: shard of a fleet, each of which has an archive; without it, the archive of an imported state or of one daemon',
  ),
};
export const placeOptions = {
  directory: text('DIR', 'directory of the archive'),
  sink: text('ID', 'archive sink of the configuration, in a directory or in S3, in place of --directory'),
  ...shardOption,
  ...configOption,
};
export const keyOption = {
  key: texts('FILE', 'public keys, one name+id+base64 a line; may be repeated; default with --sink: the public half of its signingKey'),
};

type PlaceValues = ValuesOf<typeof placeOptions>;

export interface Place {
  readonly store: WritableArchiveStore & AsyncDisposable;
  /** The directory or bucket, for messages. */
  readonly name: string;
  /** Of the sink in the configuration. */
  readonly settings: ArchiveSettings | undefined;
  readonly sink: string | undefined;
}

/** @throws WaybillError `usage` unless the options name one archive that exists */
export async function placeOf(values: PlaceValues, { env, signal }: Pick<Io, 'env' | 'signal'>): Promise<Place> {
  const { directory, sink } = values;
  if ((directory === undefined) === (sink === undefined))
    throw new WaybillError('usage', 'cannot find the archive: pass either --directory DIR, or --sink ID of the configuration');
  if (sink === undefined && values.shard !== undefined) throw new WaybillError('usage', 'cannot use --shard without --sink');
  const found = sink === undefined ? undefined : await configured(sink, values, env);
  const settings: Pick<ArchiveSettings, 'directory' | 's3'> = found?.settings ?? { directory };
  const name = `${nameOf(settings)}${values.shard === undefined ? '' : ` (shard ${values.shard})`}`;
  if (settings.s3 === undefined && statSync(nameOf(settings), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new WaybillError('usage', `cannot read the archive "${name}": it is not a directory`);
  const context = found?.context ?? { id: 'archive', clock: systemClock };
  return { store: await openStore(settings, context, signal), name, settings: found?.settings, sink };
}

async function configured(
  id: string,
  { config: file, shard }: Pick<PlaceValues, 'config' | 'shard'>,
  env: Io['env'],
): Promise<{ readonly settings: ArchiveSettings; readonly context: SinkContext }> {
  // Every other way to name an archive starts faster without the modules of the configuration.
  const { loadConfig } = await import('../../../config/load.ts');
  const { config } = await loadConfig(file, env, { requireSecrets: false });
  const sink = byId('sink', config.sinks, id);
  if (sink.type !== 'archive') throw new WaybillError('usage', `cannot use the sink "${id}" of type ${sink.type}: it is not an archive`);
  return { settings: sink.settings as ArchiveSettings, context: sinkContext(sink, config, { clock: systemClock }, shard) };
}

/** The keys of `--key`, else the public halves of the sink's signing keys. @throws WaybillError `usage` when there is none */
export async function keysOf(files: readonly string[], signal: AbortSignal, place?: Place): Promise<readonly Verifier[]> {
  if (files.length > 0) {
    const keys: Verifier[] = [];
    for (const file of files) keys.push(...(await keysIn(file, '--key', signal)));
    return keys;
  }
  if (!place?.settings)
    throw new WaybillError('usage', 'missing --key FILE: the public key that you received from the operator of the archive');
  const origin = await originOf(place.store);
  return origin === undefined ? [] : signingKeysOf(place.settings, place.sink ?? '').map((key) => signerOf(origin, key));
}

/** @param type  of the keys: 4 of witnesses. @throws WaybillError `usage` for a file without keys, or with others */
export async function keysIn(file: string, option: string, signal: AbortSignal, type: 1 | 4 = 1): Promise<readonly Verifier[]> {
  const lines = (await readAbortable(file, option, signal))
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .split('\n')
    // "archive keys" prints the sizes at which a key began and ended.
    .map((line) => line.replace(/^[ \t\r]+|(?: \d+ (?:\d+|-))?[ \t\r]*$/g, ''))
    .filter((line) => line !== '');
  if (lines.length === 0) throw new WaybillError('usage', `cannot use ${option} "${file}": it is empty`);
  return lines.map((line) => {
    const verifier = parseVerifier(line, type);
    if (verifier) return verifier;
    const expected = type === 1 ? 'an Ed25519 key; "waybill check" prints it' : 'the Ed25519 key of a witness (type 4)';
    throw new WaybillError('usage', `cannot use ${option} "${file}": a line is not name+id+base64 of ${expected}`);
  });
}
