/**
 * Headers and frames of the sink `syslog` parsed again: RFC 5424, RFC 3164, octet counting and
 * newlines, in six time zones.
 */
import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { facilities, type Facility, frame, Header, type HeaderSettings } from '../../../src/sink/syslog/message.ts';
import { readFrames, readSyslog } from '../../support/sinks/syslog-reader.ts';
import { sized } from '../../support/long-run.ts';
import { inTimeZone, timeZones } from '../../support/time-zones.ts';
import { hostileText } from '../../support/encode/hostile-records.ts';

const seed = Number(process.env['SEED'] ?? 20261123);
const runs = Number(process.env['RECORDS'] ?? sized(1_000, 30_000));

interface OldMessage {
  readonly priority: number;
  readonly date: string;
  readonly hostname: string;
  readonly tag: string | undefined;
  readonly text: string;
}

/** Parses one message by RFC 3164 section 4.1. @throws Error if it does not follow the grammar */
function readRfc3164(text: string): OldMessage {
  const [, priority, date = '', hostname = '', tag, rest = ''] =
    /^<(\d{1,3})>([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (\S+) (?:([\w.-]{1,32})(?:\[\d+\])?: )?([^]*)$/.exec(text) ?? [];
  if (priority === undefined) throw new Error(`no header of RFC 3164: ${text.slice(0, 200)}`);
  return { priority: Number(priority), date, hostname, tag, text: rest };
}

describe('the parsers of the tests', () => {
  // RFC 5424 section 6.5, RFC 3164 section 5.4.
  test('read the examples of RFC 5424', () => {
    const mark = '\ufeff';
    const read = [
      `<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - ${mark}'su root' failed for lonvick on /dev/pts/8`,
      "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
      `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] ${mark}An application event log entry...`,
      '<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3"][examplePriority@32473 class="high"]',
    ].map((text) => readSyslog(Buffer.from(text)));
    expect(read.map(({ priority, appName, procId, msgId }) => [priority, appName, procId, msgId])).toEqual([
      [34, 'su', '-', 'ID47'],
      [165, 'myproc', '8710', '-'],
      [165, 'evntslog', '-', 'ID47'],
      [165, 'evntslog', '-', 'ID47'],
    ]);
    expect(read[2]?.data.get('exampleSDID@32473')?.get('eventID')).toBe('1011');
    expect(read[3]?.data.get('examplePriority@32473')?.get('class')).toBe('high');
    expect(read[3]?.text).toBe('');
  });

  test('read the examples of RFC 3164', () => {
    expect(readRfc3164("<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8")).toEqual({
      priority: 34,
      date: 'Oct 11 22:14:15',
      hostname: 'mymachine',
      tag: 'su',
      text: "'su root' failed for lonvick on /dev/pts/8",
    });
    const untagged = readRfc3164('<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!');
    expect(untagged).toMatchObject({ priority: 13, date: 'Feb  5 17:32:18', tag: undefined, text: 'Use the BFG!' });
  });
});

/** Printable US-ASCII without spaces, truncated; `-` if nothing is left. */
const field = (text: string, max: number): string =>
  Array.from(text)
    .filter((character) => character > ' ' && character < '\u007f')
    .join('')
    .slice(0, max) || '-';

/**
 * Date and time in UTC by arithmetic alone (days to civil, Howard Hinnant's algorithm): no `Date`,
 * so no time zone.
 */
function civil(micros: number): { readonly month: number; readonly day: number; readonly iso: string } {
  const ms = Math.floor(micros / 1000);
  const z = Math.floor(ms / 86_400_000) + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor((dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365); // prettier-ignore
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const rest = ms - Math.floor(ms / 86_400_000) * 86_400_000;
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const clock = `${two(rest / 3_600_000)}:${two((rest / 60_000) % 60)}:${two((rest / 1000) % 60)}.${String(rest % 1000).padStart(3, '0')}`;
  return { month, day, iso: `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}T${clock}Z` };
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const message = fc.record({
  severity: fc.integer({ min: 0, max: 10 }),
  time: fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) * 1000 }),
  action: hostileText,
  uid: fc.stringMatching(/^[A-Za-z0-9_-]{22}$/),
  number: fc.option(fc.nat({ max: Number.MAX_SAFE_INTEGER }), { nil: undefined }),
  source: fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/),
});

