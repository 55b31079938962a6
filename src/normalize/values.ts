/** Parses values of fields. A value of another form gives undefined or the text itself; the plain field holds it in any case. */

interface Position {
  readonly lat: number;
  readonly lon: number;
}

/** Local part and domain, if there is exactly one `@` with text on both sides. */
export function emailParts(text: string): { readonly name: string; readonly domain: string } | undefined {
  const parts = halves(text, '@');
  return parts === undefined ? undefined : { name: parts[0], domain: parts[1] };
}

/** `First Last` from `Last,First`, if there is exactly one comma with text on both sides; otherwise the text unchanged. */
export function fullName(lastNameFirstName: string): string {
  const parts = halves(lastNameFirstName, ',');
  return parts === undefined ? lastNameFirstName : `${parts[1].trim()} ${parts[0].trim()}`;
}

/** The extension in lower case: 1 to 16 ASCII letters or digits after a dot that is not at the start. */
export function fileExtension(name: string): string | undefined {
  const dot = name.lastIndexOf('.');
  const length = name.length - dot - 1;
  if (dot < 1 || length < 1 || length > 16) return undefined;
  const extension = name.slice(dot + 1);
  return /^[A-Za-z0-9]+$/.test(extension) ? extension.toLowerCase() : undefined;
}

/** 12 or 16 hex digits, separated by `:`, `-`, `.` or space, as upper case with hyphens: `0A-1B-2C-3D-4E-5F`. */
export function macAddress(text: string): string | undefined {
  // The maximum: 16 digits with separators.
  if (text.length < 12 || text.length > 48 || !/^[0-9A-Fa-f:. -]+$/.test(text)) return undefined;
  const digits = text.replace(/[:. -]/g, '').toUpperCase();
  if (digits.length !== 12 && digits.length !== 16) return undefined;
  let mac = digits.slice(0, 2);
  for (let i = 2; i < digits.length; i += 2) mac += `-${digits.slice(i, i + 2)}`;
  return mac;
}

/** `latitude,longitude`: decimal numbers within ±90 and ±180; spaces are allowed. 0,0 is a place that nobody is at: a device without a position. */
export function position(text: string): Position | undefined {
  const comma = text.indexOf(',');
  if (comma < 0) return undefined;
  const lat = decimal(text.slice(0, comma));
  const lon = decimal(text.slice(comma + 1));
  if (lat === undefined || lon === undefined || (lat === 0 && lon === 0)) return undefined;
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180 ? { lat, lon } : undefined;
}

function decimal(text: string): number | undefined {
  const trimmed = text.trim();
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(trimmed) ? Number(trimmed) : undefined;
}

/** The parts around the only occurrence of a separator, if both have text. */
function halves(text: string, separator: string): readonly [string, string] | undefined {
  const at = text.indexOf(separator);
  if (at < 1 || text.indexOf(separator, at + 1) >= 0) return undefined;
  const before = text.slice(0, at);
  const behind = text.slice(at + 1);
  return before.trim() === '' || behind.trim() === '' ? undefined : [before, behind];
}
