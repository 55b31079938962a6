/** Expected values come from transparency-dev/merkle and golang.org/x/mod (test/fixtures/SOURCES.md). */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  consistencyRanges,
  emptyRoot,
  inclusionRanges,
  leafHash,
  nodeHash,
  provesExtension,
  provesInclusion,
  sha256,
} from '../../../src/archive/merkle.ts';
import { TiledTree } from '../../../src/archive/tiled-tree.ts';
import { bundlePath, edgeTiles, rangeHash, tileAt, tilePath, tilesOf } from '../../../src/archive/tiles.ts';
import type { Tile, TileId } from '../../../src/archive/tiles.ts';
import { hex, tlogVectors as vectors } from '../../support/tlog-vectors.ts';

interface Probe {
  readonly file: string;
  readonly proof: readonly string[] | null;
  readonly wantErr: boolean;
}
interface InclusionProbe extends Probe {
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly root: string;
  readonly leafHash: string;
}
interface ConsistencyProbe extends Probe {
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
}

const probes = JSON.parse(readFileSync(new URL('../../fixtures/merkle-probes.json', import.meta.url), 'utf8')) as {
  readonly inclusion: readonly InclusionProbe[];
  readonly consistency: readonly ConsistencyProbe[];
};
const base64 = (text: string): Buffer => Buffer.from(text, 'base64');
const proofOf = ({ proof }: Probe): Buffer[] => (proof ?? []).map(base64);

/** The log of the vectors. It grows once, and is checked at each of the sizes. */
const leaves = Array.from({ length: 70_000 }, (_, i) => leafHash(Buffer.from(`entry ${i}`)));
const completeTiles = new Map<string, Tile>();
const grown = grow();

function grow(): ReadonlyMap<number, { readonly tree: TiledTree; readonly edge: ReadonlyMap<string, Tile> }> {
  const trees = new Map<number, { tree: TiledTree; edge: ReadonlyMap<string, Tile> }>();
  const sizes = [
    ...Array(41).keys(),
    66_000,
    67_000,
    ...vectors.roots.map(({ size }) => size),
    ...vectors.inclusion.map(({ size }) => size),
  ];
  for (const { from, to } of [...vectors.consistency, ...vectors.growths]) sizes.push(from, to);
  const tree = TiledTree.empty();
  for (const size of [...new Set(sizes)].sort((a, b) => a - b)) {
    for (const leaf of leaves.slice(tree.size, size)) tree.append(leaf);
    const tiles = tree.takeTiles().map((tile) => [tilePath(tile), tile] as const);
    for (const [path, tile] of tiles) if (tile.width === 256) completeTiles.set(path, tile);
    trees.set(size, { tree: tree.copy(), edge: new Map(tiles.filter(([, { width }]) => width < 256)) });
  }
  return trees;
}

function logOf(size: number): { readonly tree: TiledTree; readonly edge: ReadonlyMap<string, Tile> } {
  const found = grown.get(size);
  if (!found) throw new Error(`expected a look at ${size} leaves`);
  return { ...found, tree: found.tree.copy() };
}

function headOf(size: number): { readonly size: number; readonly root: Uint8Array } {
  return { size, root: logOf(size).tree.root() };
}

function hashesIn(size: number): (tile: TileId) => Uint8Array {
  const { edge } = logOf(size);
  return (tile) => {
    const found = edge.get(tilePath(tile)) ?? completeTiles.get(tilePath(tile));
    if (found === undefined) throw new Error(`expected ${tilePath(tile)} in a tree of ${size} leaves`);
    return found.hashes;
  };
}

describe('hashes', () => {
  it('equal the vectors of RFC 6962', () => {
    expect(hex(emptyRoot)).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(hex(leafHash(Buffer.alloc(0)))).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d');
    expect(hex(leafHash(Buffer.from('L123456')))).toBe('395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56');
    // The vector of the reference implementation has children of four bytes.
    const [left, right] = [leafHash(Buffer.from('a')), leafHash(Buffer.from('b'))];
    expect(nodeHash(left, right)).not.toEqual(leafHash(Buffer.concat([left, right])));
  });

  it.each(vectors.roots)('a tree of $size leaves has the root that Go computes', ({ size, root }) => {
    expect(hex(headOf(size).root)).toBe(root);
  });
});

