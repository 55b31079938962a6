/** The path of the cosignature of a checkpoint by one witness. Pure. */

/** The number of the checkpoint, and the id of the key of the witness in hex; undefined for another path. */
export function parseCosignaturePath(path: string): { readonly number: number; readonly id: string } | undefined {
  const [, digits = '0', id = ''] = /^cosignatures\/(\d{10})-([0-9a-f]{8})$/.exec(path) ?? [];
  return Number(digits) > 0 ? { number: Number(digits), id } : undefined;
}
