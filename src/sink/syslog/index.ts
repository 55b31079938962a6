/**
 * Syslog, RFC 5424 or RFC 3164, over UDP, TCP, TLS or RELP. Only RELP has acknowledgements. With `confirm: close`, each batch has a
 * connection, and is delivered when the receiver ended it soon after Waybill: a successful write does not show that it has read anything.
 */
import { messageOf } from '../../errors/errors.ts';
import { defineSink, error, ok, warning, type Finding, type Guarantee, type SinkContext } from '../define.ts';
import { DatagramSink } from './datagram.ts';
import { headerBytes } from './message.ts';
import { RelpSink } from './relp.ts';
import { frameBytes, headerOf, partsOf, syslogSettings, type SyslogSettings } from './settings.ts';
import { checkStream, StreamSink } from './stream.ts';

const guarantees: readonly Guarantee<SyslogSettings>[] = [
  {
    settings: '`relp://`, `relp+tls://`',
    applies: ({ address }) => partsOf(address).scheme.startsWith('relp'),
    delivery: 'at least once',
    duplicates: 'one batch per reconnect',
    losses: '0 up to the receiver; its queue must be on disk',
  },
  {
    settings: '`udp://`',
    applies: ({ address }) => partsOf(address).scheme === 'udp',
    delivery: 'at most once',
    duplicates: 'one batch after a crash',
    losses: 'unknown: UDP has no acknowledgement',
  },
  {
    settings: '`tcp://`, `tls://`, `confirm: close`',
    applies: ({ confirm }) => confirm === 'close',
    delivery: 'at least once',
    duplicates: 'one batch (a connection)',
    // Measured by test/servers/syslog-proxies.test.ts; docs/guarantees.md, "Syslog".
    losses:
      '0 if the receiver reads to the end; through a proxy, a race remains: 0 of 23,970 records, while the receiver behind it died 24 times',
  },
  {
    settings: '`tcp://`, `tls://`, `confirm: none`',
    applies: ({ confirm }) => confirm === 'none',
    delivery: 'best effort',
    duplicates: 'one batch',
    losses: 'what is in buffers and on the wire: 240 KB to 4 MB per broken connection',
  },
];

export const syslog = defineSink('syslog', {
  summary: 'a syslog receiver, by UDP, TCP, TLS or RELP',
  config: syslogSettings,
  formats: 'any',
  defaultFormat: 'cef',
  batch: { records: 5_000, bytes: 8 * 1024 * 1024, wait: 5_000 },
  resolvable: () => false,
  deadline: 90_000,
  messageBytes: (settings) => payloadLimitOf(settings),
  // A receiver has only one destination; its host may change.
  destination: () => 'syslog',
  guarantees,
  checkSettings: (settings, id) => checkSettings(settings, id),
  check: (settings, context, signal) => check(settings, context, signal),
  async open(settings, context, _kept, signal) {
    switch (partsOf(settings.address).scheme) {
      case 'udp':
        return DatagramSink.open(settings, context, signal);
      case 'relp':
      case 'relp+tls':
        return RelpSink.open(settings, context, signal);
      default:
        return StreamSink.open(settings, context, signal);
    }
  },
});

/** Bytes for the message, without header and frame. */
function payloadLimitOf(settings: SyslogSettings): number {
  return frameBytes(settings) - headerBytes(headerOf(settings));
}

/**
 * The usual framing of a port, by the software that listens there: with another framing, the receiver joins or splits messages. Splunk Connect for Syslog
 * expects newline on 514 and, over TLS, on 6514, and octet counting on 601 and 5425.
 */
const usualFraming: ReadonlyMap<number, SyslogSettings['framing']> = new Map([
  [514, 'newline'],
  [6_514, 'newline'],
  [601, 'octet-counting'],
  [5_425, 'octet-counting'],
]);

/** RFC 5425 section 4.1. Only a send shows if a receiver requires TLS. */
const securePort = 6_514;

function checkSettings(settings: SyslogSettings, id: string): Finding[] {
  const { address, framing, confirm, fingerprint, tls, header, enterpriseId } = settings;
  const { scheme, port } = partsOf(address);
  const limit = payloadLimitOf(settings);
  const findings: Finding[] = [];
  const setting = `sinks.${id}.address`;
  if (limit < 200) findings.push(error(`maxBytes leaves ${limit} bytes for the message itself`, `sinks.${id}.maxBytes`));
  if (!scheme.endsWith('tls') && (tls !== undefined || fingerprint !== undefined))
    findings.push(warning(`"${address}" is not encrypted: tls and fingerprint have no effect`, setting));
  if (header !== 'rfc5424' && enterpriseId !== undefined)
    findings.push(
      warning(
        `enterpriseId has no effect with header: ${header}, which has no structured data; each format has the uid in the message`,
        `sinks.${id}.enterpriseId`,
      ),
    );
  const unused = scheme === 'tcp' || scheme === 'tls' ? [] : Object.entries({ framing, confirm });
  for (const [name, value] of unused)
    if (value === 'newline' || value === 'none')
      findings.push(
        warning(`"${name}: ${value}" has no effect with ${scheme}://, only with tcp:// and tls://: remove it`, `sinks.${id}.${name}`),
      );
  const usual = usualFraming.get(port);
  const isSecureByPlain = scheme === 'tcp' && port === securePort;
  if ((scheme === 'tcp' || scheme === 'tls') && !isSecureByPlain && usual !== undefined && framing !== usual)
    findings.push(
      warning(
        usual === 'newline'
          ? `receivers on port ${port} often expect framing: newline (Splunk Connect for Syslog, Splunk TCP inputs)`
          : `receivers on port ${port} expect framing: octet-counting (RFC 6587, RFC 5425, Splunk Connect for Syslog)`,
        `sinks.${id}.framing`,
      ),
    );
  if (isSecureByPlain) findings.push(warning(`port ${port} is the port of syslog over TLS: tls:// in place of tcp://?`, setting));
  return findings;
}

async function check(settings: SyslogSettings, context: SinkContext, signal: AbortSignal): Promise<Finding[]> {
  const { address, confirm } = settings;
  const { id } = context;
  const { scheme } = partsOf(address);
  const findings: Finding[] = [];
  const setting = `sinks.${id}.address`;
  const isStream = scheme === 'tcp' || scheme === 'tls';
  try {
    if (scheme === 'udp') {
      const sink = await DatagramSink.open(settings, context, signal);
      await sink[Symbol.asyncDispose]();
      findings.push(warning(`"${address}" was resolved; UDP cannot show if a receiver listens`, setting));
    } else if (isStream) {
      findings.push(await checkStream(settings, context, signal));
      if (confirm === 'none')
        findings.push(warning('confirm: none: losses at a broken connection are not detected', `sinks.${id}.confirm`));
    } else {
      const sink = await RelpSink.open(settings, context, signal);
      await sink[Symbol.asyncDispose]();
      findings.push(ok(`"${address}" speaks RELP; "200" confirms only its queue: make sure that the queue is on disk`));
    }
  } catch (thrown) {
    signal.throwIfAborted();
    findings.push(error(messageOf(thrown), setting));
  }
  return findings;
}
