/** Recognizes IP addresses in linear time. Receivers reject documents whose ECS or CEF address fields hold other text. */

/** Returns 4 for dotted decimal without leading zeros, 6 for a text form of RFC 4291 section 2.2 without a zone, otherwise undefined. */
export function ipVersion(text: string): 4 | 6 | undefined {
  if (text.length < 2 || text.length > 45) return undefined;
  if (text.includes(':')) return isIpv6(text) ? 6 : undefined;
  return isIpv4(text) ? 4 : undefined;
}

/**
 * The address as receivers compare it: `::ffff:192.0.2.9` or `::ffff:c000:209` (RFC 4291 section 2.5.5.2) as IPv4, any other one as it is.
 * Undefined for a text that is no address.
 */
export function canonicalIp(text: string): string | undefined {
  const version = ipVersion(text);
  if (version === undefined) return undefined;
  if (version === 4 || !/ffff/i.test(text)) return text;
  // A URL has the shortest form of each IPv6 address, with the last four bytes in hex.
  const [, high, low] = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(new URL(`http://[${text}]`).hostname) ?? [];
  if (high === undefined || low === undefined) return text;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join('.');
}

function isIpv4(text: string): boolean {
  let parts = 1;
  let digits = 0;
  let value = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 0x2e) {
      if (digits === 0) return false;
      parts += 1;
      digits = 0;
      value = 0;
    } else {
      if (code < 0x30 || code > 0x39 || (digits > 0 && value === 0)) return false;
      digits += 1;
      value = value * 10 + code - 0x30;
      if (value > 255) return false;
    }
  }
  return parts === 4 && digits > 0;
}

function isIpv6(text: string): boolean {
  const gap = text.indexOf('::');
  if (gap < 0) return groupsOf(text, true) === 8;
  if (text.indexOf('::', gap + 1) >= 0) return false;
  const head = groupsOf(text.slice(0, gap), false);
  const tail = groupsOf(text.slice(gap + 2), true);
  // `::` replaces at least one group.
  return head !== undefined && tail !== undefined && head + tail <= 7;
}

/** The number of 16-bit groups in the text; a dotted address may be the last two. Undefined if it has other parts. */
function groupsOf(text: string, last: boolean): number | undefined {
  if (text === '') return 0;
  const groups = text.split(':');
  const end = groups.at(-1) ?? '';
  const dotted = last && end.includes('.');
  if (dotted && !isIpv4(end)) return undefined;
  const hex = dotted ? groups.slice(0, -1) : groups;
  return hex.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group)) ? hex.length + (dotted ? 2 : 0) : undefined;
}
