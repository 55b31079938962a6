/** The keys that signed an archive, each with the sizes of its first and its last checkpoint. */
import { WaybillError } from '../errors/errors.ts';
import { checkpointPath, openCheckpoint } from './checkpoint.ts';
import { keyName, parseVerifier, type Verifier } from './signed-note.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers } from './stored-log.ts';

interface KeySpan {
  readonly key: Verifier;
  readonly first: number;
  /** Undefined: it signs now. */
  readonly last: number | undefined;
}

/**
 * The folder `keys/` has the public keys, and the signatures tell which of them signed what. At a change, both keys sign one checkpoint.
 * @returns the keys in their order; empty for an archive without a checkpoint
 * @throws WaybillError `archive_broken` for a checkpoint without a signature of these keys, or a key that no earlier one introduced
 */
export async function keyHistory(store: ArchiveStore): Promise<readonly KeySpan[]> {
  const newest = (await checkpointNumbers(store)).at(-1) ?? 0;
  if (newest === 0) return [];
  const keys: Verifier[] = [];
  for await (const path of store.list('keys/')) {
    const key = parseVerifier((await store.read(path))?.toString() ?? '');
    if (key) keys.push(key);
  }
  const signedAt = async (number: number): Promise<{ readonly size: number; readonly by: readonly string[] }> => {
    const opened = openCheckpoint(await store.read(checkpointPath(number)), keys);
    if (typeof opened === 'string') throw broken(number, opened);
    if (opened.signedBy.length === 0) throw broken(number, 'no key of "keys/" signed it');
    return { size: opened.size, by: opened.signedBy.map(keyName) };
  };
  const spans: KeySpan[] = [];
  let begin = { number: 1, ...(await signedAt(1)) };
  for (let key = keys.find((each) => begin.by.includes(keyName(each))); key;) {
    const name = keyName(key);
    let [low, high] = [begin.number, newest + 1];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await signedAt(middle)).by.includes(name)) low = middle;
      else high = middle;
    }
    const end = { number: low, ...(await signedAt(low)) };
    const isUsed = (each: Verifier): boolean => keyName(each) === name || spans.some((span) => span.key === each);
    const next = keys.find((each) => end.by.includes(keyName(each)) && !isUsed(each));
    if (!next && low < newest) throw broken(low + 1, `another key signed it, and none together with "${name}"`);
    spans.push({ key, first: begin.size, last: next ? end.size : undefined });
    [key, begin] = [next, end];
  }
  return spans;
}

function broken(number: number, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot tell the keys of the archive from "${checkpointPath(number)}": ${reason}`);
}
