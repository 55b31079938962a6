/**
 * Parses the output of a syslog sender by the grammars of RFC 5424 section 6 and RFC 6587 section
 * 3.4, and by librelp's `doc/relp.md`.
 */

export interface SyslogMessage {
  readonly priority: number;
  readonly timestamp: string;
  readonly hostname: string;
  readonly appName: string;
  readonly procId: string;
  readonly msgId: string;
  /** The parameters of each SD-ID, in order. */
  readonly data: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly text: string;
}

const printable = '[\\x21-\\x7e]';
const header = new RegExp(
  `^<(\\d{1,3})>1 (-|\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,6})?(?:Z|[+-]\\d\\d:\\d\\d)) (${printable}{1,255}) (${printable}{1,48}) (${printable}{1,128}) (${printable}{1,32}) `,
);
const name = '[^\\x00-\\x20="\\]\\x7f-\\uffff]{1,32}';
const element = new RegExp(`^\\[(${name})((?: ${name}="(?:[^"\\\\\\]]|\\\\.)*")*)\\]`);
const parameter = new RegExp(` (${name})="((?:[^"\\\\\\]]|\\\\.)*)"`, 'g');

/** Parses one message without its frame. @throws Error if it does not follow the grammar */
export function readSyslog(bytes: Uint8Array): SyslogMessage {
  const whole = Buffer.from(bytes).toString('utf8');
  const head = header.exec(whole);
  if (!head) throw new Error(`no header of RFC 5424: ${whole.slice(0, 200)}`);
  const [, priority, timestamp = '', hostname = '', appName = '', procId = '', msgId = ''] = head;
  if (Number(priority) > 191) throw new Error(`a priority of ${priority ?? ''}`);
  let rest = whole.slice(head[0].length);
  const data = new Map<string, ReadonlyMap<string, string>>();
  if (rest.startsWith('-')) rest = rest.slice(1);
  else
    for (let found = element.exec(rest); found; found = element.exec(rest)) {
      const [all, id = '', parameters = ''] = found;
      if (data.has(id)) throw new Error(`${id} stands twice`);
      data.set(
        id,
        new Map([...parameters.matchAll(parameter)].map(([, key = '', value = '']) => [key, value.replace(/\\(["\\\]])/g, '$1')])),
      );
      rest = rest.slice(all.length);
    }
  if (rest !== '' && !rest.startsWith(' ')) throw new Error(`no blank before the message: ${rest.slice(0, 100)}`);
  return { priority: Number(priority), timestamp, hostname, appName, procId, msgId, data, text: rest.slice(1) };
}

/** Splits complete frames off the received bytes. @returns them and the rest */
export function readFrames(framing: 'octet-counting' | 'newline', received: Buffer): { frames: Buffer[]; rest: Buffer } {
  const frames: Buffer[] = [];
  let rest = received;
  for (;;) {
    if (framing === 'newline') {
      const end = rest.indexOf(0x0a);
      if (end < 0) return { frames, rest };
      if (end > 0) frames.push(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      continue;
    }
    const blank = rest.indexOf(0x20);
    if (blank < 0 && /^\d*$/.test(rest.subarray(0, 10).toString('latin1'))) return { frames, rest };
    const digits = rest.subarray(0, blank).toString('latin1');
    if (!/^[1-9]\d{0,9}$/.test(digits)) throw new Error(`no length before a frame: ${rest.subarray(0, 60).toString('latin1')}`);
    const end = blank + 1 + Number(digits);
    if (rest.length < end) return { frames, rest };
    frames.push(rest.subarray(blank + 1, end));
    rest = rest.subarray(end);
  }
}

export interface RelpFrame {
  readonly number: number;
  readonly command: string;
  readonly data: Buffer;
}

/** The first complete frame of RELP and its length; undefined if more bytes must come. */
export function readRelp(received: Buffer): { frame: RelpFrame; length: number } | undefined {
  let at = 0;
  const word = (ends: string): string | undefined => {
    for (let i = at; i < received.length; i += 1) {
      if (!ends.includes(String.fromCharCode(received[i] ?? 0))) continue;
      const text = received.subarray(at, i).toString('latin1');
      at = i;
      return text;
    }
    return undefined;
  };
  const number = word(' ');
  at += 1;
  const command = word(' ');
  at += 1;
  const size = word(' \n');
  if (number === undefined || command === undefined || size === undefined) return undefined;
  if (!/^\d{1,9}$/.test(number) || !/^[a-z]{1,32}$/.test(command) || !/^\d{1,9}$/.test(size))
    throw new Error(`no frame of RELP: ${received.subarray(0, 60).toString('latin1')}`);
  const length = Number(size);
  if (length > 0) {
    if (received[at] !== 0x20) throw new Error('no blank before the data');
    at += 1;
  }
  if (received.length < at + length + 1) return undefined;
  const data = received.subarray(at, at + length);
  if (received[at + length] !== 0x0a)
    throw new Error(
      `no line feed behind ${length} bytes of data: ${received
        .subarray(0, at + length + 20)
        .toString('latin1')
        .slice(0, 200)}`,
    );
  return { frame: { number: Number(number), command, data }, length: at + length + 1 };
}
