/** Base64url of uids and salts, by hand: a call out of JavaScript costs more for so few bytes. Pure. */
const characters = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const values = new Uint8Array(128);
for (const [value, character] of characters.entries()) values[character] = value;

/** Writes 16 bytes as text. @returns the index after the text */
export function writeText(target: Uint8Array, at: number, bytes: Uint8Array, from: number): number {
  let bits = 0;
  let count = 0;
  let end = at;
  for (let i = from; i < from + 16; i += 1) {
    bits = ((bits << 8) | (bytes[i] ?? 0)) & 0xffff;
    count += 8;
    for (; count >= 6; end += 1) {
      count -= 6;
      target[end] = characters[(bits >> count) & 63] ?? 0;
    }
  }
  target[end] = characters[(bits << (6 - count)) & 63] ?? 0;
  return end + 1;
}

/** Writes the 16 bytes of a text. */
export function writeBytes(target: Uint8Array, at: number, text: string): void {
  let bits = 0;
  let count = 0;
  let end = at;
  for (let i = 0; end < at + 16; i += 1) {
    bits = ((bits << 6) | (values[text.charCodeAt(i)] ?? 0)) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    target[end] = (bits >> count) & 0xff;
    end += 1;
  }
}
