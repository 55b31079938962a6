/** A server that answers a handshake of TLS in plain text: OpenSSL says so in words of its own, which help nobody. */
import { wordsOf } from '../errors.ts';

/** What was thrown, in words, where it means that; undefined: something else. */
export function plainPort(thrown: unknown): string | undefined {
  const words = wordsOf(thrown);
  const openSsl = words.search(/[0-9A-F]+:error:/);
  if (openSsl < 0 || !/wrong version number|packet length too long/.test(words)) return undefined;
  return `${words.slice(0, openSsl)}the port does not speak TLS`;
}
