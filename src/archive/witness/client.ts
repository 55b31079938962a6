/** Asks a witness for its cosignature of a checkpoint (C2SP tlog-witness, add-checkpoint). A response is checked before it is returned. */
import { Connection } from '../../connect/connection.ts';
import { post } from '../../connect/post.ts';
import type { ProxySettings } from '../../connect/proxy.ts';
import type { Pem, Shown, TlsSettings } from '../../connect/trust.ts';
import { messageOf, WaybillError } from '../../errors/errors.ts';
import { quote } from '../../errors/quote.ts';
import type { Micros } from '../../model/time.ts';
import { openNote, type Verifier } from '../signed-note.ts';

interface WitnessSettings {
  /** Of which `/add-checkpoint` is a part. */
  readonly url: string;
  readonly key: Verifier;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: ProxySettings | undefined;
}

interface WitnessContext {
  /** `sinks.archive.witnesses[0]` */
  readonly setting: string;
  readonly sharedCa?: Pem | undefined;
  readonly shown?: Shown | undefined;
  /** Time limit of one request, ms. */
  readonly requestMs?: number;
}

export interface Cosigned {
  /** The checkpoint with its signatures, and after them the cosignature. */
  readonly bytes: Buffer;
  readonly time: Micros;
}

/** The lines of this many bytes are enough for 20 signatures of ML-DSA-44. */
const maxReplyBytes = 65_536;
const meanings: Readonly<Record<number, string>> = {
  403: 'it does not know the public key of this archive, which "waybill check" prints',
  404: 'it does not know this archive: it needs the public key that "waybill check" prints',
  422: 'this checkpoint does not extend the one that it cosigned before',
};

export class WitnessClient implements AsyncDisposable {
  readonly key: Verifier;
  readonly #url: string;
  readonly #connection: Connection;
  readonly #requestMs: number;

  constructor({ url, key, tls, proxy }: WitnessSettings, { setting, sharedCa, shown, requestMs = 30_000 }: WitnessContext) {
    this.key = key;
    this.#url = `${url}/add-checkpoint`;
    this.#requestMs = requestMs;
    this.#connection = new Connection({ setting, url, tls, proxy, sharedCa, shown, urlSetting: `${setting}.url`, timeoutMs: requestMs });
  }

  /**
   * @param note  the checkpoint with its signatures
   * @param old  the number of lines that the witness cosigned last; 0 with an empty proof if it is unknown
   * @param proof  that the checkpoint extends it
   * @returns the cosigned checkpoint; the number of lines that the witness cosigned last if it is not `old`
   * @throws WaybillError `sink_unavailable`; or the reason of the signal
   */
  async cosign(note: Buffer, old: number, proof: readonly Uint8Array[], signal: AbortSignal): Promise<Cosigned | number> {
    const lines = [`old ${old}`, ...proof.map((hash) => Buffer.from(hash).toString('base64'))];
    const body = Buffer.concat([Buffer.from(`${lines.join('\n')}\n\n`), note]);
    const headers = { 'content-type': 'text/plain; charset=utf-8' };
    const request = { url: this.#url, headers, body, maxBytes: maxReplyBytes, requestMs: this.#requestMs };
    try {
      const { status, type, bytes } = await post(this.#connection, request, signal);
      const text = bytes.toString('utf8');
      if (status === 200) return this.#cosignatureIn(text, note);
      const size = status === 409 && type.startsWith('text/x.tlog.size') ? /^(0|[1-9]\d{0,14})\n$/.exec(text)?.[1] : undefined;
      if (size !== undefined) return Number(size);
      const meaning = meanings[status];
      throw new Error(`the response has status ${status}${meaning === undefined ? '' : ` (${meaning})`}: "${quote(text.trim(), 200)}"`);
    } catch (cause) {
      signal.throwIfAborted();
      throw new WaybillError('sink_unavailable', `cannot get a cosignature from "${this.#url}": ${messageOf(cause)}`, { cause });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection[Symbol.asyncDispose]();
  }

  /** Lines of other keys are ignored: the witness may have several. */
  #cosignatureIn(text: string, note: Buffer): Cosigned {
    for (const line of text.split('\n')) {
      const bytes = Buffer.concat([note, Buffer.from(`${line}\n`)]);
      const opened = openNote(bytes, [this.key]);
      const [cosignature] = typeof opened === 'object' ? opened.cosignedBy : [];
      if (cosignature) return { bytes, time: cosignature.time };
    }
    throw new Error(`the response has no valid cosignature by "${this.key.name}"`);
  }
}
