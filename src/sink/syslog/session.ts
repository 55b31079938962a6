/**
 * A session of RELP (rsyslog/librelp `doc/relp.md`). Each message has a number, and the receiver acknowledges each number. A frame is `TXNR
 * SP COMMAND SP DATALEN [SP DATA] LF`; DATALEN counts bytes.
 */
import type { Socket } from 'node:net';
import { quote } from '../../errors/quote.ts';
import { WaybillError } from '../../errors/errors.ts';
import { version } from '../../disk/version.ts';

/** The last transaction number; the next one is 1. The receiver uses 0 for unsolicited commands. */
const maxNumber = 999_999_999;
/** Maximum unanswered messages. With a maximum of one, each message would wait for a delayed acknowledgement of TCP: 40 ms. */
const maxWindow = 128;
/** Maximum bytes of a response: its header and text are short. */
const maxAnswerBytes = 128 * 1024;

const lineFeed = 0x0a;

/** The response of the receiver to one message: code 200 means accepted. */
interface Answer {
  readonly code: number;
  readonly message: string;
}

interface Data {
  /** ASCII; precedes the bytes. */
  readonly header: string;
  readonly bytes: Uint8Array;
}

interface Waiting {
  readonly answered: (answer: Answer) => void;
  readonly failed: (cause: unknown) => void;
}

/** The session ended, or the receiver violated the protocol: the outcome of unanswered messages is unknown. */
const broken = (message: string, cause?: unknown): WaybillError => new WaybillError('sink_outcome_unknown', message, { cause });

export class RelpSession {
  readonly #socket: Socket;
  readonly #name: string;
  readonly #waiting = new Map<number, Waiting>();
  #number: number;
  #rest: Buffer = Buffer.alloc(0);
  #failure: WaybillError | undefined;
  #room: (() => void) | undefined;

