/**
 * Parses a LEEF 2.0 line by its specification, for tests: a header of five fields between pipes, a
 * delimiter, and attributes. Throws if a consumer would misread the line.
 */

interface LeefLine {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly eventId: string;
  /** In the order of the line. */
  readonly values: ReadonlyMap<string, string>;
}

export function parseLeef(line: string): LeefLine {
  if (/[\r\n]/.test(line)) throw new Error('a line break within a line');
  const [, vendor = '', product = '', version = '', eventId = '', delimiter, attributes = ''] =
    /^LEEF:2\.0\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)$/su.exec(line) ?? [];
  if (delimiter !== '0x09') throw new Error(`no header of LEEF 2.0 with tabs: ${line.slice(0, 200)}`);
  const values = new Map<string, string>();
  for (const attribute of attributes.split('\t')) {
    const at = attribute.indexOf('=');
    const key = attribute.slice(0, at);
    const value = attribute.slice(at + 1);
    if (at < 1 || !/^[A-Za-z0-9]+$/.test(key)) throw new Error(`no key: ${attribute.slice(0, 100)}`);
    if (values.has(key)) throw new Error(`${key} stands twice`);
    if (value === '') throw new Error(`${key} is empty`);
    values.set(key, value);
  }
  return { vendor, product, version, eventId, values };
}
