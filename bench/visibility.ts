/**
 * The delay until a record of the live benchmark becomes visible, ms after its `logTimestamp`, by
 * its number: 98 in 100 within a second, one in 2,000 within a minute, the others within 5 s.
 */
export function visibleAfterMs(i: number): number {
  // Multiplicative hashing (Knuth): spreads consecutive numbers evenly.
  const share = (Math.imul(i + 1, 2_654_435_761) >>> 0) / 2 ** 32;
  if (share < 0.98) return (share / 0.98) * 1_000;
  if (share < 0.9995) return 1_000 + ((share - 0.98) / 0.0195) * 4_000;
  return 5_000 + ((share - 0.9995) / 0.0005) * 55_000;
}
