/**
 * Operations on shards: a command or a member stores a request in the database, and the owner of the shard carries it out. So an operator needs
 * no way to the process that owns a shard. A request is carried out at most once: an owner that ends in between leaves its outcome unknown.
 */
import { randomUUID } from 'node:crypto';
import { codeOf, messageOf, WaybillError, type ErrorCode } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';
import { orAborted } from '../time/deadline.ts';
import { asked, type Pool } from './database.ts';
import type { Taken } from './lease.ts';

const pollMs = 500;
/** How long a request waits for an owner, and then for its result: a send has deadlines of its own below that. */
const takenMs = 30_000;
const doneMs = 240_000;

/** Asks the owner of a shard to give it up. */
export const release = { operation: 'fleet release' };

export function isRelease(request: unknown): boolean {
  return typeof request === 'object' && request !== null && 'operation' in request && request.operation === release.operation;
}

/** The shards with the source or sink of a request. */
export async function shardsOfRequest(
  pool: Pool,
  { source, sink }: { readonly source?: string; readonly sink?: string },
): Promise<number[]> {
  const sql = `SELECT DISTINCT shard FROM waybill.${source === undefined ? 'sinks' : 'sources'} WHERE id = $1 ORDER BY shard`;
  return (await asked(() => pool.query<{ shard: number }>(sql, [source ?? sink]))).rows.map(({ shard }) => shard);
}

/**
 * Stores a request for the owner of each shard, and waits for the results. Some shards may refuse an operation on a sink that does not apply to them.
 * @throws the error of the operation; WaybillError `state_unusable` without an owner
 */
export async function requested(
  pool: Pool,
  shards: readonly number[],
  request: object,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const answers = await Promise.allSettled(shards.map((shard) => requestedOf(pool, shard, request, clock, signal)));
  const results = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const errors = answers.flatMap((answer): unknown[] => (answer.status === 'rejected' ? [answer.reason] : []));
  const error = errors.find((each) => codeOf(each) !== 'usage') ?? (results.length === 0 ? errors[0] : undefined);
  if (error === undefined) return results;
  const done = results.length === 0 ? '' : `; ${results.length} of ${shards.length} shards have done it`;
  throw new WaybillError(codeOf(error) ?? 'internal_error', `${messageOf(error)}${done}`, { cause: error });
}

async function requestedOf(pool: Pool, shard: number, request: object, clock: Clock, signal: AbortSignal): Promise<unknown> {
  const id = randomUUID();
  const began = clock.monotonic();
  const mayBeDone = 'it may be carried out: see waybill operations list';
  const ask = async (sql: string, ...given: unknown[]) => {
    try {
      return await asked(() => pool.query<{ state: string; result: string | null }>(sql, [id, ...given]));
    } catch (thrown) {
      if (codeOf(thrown) !== 'database_unreachable') throw thrown;
      throw new WaybillError('database_unreachable', `${messageOf(thrown)}; ${mayBeDone}`, { cause: thrown });
    }
  };
  await ask('INSERT INTO waybill.requests (id, shard, request) VALUES ($1, $2, $3)', shard, JSON.stringify(request));
  for (;;) {
    await clock.sleep(pollMs, signal);
    const { rows } = await ask('SELECT state, result FROM waybill.requests WHERE id = $1');
    const { state, result } = rows[0] ?? { state: 'gone', result: null };
    const waited = clock.monotonic() - began;
    if (state === 'done') return JSON.parse(result ?? '{}');
    if (state === 'failed') {
      const { code, message } = JSON.parse(result ?? '{}') as { code?: ErrorCode; message?: string };
      throw new WaybillError(code ?? 'internal_error', message ?? '');
    }
    if (state === 'new' && waited >= takenMs) {
      const { rowCount } = await ask("DELETE FROM waybill.requests WHERE id = $1 AND state = 'new'");
      if (rowCount === 1)
        throw new WaybillError('state_unusable', `cannot perform the operation: no member owns shard ${shard}; nothing changed`);
    }
    if (state === 'gone' || waited >= doneMs)
      throw new WaybillError('state_unusable', `no result from the owner of shard ${shard}; ${mayBeDone}`);
  }
}

/** Carries out the requests for an owned shard until the signal. Waits for a database that is away. */
export async function serveRequests(
  pool: Pool,
  taken: Taken,
  operate: (request: unknown) => Promise<unknown>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { shard, epoch, lease } = taken;
  const answered = async <Row extends object>(sql: string, given: readonly unknown[]): Promise<readonly Row[]> => {
    for (;;) {
      try {
        return (await asked(() => pool.query<Row>(sql, [...given]))).rows;
      } catch (error) {
        if (codeOf(error) !== 'database_unreachable') throw error;
        await clock.sleep(pollMs, signal);
      }
    }
  };
  const unknown = { code: 'state_unusable', message: 'its owner ended; it may be carried out: see waybill operations list' };
  const abandoned = "UPDATE waybill.requests SET state = 'failed', result = $3 WHERE shard = $1 AND state = 'running' AND epoch < $2";
  await answered(abandoned, [shard, epoch, JSON.stringify(unknown)]);
  await answered("DELETE FROM waybill.requests WHERE shard = $1 AND at < clock_timestamp() - interval '1 day'", [shard]);
  const claim = `UPDATE waybill.requests AS r SET state = 'running', epoch = j.epoch FROM waybill.journals AS j
    WHERE r.shard = $1 AND r.state = 'new' AND j.shard = $1 AND j.lease = $2 RETURNING r.id, r.request`;
  const finish = "UPDATE waybill.requests SET state = $3, result = $4 WHERE id = $1 AND epoch = $2 AND state = 'running'";
  for (;;) {
    const found = await answered<{ id: string; request: string }>(claim, [shard, lease]);
    await Promise.all(
      found.map(async ({ id, request }) => {
        const performed = operate(JSON.parse(request)).then(
          (value) => ['done', value ?? {}] as const,
          (thrown: unknown) => ['failed', { code: codeOf(thrown), message: messageOf(thrown) }] as const,
        );
        // A shard that ends waits for no sink: the next owner says that the outcome is unknown.
        const [state, result] = await orAborted(performed, signal);
        await answered(finish, [id, epoch, state, JSON.stringify(result)]);
      }),
    );
    await clock.sleep(pollMs * 2, signal);
  }
}
