/** Reads the signing key of an archive. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Secret } from '../../settings/secret.ts';
import type { ArchiveSettings } from './settings.ts';

type Keys = Pick<ArchiveSettings, 'signingKey' | 'previousSigningKey'>;

/** The signing key of an archive, then `previousSigningKey` if it is set. @throws WaybillError `sink_blocked` */
export function signingKeysOf({ signingKey, previousSigningKey }: Keys, id: string): readonly [KeyObject, ...KeyObject[]] {
  const key = signingKeyOf(signingKey, `sinks.${id}.signingKey`);
  return previousSigningKey ? [key, signingKeyOf(previousSigningKey, `sinks.${id}.previousSigningKey`)] : [key];
}

/** @throws WaybillError `sink_blocked` for anything but an Ed25519 private key */
function signingKeyOf(signingKey: Secret, setting: string): KeyObject {
  const text = signingKey.read();
  const refused = (reason: string, cause?: unknown): WaybillError =>
    new WaybillError('sink_blocked', `cannot use ${setting}: ${reason}; create one with "openssl genpkey -algorithm ed25519"`, {
      cause,
    });
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch (cause) {
    throw refused(`it is not a private key in PEM (${messageOf(cause)})`, cause);
  }
  if (key.asymmetricKeyType !== 'ed25519') throw refused(`its type is ${key.asymmetricKeyType ?? 'unknown'}, not Ed25519`);
  return key;
}
