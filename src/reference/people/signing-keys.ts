/**
 * The signing keys of the identity provider, one for each rotation. The data file stores them, so
 * that earlier tokens stay valid after a restart. The id of a key is derived from the key, so it is
 * unique.
 */
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose';
import type { DataFile } from '../data-file.ts';

export const algorithm = 'RS256';

export interface SigningKey {
  readonly rotation: number;
  /** The thumbprint of RFC 7638. */
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
  /** The public key as the key set shows it. */
  readonly jwk: JWK;
}

export class SigningKeys {
  readonly #data: DataFile;
  readonly #keys = new Map<number, Promise<SigningKey>>();

  constructor(data: DataFile) {
    this.#data = data;
    data.exec('CREATE TABLE IF NOT EXISTS signing_keys (rotation INTEGER PRIMARY KEY, jwk TEXT NOT NULL) STRICT');
  }

  /** The key of this rotation, created at its first use. */
  of(rotation: number): Promise<SigningKey> {
    let key = this.#keys.get(rotation);
    if (!key) this.#keys.set(rotation, (key = this.#load(rotation)));
    return key;
  }

  async #load(rotation: number): Promise<SigningKey> {
    const stored = this.#data.prepared('SELECT jwk FROM signing_keys WHERE rotation = ?').pluck().get(rotation) as string | undefined;
    const secret = stored === undefined ? await this.#create(rotation) : (JSON.parse(stored) as JWK);
    const { kty = '', n = '', e = '' } = secret;
    const open = { kty, n, e };
    const kid = await calculateJwkThumbprint(open, 'sha256');
    return {
      rotation,
      kid,
      privateKey: (await importJWK(secret, algorithm)) as CryptoKey,
      publicKey: (await importJWK(open, algorithm)) as CryptoKey,
      jwk: { ...open, kid, alg: algorithm, use: 'sig' },
    };
  }

  async #create(rotation: number): Promise<JWK> {
    const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
    const secret = await exportJWK(privateKey);
    this.#data.prepared('INSERT INTO signing_keys VALUES (?, ?)').run(rotation, JSON.stringify(secret));
    return secret;
  }
}
