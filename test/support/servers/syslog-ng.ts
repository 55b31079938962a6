/**
 * syslog-ng, the second syslog receiver: TCP with octet counting, TLS that requires a client
 * certificate, UDP.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from './programs.ts';
import type { Place, Program } from './syslog-receiver.ts';

interface Installed {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  readonly args: readonly string[];
}

/**
 * The program on the PATH, or the program that install.sh unpacked: Debian's package conflicts with
 * rsyslog's.
 */
function installed(): Installed | undefined {
  const root = join(cacheFolder(), 'syslog-ng');
  const file = join(root, 'usr/sbin/syslog-ng');
  if (!existsSync(file)) return spawnSync('syslog-ng', ['-V']).error ? undefined : { file: 'syslog-ng', env: {}, args: [] };
  const libraries = [...globSync(join(root, 'usr/lib/*-linux-gnu')), ...globSync(join(root, 'lib/*-linux-gnu'))];
  const modules = globSync(join(root, 'usr/lib/syslog-ng/3.*'));
  const env = { LD_LIBRARY_PATH: [...libraries, join(root, 'usr/lib/syslog-ng')].join(':') };
  return { file, env, args: [`--module-path=${modules.join(':')}`] };
}

/**
 * The reason why syslog-ng or this module is not available; undefined if it is.
 *
 * @param module  a module that Debian packages separately
 */
export function syslogNgMissing(module?: string): string | undefined {
  const program = 'no syslog-ng on the path or in the cache (test/servers/install.sh syslog-ng)';
  if (!installed()) return program;
  const places = ['/', join(cacheFolder(), 'syslog-ng')].map((root) => join(root, `usr/lib/syslog-ng/*/lib${module ?? ''}.so`));
  return module === undefined || places.some((place) => globSync(place).length > 0)
    ? undefined
    : `syslog-ng lacks the module ${module} (test/servers/install.sh syslog-ng)`;
}

/** With a limit: syslog-ng closes a connection at a longer message. */
export function syslogNgLimited(maxBytes: number): Program {
  return { ...syslogNg, configure: (place) => syslogNg.configure(place).replace('log-msg-size(65536)', `log-msg-size(${maxBytes})`) };
}

export const syslogNg: Program = {
  name: 'syslog-ng',
  ways: ['tcp', 'tls', 'udp'],
  command: ({ at }) => {
    const found = installed();
    if (!found) throw new Error(syslogNgMissing());
    const places = ['-R', at('persist'), '-p', at('pid'), '-c', at('control')];
    return { file: found.file, env: found.env, args: ['-F', '--no-caps', '-f', at('receiver.conf'), ...found.args, ...places] };
  },
  configure: ({ at, ports }: Place) => {
    const fields = 'pri=$PRI ts=$ISODATE host=$HOST app=$PROGRAM msgid=$MSGID sd=$SDATA msg=$MSG';
    const log = (way: string): string => `log { source(${way}); destination { file("${at(`${way}.json`)}" template(parsed)); }; };`;
    return `@version: 3.38
options { keep-hostname(yes); chain-hostnames(no); use-dns(no); log-msg-size(65536); stats-freq(0); frac-digits(3); time-zone("UTC"); };
source tcp { syslog(ip(127.0.0.1) port(${ports.tcp}) transport("tcp")); };
source udp { syslog(ip(127.0.0.1) port(${ports.udp}) transport("udp")); };
source tls { syslog(ip(127.0.0.1) port(${ports.tls}) transport("tls")
  tls(key-file("${at('server.key')}") cert-file("${at('server.pem')}") ca-file("${at('ca.pem')}")
  peer-verify(required-trusted) trusted-dn("CN=collector.test"))); };
template parsed { template("$(format-json ${fields})\\n"); };
${['tcp', 'udp', 'tls'].map(log).join('\n')}
`;
  },
};
