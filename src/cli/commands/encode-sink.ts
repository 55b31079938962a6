/** `waybill encode --sink`: encodes records as a sink of the configuration does, without connecting. */
import { loadConfig, type Config, type SinkConfig, type SourceConfig } from '../../config/load.ts';
import { limitOf, writerOf } from '../../daemon/open-sink.ts';
import { settingsOf } from '../../config/service-facts.ts';
import { bytesOf } from '../../deliver/pipeline.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { compileWhere } from '../../normalize/filter.ts';
import { normalizer } from '../../normalize/normalizer.ts';
import { identify } from '../../record/identity.ts';
import { readText } from '../../record/read.ts';
import { unresolved } from '../../settings/values.ts';
import { byId } from '../not-found.ts';
import type { Io } from '../io.ts';

/**
 * @returns a function from a record's text to its message, undefined when the filter of the sink excludes the record. It throws SyntaxError
 *   for a text that is not JSON, and RangeError for a record that does not fit into the size limit of the sink.
 */
export async function sinkEncoder(
  values: { readonly config: string | undefined; readonly sink: string; readonly source: string | undefined },
  io: Pick<Io, 'env'>,
  clock: Clock,
): Promise<(text: string) => string | undefined> {
  // No credential is used, so none is required.
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = byId('sink', config.sinks, values.sink);
  const source = sourceOf(config, sink, values.source);
  const settings = settingsOf(source, sink, config);
  const { key, rules } = settings.privacy;
  if (key === unresolved && rules.some(({ action }) => action === 'pseudonymize'))
    throw new WaybillError(
      'secret_missing',
      `cannot pseudonymize as the sink "${sink.id}" does: privacy.key refers to a secret that is missing`,
    );
  const normalize = normalizer(settings);
  const matches = sink.filter ? compileWhere(sink.filter) : () => true;
  const { encode } = writerOf(sink);
  const limit = limitOf(sink, { messageTruncated: () => undefined });
  const uidOf = identify(source.id);
  return (text) => {
    const record = readText(text);
    if (!matches(record)) return undefined;
    return bytesOf(normalize({ record, uid: uidOf(record), received: clock.now() * 1000 }), encode, limit).toString();
  };
}

/** @throws WaybillError `usage` when the sink does not receive this source, or receives several and none is given */
function sourceOf(config: Config, sink: SinkConfig, id: string | undefined): SourceConfig {
  const received = config.sources.filter((source) => sink.sources?.includes(source.id) ?? true);
  if (id !== undefined) return byId(`source of sink "${sink.id}"`, received, id);
  const [only, ...others] = received;
  if (only !== undefined && others.length === 0) return only;
  const known = received.map((source) => source.id).join(', ');
  throw new WaybillError(
    'usage',
    `missing --source: the sink "${sink.id}" receives ${known === '' ? 'no source' : `several sources: ${known}`}`,
  );
}
