/** `15.6 MiB`, `10 GiB`. @param count  bytes */
export function size(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, count < 1 ? 0 : Math.floor(Math.log2(count) / 10));
  const value = count / 1_024 ** power;
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)} ${units[power] ?? ''}`;
}
