/** Which records each sink of a fleet lacks or has twice, and what PostgreSQL has of them. Uses no code of the program. */
import type pg from 'pg';
import { zstdDecompressSync } from 'node:zlib';

/** What arrived at a sink. Each source has its id as `observer.product`, so that equal records of two sources differ. */
export interface Arrived {
  readonly event: { readonly original: string };
  readonly observer: { readonly product: string };
}

interface SinkFaults {
  /** By source. */
  readonly missing: Readonly<Record<string, number>>;
  /** How many of the missing records the journal has. */
  readonly inJournal: number;
  readonly twice: number;
  readonly unknown: number;
  readonly examples: readonly string[];
}

type Queries = Pick<pg.Pool, 'query'>;

/** The faults of each sink; empty if each has each record of each source once. `lag`: what it has not acknowledged, by sink and shard. */
export async function faultsIn(
  pool: Queries,
  sinks: Readonly<Record<string, readonly Arrived[]>>,
  sources: readonly string[],
  truth: readonly string[],
): Promise<Record<string, SinkFaults | object>> {
  const numbers = new Map(truth.map((text, i) => [text, i]));
  const keyOf = (source: string, text: string): string => `${source} ${numbers.get(text) ?? text}`;
  const all = sources.flatMap((source) => truth.map((_, i) => `${source} ${i}`));
  const faults: Record<string, SinkFaults | object> = {};
  let journal: ReadonlySet<string> | undefined;
  for (const [sink, arrived] of Object.entries(sinks)) {
    const counts = new Map(all.map((key) => [key, 0]));
    let unknown = 0;
    for (const { event, observer } of arrived) {
      const key = keyOf(observer.product, event.original);
      const count = counts.get(key);
      if (count === undefined) unknown += 1;
      else counts.set(key, count + 1);
    }
    const missing = [...counts].flatMap(([key, count]) => (count === 0 ? [key] : []));
    const twice = [...counts].filter(([, count]) => count > 1);
    if (missing.length + twice.length + unknown === 0) continue;
    journal ??= new Set((await recordsIn(pool)).map(([source, text]) => keyOf(source, text)));
    const kept = missing.filter((key) => journal?.has(key));
    const bySource = Map.groupBy(missing, (key) => key.slice(0, key.indexOf(' ')));
    faults[sink] = {
      missing: Object.fromEntries([...bySource].map(([source, keys]) => [source, keys.length] as const)),
      inJournal: kept.length,
      twice: twice.length,
      unknown,
      examples: [...missing, ...twice.map(([key]) => key)].slice(0, 5),
    };
  }
  return Object.keys(faults).length === 0 ? {} : { ...faults, lag: await lagsIn(pool) };
}

/** By sink and shard: the entries that the sink has not acknowledged, where there are any. */
export async function lagsIn(pool: Queries): Promise<Record<string, number>> {
  const sql = `SELECT sinks.id || ' of shard ' || shard AS name, (seq - acknowledged)::int AS lag FROM waybill.sinks JOIN waybill.head USING (shard)
    WHERE seq > acknowledged ORDER BY 1`;
  const { rows } = await pool.query<{ name: string; lag: number }>(sql);
  return Object.fromEntries(rows.map(({ name, lag }) => [name, lag]));
}

/** All records that PostgreSQL has, with their sources. */
async function recordsIn(pool: Queries): Promise<(readonly [source: string, text: string])[]> {
  const sql = `SELECT id, g.kind::int AS kind, ends, body FROM waybill.segments AS g JOIN waybill.sources AS s ON s.shard = g.shard AND s.source_no = g.source
    WHERE g.kind & 255 = 1 ORDER BY g.shard, seq`;
  const { rows } = await pool.query<{ id: string; kind: number; ends: Buffer; body: Buffer }>(sql);
  return rows.flatMap(({ id, kind, ends, body }) => {
    const whole = kind >> 8 === 1 ? zstdDecompressSync(body) : body;
    const at = Array.from({ length: ends.length / 4 }, (_, i) => ends.readUInt32LE(i * 4));
    return at.map((end, i) => [id, whole.toString('utf8', at[i - 1] ?? 0, end)] as const);
  });
}
