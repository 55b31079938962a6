/**
 * One session of RELP, the reliable event logging protocol (rsyslog/librelp `doc/relp.md`): each message has a number, and the receiver answers
 * each number when it has the message. A frame is `TXNR SP COMMAND SP DATALEN [SP DATA] LF`; DATALEN counts bytes.
 */
import type { Socket } from 'node:net';
import { quote } from '../../quote.ts';
import { WaybillError } from '../../errors.ts';
import { version } from '../../version.ts';

/** Numbers follow one another up to here, and then begin with 1 again; 0 is for what the receiver says by itself. */
const maxNumber = 999_999_999;
/** Messages that may wait for their answers: one at a time would cost a delayed acknowledgement of TCP, 40 ms, each. */
const maxWindow = 128;
/** The header of an answer, and what it may say, is short. */
const maxAnswerBytes = 128 * 1024;

const lineFeed = 0x0a;

/** The response of the receiver to one message: code 200 means accepted. */
interface Answer {
  readonly code: number;
  readonly message: string;
}

/** A break of the session, or of the protocol: what was not answered is unknown. */
const broken = (message: string, cause?: unknown): WaybillError => new WaybillError('sink_outcome_unknown', message, { cause });

export class RelpSession {
  readonly #socket: Socket;
  readonly #name: string;
  readonly #waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (cause: unknown) => void }>();
  #number: number;
  #rest: Buffer = Buffer.alloc(0);
  #failure: WaybillError | undefined;
  #room: (() => void) | undefined;

  /** @param name  what it is, for messages: `"relp://siem:2514" of sink "siem"`; `first` is the number of the first command */
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

  /**
   * Says who we are and what we will send; nothing else is sent before the answer.
   * @throws WaybillError `sink_blocked` when the receiver offers no `syslog`
   */
  async open(): Promise<void> {
    const offers = `relp_version=0\nrelp_software=waybill,${version},https://github.com/waybill/waybill\ncommands=syslog`;
    const { code, message } = await this.#command('open', Buffer.from(offers));
    if (code === 200 && /^relp_version=0\r?$/m.test(message) && /^commands=(?:[^\n]*,)?syslog(?:,|\r?$)/m.test(message)) return;
    throw new WaybillError(
      'sink_blocked',
      `cannot speak RELP with ${this.#name}: its answer to "open" was ${code} ${quote(firstLine(message), 200)}`,
    );
  }

  /**
   * Sends all of them, 128 unanswered at most; resolves with the answers in the order of the messages.
   * @param onProgress  told with each answer how many messages, from the first on without a break, are taken
   */
  async send(messages: readonly Uint8Array[], onProgress: (certain: number) => void = () => undefined): Promise<Answer[]> {
    const answers: Promise<Answer>[] = [];
    const delivered = new Set<number>();
    let certain = 0;
    const heard = (i: number, { code }: Answer): void => {
      if (code === 200) delivered.add(i);
      // mutant: certain-messages
      while (delivered.delete(certain)) certain += 1;
      onProgress(certain);
    };
    for (const [i, message] of messages.entries()) {
      while (this.#waiting.size >= maxWindow) await new Promise<void>((resolve) => (this.#room = resolve));
      const answer = this.#command('syslog', message);
      // Each is awaited below; until then nobody must miss a handler.
      answer.then((said) => heard(i, said)).catch(() => undefined);
      answers.push(answer);
      if (this.#failure) break;
    }
    return Promise.all(answers);
  }

  /** Ends the session in order; the receiver answers when it is done. */
  async close(): Promise<void> {
    await this.#command('close', new Uint8Array());
  }

  #command(name: 'open' | 'syslog' | 'close', data: Uint8Array): Promise<Answer> {
    if (this.#failure) return Promise.reject(this.#failure);
    const number = this.#number;
    this.#number = number === maxNumber ? 1 : number + 1;
    const head = `${number} ${name} ${data.length}${data.length > 0 ? ' ' : ''}`;
    this.#socket.write(Buffer.concat([Buffer.from(head, 'latin1'), data, Buffer.of(lineFeed)]));
    return new Promise((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
  }

  #take(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    try {
      for (let frame = this.#next(); frame; frame = this.#next()) this.#answered(frame.number, frame.command, frame.data);
    } catch (thrown) {
      this.#fail(thrown as WaybillError);
    }
  }

  /** The next whole frame of what was received. */
  #next(): { number: number; command: string; data: Buffer } | undefined {
    const head = /^(\d{1,9}) ([A-Za-z]{1,32}) (\d{1,9})([ \n])/.exec(this.#rest.subarray(0, 64).toString('latin1'));
    if (!head) {
      if (this.#rest.length < 64 && !this.#rest.includes(lineFeed)) return undefined;
      throw broken(`${this.#name} does not speak RELP`);
    }
    const [text, number, command = '', size, end] = head;
    const length = Number(size);
    if (length > maxAnswerBytes) throw broken(`${this.#name} answers with ${length} bytes`);
    // Some receivers write a blank behind a length of 0, some do not.
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
    // The answer to `close` is empty.
    const said = data.length === 0 ? ['', '0', ''] : /^(\d{3})(?: |\n|$)([^]*)$/.exec(data.toString('utf8'));
    if (command !== 'rsp' || !waiting || !said) throw broken(`${this.#name} does not speak RELP: "${command}" for ${number}`);
    this.#waiting.delete(number);
    waiting.resolve({ code: Number(said[1]), message: said[2] ?? '' });
    this.#room?.();
  }

  #fail(cause: WaybillError): void {
    if (this.#failure) return;
    this.#failure = cause;
    this.#socket.destroy();
    for (const { reject } of this.#waiting.values()) reject(cause);
    this.#waiting.clear();
    this.#room?.();
  }
}

export function firstLine(message: string): string {
  return message.split('\n')[0]?.trim() ?? '';
}
