/** Values that golang.org/x/mod computes for a log of 70,000 entries (test/fixtures/SOURCES.md). */
import { readFileSync } from 'node:fs';

interface TlogVectors {
  readonly roots: readonly { readonly size: number; readonly root: string }[];
  readonly inclusion: readonly { readonly index: number; readonly size: number; readonly proof: readonly string[] }[];
  readonly consistency: readonly { readonly from: number; readonly to: number; readonly proof: readonly string[] }[];
  /** SHA-256 of each tile by its path. */
  readonly growths: readonly { readonly from: number; readonly to: number; readonly tiles: Readonly<Record<string, string>> }[];
  /** By level, index and width. */
  readonly paths: Readonly<Record<string, string>>;
  readonly note: { readonly seed: string; readonly verifierKey: string; readonly text: string; readonly signed: string };
}

export const tlogVectors = JSON.parse(readFileSync(new URL('../fixtures/tlog-vectors.json', import.meta.url), 'utf8')) as TlogVectors;

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
