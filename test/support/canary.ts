/**
 * The secrets that the canary test configures, and the search for them, independent of the code
 * that redacts them.
 */
import { encodings } from './encodings.ts';

/** One secret for each setting that holds one, made of the characters that its protocol allows. */
export const canaries = {
  clientSecret: 'Kq8Q~vRt4mZp2Wx9.~Lc7y_3uNbHd~Gf',
  subscriptionKey: '5f0e9a7c41d84b3e9c62a1d07b8f3e64',
  userPassword: 'Vt6 wJ"9z\\Qe/2p<R&h>;\'+ä%41=Yx5nB3',
  accessToken: `eyJhbGciOiJSUzI1NiJ9.${'Zm9vYmFy4kT8_q-'.repeat(20)}.Xw3sig7NATure-92_Qb`,
  proxyPassword: 'Pr0xy~4Hn7!t*Ws(2k)$Mv8',
  apiKey: 'VuaCfGcBCdbkQm-e5aOx:ui2lp2axTNmsyakw9tvNnw',
  elasticPassword: 'El4s"t1c&Pa55/w0rd<k9>Zz',
  hecToken: 'C7D1F0A2-93BE-4E5C-8A67-0B41D29E6F38',
  saslPassword: 'S4sl+Jd83/hG=fQ%7Bw2;Lm6',
  kafkaClientSecret: 'Kc5:Wd8?Rb#Nn1@Tt4 Vv7&Yy2',
  adminToken: 'adm-Xf29Lk04Qp83Zr61Ht57',
  readToken: 'rdt-Bg38Mn61Sv90Cw24Jy75',
  privacyKey: 'pvK-7Yd5Tq2Rk9Ua4Xz8Lb1We6',
  passphrase: 'Ph4se~Um6,Rt.Kd-9Bv_Qx3',
  databasePassword: 'Db9:Zw4&Pl7=Hs2?Mq5 Jt8%Ny3',
} as const;

/** The length of the fragments that the search looks for. */
const part = 12;

/** Finds fragments of a secret in an output, whatever escapes the output uses. */
export class Search {
  readonly #parts = new Map<string, string>();
  /** 1 at the hash of each fragment. For most positions of a text this table shows at once that no fragment is there. */
  readonly #hashes = new Uint8Array(2 ** 20);

  constructor() {
    for (const [setting, secret] of Object.entries(canaries)) {
      for (const { name, encode } of encodings) {
        const encoded = plain(encode(secret));
        // Every fragment counts, also from the middle of the secret.
        for (let at = 0; at + part <= encoded.length; at += 1) this.#parts.set(encoded.slice(at, at + part), `${setting}, ${name}`);
      }
    }
    // Ignores fragments that reveal nothing: they occur in every JSON Web Token, or come from a user name or padding alone.
    for (const common of ['eyJhbGciOiJSUzI1NiJ9', 'user:', '****', '...'])
      for (const key of [...this.#parts.keys()]) if (common.includes(key)) this.#parts.delete(key);
    for (const key of this.#parts.keys()) this.#hashes[hashAt(key, 0)] = 1;
  }

  get size(): number {
    return this.#parts.size;
  }

  /** The secrets found, each with its encoding and the surrounding text. */
  in(output: string): readonly string[] {
    const found = new Set<string>();
    for (const text of new Set([
      plain(output),
      plain(output.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))),
    ])) {
      for (let at = 0; at + part <= text.length; at += 1) {
        if (this.#hashes[hashAt(text, at)] === 0) continue;
        const hit = this.#parts.get(text.slice(at, at + part));
        if (hit !== undefined) found.add(`${hit}: …${text.slice(Math.max(0, at - 60), at + 60)}…`);
        if (found.size > 5) return [...found];
      }
    }
    return [...found];
  }
}

/** The hash of the fragment that starts at `at`, from five of its characters. @returns an integer below 2^20 */
function hashAt(text: string, at: number): number {
  let hash = 0;
  for (let i = 0; i < part; i += 3) hash = (Math.imul(hash, 31) + text.charCodeAt(at + i)) | 0;
  return (Math.imul(hash, 31) + text.charCodeAt(at + part - 1)) & 0xfffff;
}

/** Removes backslashes of JSON and the escapes of quotation marks. */
function plain(text: string): string {
  return text.replaceAll('\\', '').toLowerCase();
}
