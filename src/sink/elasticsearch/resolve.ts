/**
 * Searches which records a data stream has: `_id` is unique only within one backing index (elastic/elasticsearch issue 44794), so after a
 * rollover the same uid would be stored again.
 */
import { WaybillError } from '../../errors/errors.ts';
import type { ElasticClient } from './client.ts';
import { plainText } from './items.ts';

/** Maximum hits of one search: the default of `index.max_result_window`. */
const maxHits = 10_000;

/** The result of a search by uids: the number of documents, and the uids of the hits. */
interface Found {
  readonly total: number;
  readonly uids: readonly string[];
}

/**
 * The stored uids among these; undefined without the privilege to read. Duplicates from another writer may fill the hits, so that stored
 * uids seem missing: then it searches the uids in halves.
 */
export async function present(
  uids: readonly string[],
  search: (uids: readonly string[]) => Promise<Found | undefined>,
): Promise<Set<string> | undefined> {
  if (uids.length === 0) return new Set();
  const found = await search(uids);
  if (found === undefined) return undefined;
  if (found.total <= found.uids.length || uids.length === 1) return new Set(found.uids);
  const middle = Math.ceil(uids.length / 2);
  const lower = await present(uids.slice(0, middle), search);
  const upper = await present(uids.slice(middle), search);
  return upper && lower?.union(upper);
}

export class Reader {
  readonly #client: ElasticClient;
  readonly #id: string;

  constructor(client: ElasticClient, id: string) {
    this.#client = client;
    this.#id = id;
  }

  /** None in a missing stream; undefined without the privilege to read. @throws WaybillError `sink_unavailable`, `sink_blocked` */
  async has(target: string, uids: readonly string[], signal: AbortSignal): Promise<Set<string> | undefined> {
    if (!(await this.#refresh(target, signal))) return new Set();
    return present(uids, (part) => {
      const query = { size: maxHits, track_total_hits: true, _source: false, query: { ids: { values: part } } };
      return this.#search(target, query, signal);
    });
  }

  /** When the newest event happened, ms since 1970; null for an empty or missing stream; undefined without the privilege to read. */
  async newest(target: string, signal: AbortSignal): Promise<number | null | undefined> {
    if (!(await this.#refresh(target, signal))) return null;
    const sort = [{ '@timestamp': { order: 'desc', unmapped_type: 'date', numeric_type: 'date' } }];
    const found = await this.#search(target, { size: 1, track_total_hits: true, _source: false, sort }, signal);
    return found === undefined ? undefined : (found.newest ?? null);
  }

  /** The uid of the document with this `_id`; undefined for none, or without the privilege to read. */
  async uidOf(target: string, id: string, signal: AbortSignal): Promise<string | undefined> {
    if (!(await this.#refresh(target, signal))) return undefined;
    return (
      await this.#search(target, { size: 1, track_total_hits: true, _source: ['dpas.uid'], query: { ids: { values: [id] } } }, signal)
    )?.uid;
  }

  /** Makes recent writes visible to searches. @returns false when the stream is missing */
  async #refresh(target: string, signal: AbortSignal): Promise<boolean> {
    const { status } = await this.#ask(`/${encodeURIComponent(target)}/_refresh`, {}, undefined, signal);
    return status !== 404;
  }

  async #search(
    target: string,
    query: object,
    signal: AbortSignal,
  ): Promise<(Found & { readonly newest?: number | undefined; readonly uid?: string | undefined }) | undefined> {
    const answer = await this.#ask(
      `/${encodeURIComponent(target)}/_search`,
      {
        /* mutant: partial-search */ allow_partial_search_results: 'false',
        filter_path: 'timed_out,_shards.failed,hits.total.value,hits.hits._id,hits.hits.sort,hits.hits._source',
      },
      query,
      signal,
    );
    if (answer.status === 403) return undefined;
    if (answer.status === 404) return { total: 0, uids: [] };
    const { timed_out, _shards, hits } = answer.body as {
      readonly timed_out?: boolean;
      readonly _shards?: { readonly failed?: number };
      readonly hits?: {
        readonly total?: { readonly value?: number };
        readonly hits?: readonly {
          readonly _id: string;
          readonly sort?: readonly [number];
          readonly _source?: { readonly dpas?: { readonly uid?: string } };
        }[];
      };
    };
    const total = hits?.total?.value;
    if (/* mutant: partial-result */ timed_out !== false || _shards?.failed !== 0 || total === undefined)
      throw this.#retry('the search covered only some shards');
    const found = hits?.hits ?? [];
    return { total, uids: found.map(({ _id }) => _id), newest: found[0]?.sort?.[0], uid: found[0]?._source?.dpas?.uid };
  }

  /** These requests store nothing, so every outcome may be retried. */
  async #ask(path: string, query: Record<string, string>, json: unknown, signal: AbortSignal) {
    let answer;
    try {
      answer = await this.#client.request({ method: 'POST', path, query, ...(json === undefined ? {} : { json }) }, signal);
    } catch (thrown) {
      if (thrown instanceof WaybillError && thrown.code === 'sink_outcome_unknown')
        throw new WaybillError('sink_unavailable', thrown.message);
      throw thrown;
    }
    const { status, error } = answer;
    if (status === 200 || status === 404 || (status === 403 && error?.type === 'security_exception')) return answer;
    const message = `${status} ${plainText(error)}`;
    if (status === 401) throw new WaybillError('sink_blocked', `sink "${this.#id}" is not known to the server: ${message}`);
    throw this.#retry(`cannot read the index: ${message}`);
  }

  #retry(message: string): WaybillError {
    return new WaybillError('sink_unavailable', `cannot determine which messages sink "${this.#id}" has accepted: ${message}`);
  }
}