  /** @param name  the receiver, for messages: `"relp://siem:2514" of sink "siem"` @param first  the number of the first command */
  constructor(socket: Socket, name: string, first = 1) {
    this.#socket = socket;
    this.#name = name;
    this.#number = first;
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', (cause) => this.#fail(broken(`connection to ${name} ended`, cause)));
    socket.on('close', () => this.#fail(broken(`connection to ${name} ended before every message was answered`)));
    socket.on('end', () => this.#fail(broken(`${name} closed the connection`)));
  }

  get isOver(): boolean {
    return this.#failure !== undefined;
  }

  /** Waits for the response before anything else is sent. @throws WaybillError `sink_blocked` when the receiver offers no `syslog` */
  async open(): Promise<void> {
    const offers = `relp_version=0\nrelp_software=waybill,${version},https://github.com/waybill/waybill\ncommands=syslog`;
    const { code, message } = await this.#command('open', offers);
    if (code === 200 && /^relp_version=0\r?$/m.test(message) && /^commands=(?:[^\n]*,)?syslog(?:,|\r?$)/m.test(message)) return;
    throw new WaybillError(
      'sink_blocked',
      `cannot speak RELP with ${this.#name}: its answer to "open" was ${code} ${quote(firstLine(message), 200)}`,
    );
  }

  /**
   * Sends all messages, at most `maxWindow` unanswered. Resolves with the responses in the order of the messages.
   * @param onProgress  called for each response with the number of messages before the first message that is not yet accepted
   */
  async send(messages: readonly Data[], onProgress: (certain: number) => void = () => undefined): Promise<Answer[]> {
    const answers: Answer[] = [];
    const delivered = new Set<number>();
    let certain = 0;
    let missing = messages.length;
    const all = Promise.withResolvers<undefined>();
    // The promise is awaited below. Until then, an unhandled rejection would end the process.
    all.promise.catch(() => undefined);
    const answered = (i: number, answer: Answer): void => {
      answers[i] = answer;
      if (answer.code === 200) delivered.add(i);
      // mutant: certain-messages
      while (delivered.delete(certain)) certain += 1;
      onProgress(certain);
      missing -= 1;
      if (missing === 0) all.resolve(undefined);
    };
    // One system call for all messages that fit into the window, not one for each.
    this.#socket.cork();
    for (const [i, message] of messages.entries()) {
      while (this.#waiting.size >= maxWindow) {
        this.#socket.uncork();
        await new Promise<void>((resolve) => (this.#room = resolve));
        this.#socket.cork();
      }
      this.#write('syslog', message, { answered: (answer) => answered(i, answer), failed: all.reject });
      if (this.#failure) break;
    }
    this.#socket.uncork();
    if (missing > 0) await all.promise;
    return answers;
  }

  /** Closes the session; the receiver responds when it has closed its side. */
  async close(): Promise<void> {
    await this.#command('close', '');
  }

  #command(name: 'open' | 'close', header: string): Promise<Answer> {
    return new Promise((resolve, reject) => this.#write(name, { header, bytes: new Uint8Array() }, { answered: resolve, failed: reject }));
  }

  #write(name: 'open' | 'syslog' | 'close', { header, bytes }: Data, waiting: Waiting): void {
    if (this.#failure) {
      waiting.failed(this.#failure);
      return;
    }
    const number = this.#number;
    this.#number = number === maxNumber ? 1 : number + 1;
    const length = header.length + bytes.length;
    const head = `${number} ${name} ${length}${length > 0 ? ' ' : ''}${header}`;
    const frame = Buffer.allocUnsafe(head.length + bytes.length + 1);
    frame.write(head, 'latin1');
    frame.set(bytes, head.length);
    frame[frame.length - 1] = lineFeed;
    this.#waiting.set(number, waiting);
    this.#socket.write(frame);
  }

  #take(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    try {
      for (let frame = this.#next(); frame; frame = this.#next()) this.#answered(frame.number, frame.command, frame.data);
    } catch (thrown) {
      this.#fail(thrown as WaybillError);
    }
  }

  /** The next complete frame among the received bytes. */
  #next(): { number: number; command: string; data: Buffer } | undefined {
    const head = /^(\d{1,9}) ([A-Za-z]{1,32}) (\d{1,9})([ \n])/.exec(this.#rest.subarray(0, 64).toString('latin1'));
    if (!head) {
      if (this.#rest.length < 64 && !this.#rest.includes(lineFeed)) return undefined;
      throw broken(`${this.#name} does not speak RELP`);
    }
    const [text, number, command = '', size, end] = head;
    const length = Number(size);
    if (length > maxAnswerBytes) throw broken(`${this.#name} answers with ${length} bytes`);
    // After a length of 0, some receivers write a blank, others do not.
    const from = end === '\n' ? text.length - 1 : text.length;
    if (this.#rest.length < from + length + 1) return undefined;
    if (this.#rest[from + length] !== lineFeed) throw broken(`${this.#name} does not speak RELP`);
    const data = this.#rest.subarray(from, from + length);
    this.#rest = this.#rest.subarray(from + length + 1);
    return { number: Number(number), command, data };
  }

  #answered(number: number, command: string, data: Buffer): void {
    if (number === 0 && command === 'serverclose') throw broken(`${this.#name} closes the session`);
    if (number === 0) return;
    const waiting = /* mutant: relp-number */ this.#waiting.get(number);
    // The response to `close` is empty.
    const response = data.length === 0 ? ['', '0', ''] : /^(\d{3})(?: |\n|$)([^]*)$/.exec(data.toString('utf8'));
    if (command !== 'rsp' || !waiting || !response)
      throw broken(`${this.#name} does not speak RELP: it answered request ${number} with "${command}"`);
    this.#waiting.delete(number);
    waiting.answered({ code: Number(response[1]), message: response[2] ?? '' });
    this.#room?.();
  }

  #fail(cause: WaybillError): void {
    if (this.#failure) return;
    this.#failure = cause;
    this.#socket.destroy();
    for (const { failed } of this.#waiting.values()) failed(cause);
    this.#waiting.clear();
    this.#room?.();
  }
}

export function firstLine(message: string): string {
  return message.split('\n')[0]?.trim() ?? '';
}
