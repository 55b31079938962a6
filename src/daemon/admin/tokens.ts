/** The tokens of the admin server in the main thread, which reads their files. */
import { WaybillError } from '../../errors/errors.ts';
import type { Secret } from '../../settings/secret.ts';
import { tokenNames, type TokenName } from './messages.ts';

/**
 * Returns the current value of a token, '' if it is not configured. While its file is missing or empty, the last value stays valid: another
 * process may be replacing the file, and monitoring must not fail meanwhile. The reload of the configuration reports such a file.
 * @throws WaybillError `secret_missing`, here only: the file of a configured token is missing or empty at the start
 */
export function lastReadableTokens(secretOf: (name: TokenName) => Secret | undefined): (name: TokenName) => string {
  const last = new Map(tokenNames.map((name) => [name, secretOf(name)?.read() ?? '']));
  return (name) => {
    const secret = secretOf(name);
    if (secret === undefined) return '';
    try {
      const value = secret.read();
      last.set(name, value);
      return value;
    } catch (thrown) {
      if (!(thrown instanceof WaybillError) || thrown.code !== 'secret_missing') throw thrown;
      return last.get(name) ?? '';
    }
  };
}
