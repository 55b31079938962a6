/**
 * A CEF parser of the tests, independent of the encoder. Public vectors verify it
 * (cef-parser.test.ts); text before `CEF:` belongs to the transport and is skipped, as Filebeat
 * does.
 */

export interface CefLine {
  readonly version: string;
  readonly vendor: string;
  readonly product: string;
  readonly deviceVersion: string;
  readonly classId: string;
  readonly name: string;
  readonly severity: string;
  /** In the order of the line; a repeated key occurs twice. */
  readonly extension: readonly (readonly [key: string, value: string])[];
}

export function parseCef(line: string): CefLine {
  const start = line.indexOf('CEF:');
  if (start < 0) throw new Error('no CEF line');
  const header: string[] = [];
  let field = '';
  let at = start + 4;
  for (; at < line.length && header.length < 7; at += 1) {
    const character = line.charAt(at);
    if (character === '\\' && '\\|'.includes(line.charAt(at + 1))) {
      at += 1;
      field += line.charAt(at);
    } else if (character === '|') {
      header.push(field);
      field = '';
    } else {
      field += character;
    }
  }
  if (header.length === 6) header.push(field);
  if (header.length !== 7) throw new Error(`a header of ${header.length} fields`);
  const [version = '', vendor = '', product = '', deviceVersion = '', classId = '', name = '', severity = ''] = header;
  return { version, vendor, product, deviceVersion, classId, name, severity, extension: extensionOf(line.slice(at)) };
}

/** A key is the text before an unescaped equals sign, back to the last space. */
function extensionOf(text: string): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  const keys = [...text.matchAll(/(?<=^|\s)([^\s=\\]+)=/g)];
  keys.forEach((key, index) => {
    const value = text.slice(key.index + key[0].length, keys[index + 1]?.index ?? text.length).trim();
    pairs.push([key[1] ?? '', unescape(value)]);
  });
  return pairs;
}

function unescape(value: string): string {
  let text = '';
  for (let i = 0; i < value.length; i += 1) {
    const next = value.charAt(i) === '\\' ? { n: '\n', r: '\r', '\\': '\\', '=': '=' }[value.charAt(i + 1)] : undefined;
    text += next ?? value.charAt(i);
    if (next !== undefined) i += 1;
  }
  return text;
}
