/** The header (RFC 5424 section 6, or RFC 3164 section 4) and frame (RFC 6587) of a message (docs/formats.md, "Syslog"). */
import type { Message } from '../../model/sink.ts';

/** Numerical codes of RFC 5424 section 6.2.1, by the names of syslog.conf. */
export const facilities = {
  kern: 0,
  user: 1,
  mail: 2,
  daemon: 3,
  auth: 4,
  syslog: 5,
  lpr: 6,
  news: 7,
  uucp: 8,
  cron: 9,
  authpriv: 10,
  ftp: 11,
  local0: 16,
  local1: 17,
  local2: 18,
  local3: 19,
  local4: 20,
  local5: 21,
  local6: 22,
  local7: 23,
} as const;

export type Facility = keyof typeof facilities;

/** `rfc3164-iso`: that of RFC 3164 with a time of RFC 3339, as rsyslog forwards messages (RSYSLOG_ForwardFormat). */
type HeaderFormat = 'rfc5424' | 'rfc3164' | 'rfc3164-iso';

export interface HeaderSettings {
  readonly format: HeaderFormat;
  readonly facility: Facility;
  readonly hostname: string;
  readonly appName: string;
  readonly processId: number;
  readonly enterpriseId: number | undefined;
}

/** Maximum `sequenceId`; the next one is 1 (RFC 5424 section 7.3.1). */
const maxSequence = 2_147_483_647;

/** Maximum bytes of a header; the rest of a frame is for the message. */
export function headerBytes(settings: HeaderSettings): number {
  const message = {
    severity: 0,
    time: 0,
    action: 'x'.repeat(32),
    uid: 'x'.repeat(22),
    number: Number.MAX_SAFE_INTEGER,
    source: 'x'.repeat(32),
  };
  return Buffer.byteLength(new Header(settings, maxSequence - 1).of(message));
}

/** Writes headers and counts them for `sequenceId`. */
export class Header {
  readonly #settings: HeaderSettings;
  readonly #fixed: string;
  #sequence: number;
  /** The second of the last message: most messages share it with the one before. */
  #second = NaN;
  /** `YYYY-MM-DDTHH:MM:SS.`; undefined for a year that RFC 5424 does not allow. */
  #secondText: string | undefined;

  constructor(settings: HeaderSettings, sequence = 0) {
    const { format, hostname, appName, processId } = settings;
    this.#settings = settings;
    this.#fixed =
      format === 'rfc5424'
        ? `${field(hostname, 255)} ${field(appName, 48)} ${field(String(processId), 128)}`
        : `${field(hostname, 255)} ${tag(appName, processId)}`;
    this.#sequence = sequence;
  }

  /** The header of the next message with its trailing blank; ASCII. */
  of({ severity, time, action, uid, number, source }: Pick<Message, 'severity' | 'time' | 'action' | 'uid' | 'number' | 'source'>): string {
    const { format, facility, enterpriseId } = this.#settings;
    const priority = facilities[facility] * 8 + severityOf(severity);
    if (format !== 'rfc5424') return `<${priority}>${format === 'rfc3164' ? dateOf(time) : this.#timestamp(time)} ${this.#fixed}`;
    this.#sequence = this.#sequence >= maxSequence ? 1 : this.#sequence + 1;
    const own =
      enterpriseId === undefined
        ? ''
        : `[waybill@${enterpriseId} id="${uid}"${number === undefined ? '' : ` number="${number}"`} source="${source}"]`;
    return `<${priority}>1 ${this.#timestamp(time)} ${this.#fixed} ${field(action, 32)} [meta sequenceId="${this.#sequence}"]${own} `;
  }

  /** Three fraction digits: more than six are an error (RFC 5424 section 6.2.3), and some receivers read only three. */
  #timestamp(micros: number): string {
    const ms = Math.floor(micros / 1_000);
    const second = Math.floor(ms / 1_000);
    if (second !== this.#second) {
      const text = new Date(ms).toISOString();
      this.#second = second;
      // RFC 5424 allows only years of four digits.
      this.#secondText = text.length === 24 ? text.slice(0, 20) : undefined;
    }
    return this.#secondText === undefined ? '-' : `${this.#secondText}${String(ms - second * 1_000).padStart(3, '0')}Z`;
  }
}

type Framing = 'octet-counting' | 'newline' | 'datagram';

/** One frame: RFC 6587 section 3.4.1 or 3.4.2, or the bytes of a datagram. */
export function frame(framing: Framing, header: string, message: Uint8Array): Uint8Array {
  const length = header.length + message.length;
  if (framing === 'octet-counting') return Buffer.concat([Buffer.from(`${length} ${header}`, 'latin1'), message]);
  return Buffer.concat([Buffer.from(header, 'latin1'), message, ...(framing === 'newline' ? [lineBreak] : [])]);
}

const lineBreak = Buffer.from('\n');

/** 0-10 as in the outcome table: informational, notice, warning, critical (RFC 5424 table 2). */
function severityOf(severity: number): number {
  return severity <= 3 ? 6 : severity <= 6 ? 5 : severity <= 8 ? 4 : 2;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `Mmm dd hh:mm:ss` in UTC: RFC 3164 section 4.1.2 has no year, no fraction and no zone. */
function dateOf(micros: number): string {
  const date = new Date(Math.floor(micros / 1_000));
  return `${months[date.getUTCMonth()] ?? ''} ${String(date.getUTCDate()).padStart(2)} ${date.toISOString().slice(-13, -5)}`;
}

/** `program[process]: `; RFC 3164 section 4.1.3 permits letters and digits, receivers also `._-`. Nothing without a program. */
function tag(appName: string, processId: number): string {
  const program = appName.replaceAll(/[^A-Za-z0-9._-]/g, '').slice(0, 32);
  return program === '' ? '' : `${program}[${processId}]: `;
}

const visible = /^[\x21-\x7e]+$/;

/** A field of the header: printable US-ASCII without blanks, `-` when nothing is left. */
function field(text: string, max: number): string {
  if (text.length <= max && visible.test(text)) return text;
  const clean = text.replace(/[^\x21-\x7e]/g, '').slice(0, max);
  return clean === '' ? '-' : clean;
}
