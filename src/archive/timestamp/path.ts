/** The path of the time stamp of a checkpoint. Pure. */

export function tokenPath(checkpoint: number): string {
  return `timestamps/${String(checkpoint).padStart(10, '0')}.tsr`;
}

/** The number of the stamped checkpoint; undefined for another path. */
export function tokenNumber(path: string): number | undefined {
  const number = Number(/^timestamps\/(\d{10})\.tsr$/.exec(path)?.[1]);
  return number > 0 ? number : undefined;
}
