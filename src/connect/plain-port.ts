/** Detects a server that answers a TLS handshake in plain text: the message of OpenSSL is unclear. */
import { messageOf } from '../errors/errors.ts';

/** A clear message for this error; undefined for any other error. */
export function plainPort(thrown: unknown): string | undefined {
  const message = messageOf(thrown);
  const openSsl = message.search(/[0-9A-F]+:error:/);
  if (openSsl < 0 || !codesOf(thrown).some((code) => plainCodes.has(code))) return undefined;
  return `${message.slice(0, openSsl)}the port does not speak TLS`;
}

const plainCodes: ReadonlySet<unknown> = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);

/** Codes of an error and its causes. The message cannot decide: a part of it may have been removed as a secret. */
function codesOf(thrown: unknown): readonly unknown[] {
  const codes: unknown[] = [];
  for (let at = thrown; at instanceof Error && codes.length < 8; at = at.cause) codes.push((at as NodeJS.ErrnoException).code);
  return codes;
}
