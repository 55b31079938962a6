/**
 * rsyslog: TCP with either framing, TLS that requires a client certificate, UDP, RELP with and
 * without TLS.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Place, Program, Way } from './syslog-receiver.ts';

/** The reason why rsyslog is not available; undefined if it is. */
export function rsyslogMissing(): string | undefined {
  const found = spawnSync('rsyslogd', ['-v'], { encoding: 'utf8' });
  if (found.error) return 'no rsyslogd on the path (test/servers/install.sh rsyslog)';
  const modules = ['/usr/lib/x86_64-linux-gnu/rsyslog', '/usr/lib/aarch64-linux-gnu/rsyslog', '/usr/lib/rsyslog', '/usr/lib64/rsyslog'];
  const lacks = ['imrelp.so', 'lmnsd_gtls.so'].filter((name) => !modules.some((directory) => existsSync(join(directory, name))));
  return lacks.length > 0 ? `rsyslog has no ${lacks.join(', ')} (test/servers/install.sh rsyslog)` : undefined;
}

const ways: readonly Way[] = ['tcp', 'tls', 'udp', 'relp', 'relp+tls'];

/**
 * `isDurable`: messages that RELP acknowledges are already in the file, so that they survive `kill
 * -9`.
 */
export function rsyslog({ isDurable = false } = {}): Program {
  return {
    name: 'rsyslog',
    ways,
    command: ({ at }) => ({ file: 'rsyslogd', args: ['-n', '-f', at('receiver.conf'), '-i', at('pid')] }),
    configure: (place) => configuration(place, isDurable),
  };
}

/** With a limit: rsyslog ends a session of RELP at a longer message. */
export function rsyslogLimited(maxBytes: number): Program {
  const program = rsyslog();
  return {
    ...program,
    configure: (place) =>
      program
        .configure(place)
        .replace('maxMessageSize="64k"', `maxMessageSize="${maxBytes}"`)
        .replace('ruleset="relp" maxDataSize="128k"', `ruleset="relp" maxDataSize="${maxBytes}" oversizeMode="abort"`),
  };
}

function configuration({ at, ports }: Place, isDurable: boolean): string {
  // No disk queue: after kill -9 it sometimes lacked an acknowledged message ("invalid .qi file",
  // 8.2302).
  const queue = isDurable ? ' queue.type="Direct"' : '';
  const rulesets = ways.map(
    (way) =>
      `ruleset(name="${way}"${way === 'relp' ? queue : ''}) { action(type="omfile" file="${at(`${way}.json`)}" template="parsed"${way === 'relp' && isDurable ? ' sync="on" flushOnTXEnd="on"' : ''}) }`,
  );
  const field = (name: string, property: string, more = ''): string =>
    `property(outname="${name}" name="${property}"${more} format="jsonf")`;
  return `global(
  workDirectory="${at('')}"
  maxMessageSize="64k"
  defaultNetstreamDriverCAFile="${at('ca.pem')}"
  defaultNetstreamDriverCertFile="${at('server.pem')}"
  defaultNetstreamDriverKeyFile="${at('server.key')}"
  parser.escapeControlCharactersOnReceive="off"
)
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="x509/name" permittedPeer=["collector.test"])
module(load="imptcp")
module(load="imudp")
module(load="imrelp")
template(name="parsed" type="list" option.jsonf="on") {
  ${[
    field('pri', 'pri'),
    field('ts', 'timereported', ' dateFormat="rfc3339"'),
    field('host', 'hostname'),
    field('app', 'app-name'),
    field('msgid', 'msgid'),
    field('sd', 'structured-data'),
    field('msg', 'msg'),
  ].join('\n  ')}
}
${rulesets.join('\n')}
input(type="imptcp" port="${ports.tcp}" address="127.0.0.1" ruleset="tcp" maxFrameSize="200000")
input(type="imtcp" port="${ports.tls}" address="127.0.0.1" ruleset="tls")
input(type="imudp" port="${ports.udp}" address="127.0.0.1" ruleset="udp")
input(type="imrelp" port="${ports.relp}" address="127.0.0.1" ruleset="relp" maxDataSize="128k")
input(type="imrelp" port="${ports['relp+tls']}" address="127.0.0.1" ruleset="relp+tls" maxDataSize="128k"
  tls="on" tls.caCert="${at('ca.pem')}" tls.myCert="${at('server.pem')}" tls.myPrivKey="${at('server.key')}" tls.authMode="name" tls.permittedPeer=["collector.test"])
`;
}
