/**
 * Names the records of a window that share one identity. They count as one record, so the window
 * can never be proven, and the operator must know why. The same uid with another text is a
 * collision; so is a uid twice in one answer. The same text in two answers shows nothing, because
 * pages may have moved in between.
 */
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Handoff } from './handoff.ts';
import type { Paging } from './page-size.ts';
import { pass } from './read-pages.ts';
import type { Requester } from './requester.ts';

interface Access {
  readonly requester: Requester;
  readonly paging: Paging;
  readonly log: Log;
  readonly handoff: Pick<Handoff, 'offer'>;
}

/**
 * Reads the query once more; and if that shows nothing, once more with pages that end elsewhere,
 * so that one page holds both records.
 */
export async function identityCollisions(access: Access, query: WindowQuery, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const { size } = access.paging;
  const first = await collisionsIn(access, query, size, signal);
  if (first.collisions.size > 0 || !first.isRepeated || size <= 2) return first.collisions;
  return (await collisionsIn(access, query, size - 1, signal)).collisions;
}

async function collisionsIn(
  { requester, paging, log, handoff }: Access,
  query: WindowQuery,
  size: number,
  signal: AbortSignal,
): Promise<{
  readonly collisions: ReadonlySet<string>;
  /** A uid came in two answers with the same text. */ readonly isRepeated: boolean;
}> {
  const texts = new Map<string, string>();
  const collisions = new Set<string>();
  let isRepeated = false;
  const pages = pass({
    // A copy: the size that the service grants for these pages must not change the size of others.
    requester,
    paging: { ...paging, size },
    query,
    log,
    signal,
    pagesMax: Number.MAX_SAFE_INTEGER,
    ahead: () => false,
    unreadable: () => undefined,
  });
  for await (const { answer } of pages) {
    const inAnswer = new Set<string>();
    for (const { uid, text } of answer.records) {
      if (inAnswer.has(uid) || (texts.get(uid) ?? text) !== text) collisions.add(uid);
      else if (texts.has(uid)) isRepeated = true;
      inAnswer.add(uid);
      texts.set(uid, text);
    }
    await handoff.offer();
  }
  return { collisions, isRepeated };
}