describe('a proof', () => {
  it.each(probes.inclusion)(
    'of inclusion has the result of the reference: $file',
    ({ leafIdx, treeSize, root, leafHash: leaf, ...probe }) => {
      const tree = { size: treeSize, root: base64(root) };
      expect(provesInclusion({ index: leafIdx, hash: base64(leaf) }, tree, proofOf(probe))).toBe(!probe.wantErr);
    },
  );

  it.each(probes.consistency)('of extension has the result of the reference: $file', ({ size1, size2, root1, root2, ...probe }) => {
    const [before, after] = [
      { size: size1, root: base64(root1) },
      { size: size2, root: base64(root2) },
    ];
    expect(provesExtension(before, after, proofOf(probe))).toBe(!probe.wantErr);
  });

  it.each(vectors.inclusion)('of leaf $index in $size is read from tiles as Go does', ({ index, size, proof }) => {
    const ranges = inclusionRanges(index, size);
    const hashes = hashesIn(size);
    expect(ranges.map((range) => hex(rangeHash(range, size, hashes)))).toEqual(proof);
    const tree = headOf(size);
    expect(
      provesInclusion(
        { index, hash: leaves[index] ?? emptyRoot },
        tree,
        proof.map((hash) => Buffer.from(hash, 'hex')),
      ),
    ).toBe(true);
  });

  it.each(vectors.consistency)('that $to leaves extend $from is read from tiles as Go does', ({ from, to, proof }) => {
    const ranges = consistencyRanges({ from, to });
    const hashes = hashesIn(to);
    expect(ranges.map((range) => hex(rangeHash(range, to, hashes)))).toEqual(proof);
    expect(
      provesExtension(
        headOf(from),
        headOf(to),
        proof.map((hash) => Buffer.from(hash, 'hex')),
      ),
    ).toBe(true);
  });

  it('passes for every leaf of every small tree, and fails for every other leaf', () => {
    for (let size = 1; size <= 40; size += 1) {
      const hashes = hashesIn(size);
      const tree = headOf(size);
      for (let index = 0; index < size; index += 1) {
        const proof = inclusionRanges(index, size).map((range) => rangeHash(range, size, hashes));
        for (let other = 0; other < size; other += 1)
          expect(provesInclusion({ index, hash: leaves[other] ?? emptyRoot }, tree, proof)).toBe(other === index);
      }
    }
  });

  it('reads no more than two tiles for each level', () => {
    const read = inclusionRanges(12_345, 70_000).flatMap((range) => tilesOf(range, 70_000));
    expect(new Set(read.map(tilePath)).size).toBeLessThanOrEqual(6);
  });
});

describe('tiles', () => {
  it.each(Object.entries(vectors.paths))('tile %s has the path of C2SP tlog-tiles', (id, path) => {
    const [level = 0, index = 0, width = 0] = id.split(',').map(Number);
    expect(tilePath({ level, index, width })).toBe(path);
  });

  it('bundles have the path of their tile of level 0', () => {
    expect(bundlePath({ index: 1_234_067, width: 256 })).toBe('tile/entries/x001/x234/067');
    expect(bundlePath({ index: 0, width: 112 })).toBe('tile/entries/000.p/112');
  });

  // The example in C2SP tlog-tiles, section "Partial Tiles".
  it('of the example of the specification are 273 and 112 hashes, one and 17, and one of a single hash', () => {
    expect(edgeTiles(70_000)).toEqual([
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 },
    ]);
    expect(edgeTiles(256)).toEqual([{ level: 1, index: 0, width: 1 }]);
    expect(tileAt(0, 272, 70_000)).toEqual({ level: 0, index: 272, width: 256 });
  });

  it.each(vectors.growths)('that a log needs when it grows from $from to $to leaves equal the tiles of Go', ({ from, to, tiles }) => {
    const { tree } = logOf(from);
    for (const leaf of leaves.slice(from, to)) tree.append(leaf);
    const written = new Map(tree.takeTiles().map((tile) => [tilePath(tile), tile]));
    for (const [path, digest] of Object.entries(tiles))
      expect(hex(sha256(written.get(path)?.hashes ?? new Uint8Array())), path).toBe(digest);
  });

  it('restore the tree that they were taken from', () => {
    const { tree, edge } = logOf(66_000);
    const restored = TiledTree.from(66_000, [...edge.values()]);
    for (const leaf of leaves.slice(66_000, 67_000)) [tree, restored].forEach((each) => each.append(leaf));
    expect(hex(restored.root())).toBe(hex(headOf(67_000).root));
    expect(restored.takeTiles()).toEqual(tree.takeTiles());
  });
});