/** Names and texts of the configuration; the case sets `format`. */
const header = fc.record({
  facility: fc.constantFrom(...(Object.keys(facilities) as Facility[])),
  hostname: hostileText,
  appName: hostileText,
  processId: fc.nat({ max: 4_194_304 }),
  enterpriseId: fc.option(fc.nat({ max: 2 ** 31 - 1 }), { nil: undefined }),
});

const levelOf = (severity: number): number => [6, 6, 6, 6, 5, 5, 5, 4, 4, 2, 2][severity] ?? NaN;

type ValueOf<Arbitrary> = Arbitrary extends fc.Arbitrary<infer Value> ? Value : never;

function readsBack5424(settings: Omit<HeaderSettings, 'format'>, sent: ValueOf<typeof message>, text: string): void {
  const read = readSyslog(Buffer.from(new Header({ ...settings, format: 'rfc5424' }).of(sent) + text));
  equal(read.priority, facilities[settings.facility] * 8 + levelOf(sent.severity));
  equal(read.timestamp, civil(sent.time).iso);
  deepEqual(
    [read.hostname, read.appName, read.procId, read.msgId, read.text],
    [field(settings.hostname, 255), field(settings.appName, 48), String(settings.processId), field(sent.action, 32), text],
  );
  const own = read.data.get(`waybill@${settings.enterpriseId}`);
  const { uid, number, source } = sent;
  const expected = new Map([['id', uid], ...(number === undefined ? [] : [['number', String(number)] as const]), ['source', source]]);
  deepEqual(own, settings.enterpriseId === undefined ? undefined : expected);
}

function readsBack3164(settings: Omit<HeaderSettings, 'format'>, sent: ValueOf<typeof message>, text: string): void {
  const line = new Header({ ...settings, format: 'rfc3164' }).of(sent) + text;
  const read = readRfc3164(line);
  const { month, day, iso } = civil(sent.time);
  equal(read.priority, facilities[settings.facility] * 8 + levelOf(sent.severity));
  equal(read.date, `${months[month - 1]} ${String(day).padStart(2)} ${iso.slice(11, 19)}`);
  equal(read.hostname, field(settings.hostname, 255));
  const tag = settings.appName.replaceAll(/[^A-Za-z0-9._-]/g, '').slice(0, 32);
  if (tag === '') equal(line.endsWith(` ${text}`), true);
  else deepEqual([read.tag, read.text], [tag, text]);
}

const line = hostileText.map((text) => text.toWellFormed().replaceAll(/[\r\n]/g, ' '));
const share = { seed, numRuns: Math.ceil(runs / timeZones.length / 2) };

test.each(timeZones)('in the time zone %s headers of RFC 5424 and RFC 3164 are parsed again', (zone) => {
  inTimeZone(zone, () => {
    fc.assert(fc.property(header, message, line, readsBack5424), share);
    fc.assert(fc.property(header, message, line, readsBack3164), share);
  });
});

test.each(['octet-counting', 'newline'] as const)('%s: frames received in pieces give the messages', (framing) => {
  const text = hostileText.map((each) => (framing === 'newline' ? each.replaceAll('\n', ' ') : each).toWellFormed());
  const settings = { facility: 'local4', hostname: 'h', appName: 'a', processId: 1, enterpriseId: 32473, format: 'rfc5424' } as const;
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 6 }),
      fc.array(message, { minLength: 6, maxLength: 6 }),
      fc.nat(),
      (texts, sent, cut) => {
        const writer = new Header(settings);
        const headers = texts.map((_, index) => writer.of(sent[index] ?? sent[0]!)); // eslint-disable-line @typescript-eslint/no-non-null-assertion
        const stream = Buffer.concat(texts.map((each, index) => frame(framing, headers[index] ?? '', Buffer.from(each))));
        const at = cut % (stream.length + 1);
        const first = readFrames(framing, stream.subarray(0, at));
        const second = readFrames(framing, Buffer.concat([first.rest, stream.subarray(at)]));
        const found = [...first.frames, ...second.frames].map((each) => readSyslog(each));
        equal(second.rest.length, 0);
        deepEqual(
          found.map((each) => each.text),
          texts,
        );
        deepEqual(
          found.map(({ data }) => data.get('meta')?.get('sequenceId')),
          texts.map((_, index) => String(index + 1)),
        );
      },
    ),
    { seed, numRuns: Math.ceil(runs / 10) },
  );
});
