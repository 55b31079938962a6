/** Operations in a fleet: the owner of each shard that has the source or sink carries them out. */
import { WaybillError } from '../../errors/errors.ts';
import type { Pool } from '../../fleet/database.ts';
import { requested, shardsOfRequest } from '../../fleet/requests.ts';
import type { Clock } from '../../model/time.ts';
import { operationSchema, type OperationResult } from './requests.ts';

/** @param shard  of the dead letters of the request. @throws the error of the operation */
export async function operateOnShards(
  pool: Pool,
  request: unknown,
  clock: Clock,
  signal: AbortSignal,
  shard?: number,
): Promise<OperationResult> {
  const { data } = operationSchema.safeParse(request);
  if (!data) throw new WaybillError('usage', 'cannot read the request: it is not an operation');
  const named = 'source' in data ? { source: data.source } : { sink: data.sink };
  if (shard === undefined && (('seqs' in data && data.seqs !== 'all') || ('first' in data && (data.first ?? data.last) !== undefined)))
    throw new WaybillError('usage', 'cannot use the number of an entry: each shard of a fleet has its own');
  const shards = shard === undefined ? await shardsOfRequest(pool, named) : [shard];
  if (shards.length === 0) throw new WaybillError('usage', `cannot find "${Object.values(named).join('')}" in the state of any shard`);
  // One shard is enough for a test of the receiver.
  const concerned = data.operation === 'sinks test' ? shards.slice(0, 1) : shards;
  const results = (await requested(pool, concerned, request as object, clock, signal)) as OperationResult[];
  const sent = results.flatMap((result) => result.sent ?? []);
  return {
    ...results[0],
    ...(sent.length > 0 && {
      sent: { delivered: sent.reduce((sum, { delivered }) => sum + delivered, 0), rejected: sent.flatMap(({ rejected }) => rejected) },
    }),
  };
}
