/** The settings of the sink `syslog`, and values derived from them. */
import { hostname } from 'node:os';
import { z } from 'zod';
import { line, text } from '../../settings/values.ts';
import { tlsSettings } from '../../connect/settings.ts';
import type { SinkContext } from '../define.ts';
import { facilities, type Facility, type HeaderSettings } from './message.ts';
import { Dialer } from './socket.ts';

const addressPattern = /^(udp|tcp|tls|relp|relp\+tls):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/;

export const syslogSettings = z.strictObject({
  address: text(addressPattern, 'an address such as tls://siem.example:6514, tcp://…, udp://…, relp://… or relp+tls://…').describe(
    'Where the receiver listens: `udp://`, `tcp://`, `tls://`, `relp://` or `relp+tls://`, host and port',
  ),
  framing: z
    .enum(['octet-counting', 'newline'])
    .default('octet-counting')
    .describe('Framing over TCP and TLS: octet counting (RFC 6587), or `newline` for SC4S, Splunk TCP inputs and many appliances'),
  header: z
    .enum(['rfc5424', 'rfc3164', 'rfc3164-iso'])
    .default('rfc5424')
    .describe(
      'Header of each message; `rfc3164` for receivers of CEF or LEEF that know only the old one: its time is UTC without year and fraction; `rfc3164-iso` has the complete time',
    ),
  facility: z
    .enum(Object.keys(facilities) as [Facility, ...Facility[]])
    .default('local4')
    .describe('Facility of each message'),
  appName: text(/^\P{Cc}*$/u, 'text in one line')
    .default('waybill')
    .describe('APP-NAME of each message, or TAG of `header: rfc3164`; `""` omits it'),
  hostname: line().optional().describe('HOSTNAME of each message; default the name of this machine'),
  enterpriseId: z
    .int()
    .min(1)
    .max(4_294_967_295)
    .optional()
    .describe('Private enterprise number under which uid, number and source are sent as structured data; not with `header: rfc3164`'),
  confirm: z
    .enum(['close', 'none'])
    .default('close')
    .describe(
      'Over TCP and TLS: `close` ends the connection with each batch and waits until the receiver has read all of it; `none` for receivers that limit new connections',
    ),
  maxBytes: z
    .int()
    .min(480)
    .max(1_048_576)
    .optional()
    .describe(
      'Maximum bytes of a message with its header; longer ones are truncated. Default 2048 by UDP, else 8096 (the default of rsyslog)',
    ),
  tls: tlsSettings.optional(),
  fingerprint: text(/^(?:[0-9A-Fa-f]{2}:?){32}$/, 'the SHA-256 of a certificate in hex')
    .optional()
    .describe('SHA-256 of the certificate that the receiver must show, whatever its issuer; replaces `tls.ca`'),
});

export type SyslogSettings = z.output<typeof syslogSettings>;

type Scheme = 'udp' | 'tcp' | 'tls' | 'relp' | 'relp+tls';

/** The parts of a valid address; an IPv6 address without its brackets. */
export function partsOf(address: string): { readonly scheme: Scheme; readonly host: string; readonly port: number } {
  const [, scheme = 'tcp', bracketed, name = '', port] = addressPattern.exec(address) ?? [];
  return { scheme: scheme as Scheme, host: bracketed ?? name, port: Number(port) };
}

export function frameBytes({ address, maxBytes }: SyslogSettings): number {
  return maxBytes ?? (partsOf(address).scheme === 'udp' ? 2_048 : 8_096);
}

export function headerOf(settings: SyslogSettings): HeaderSettings {
  const { header: format, facility, appName, enterpriseId } = settings;
  return { format, facility, appName, enterpriseId, hostname: settings.hostname ?? hostname(), processId: process.pid };
}

export function dialerOf(settings: SyslogSettings, { id, ca, shown }: SinkContext): Dialer {
  const { address, framing, tls, fingerprint } = settings;
  const { scheme, host, port } = partsOf(address);
  const isSecure = scheme === 'tls' || scheme === 'relp+tls';
  return new Dialer({
    id,
    address,
    host,
    port,
    isSecure,
    framing,
    tls,
    fingerprint: fingerprint?.replaceAll(':', '').toLowerCase(),
    ca,
    shown,
  });
}
