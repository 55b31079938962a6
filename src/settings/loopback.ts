/** Recognizes the hosts that only this machine can reach. */
import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** @param host  a name or an address; an IPv6 address with or without brackets */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  return name === 'localhost' || (isIP(name) !== 0 && loopback.check(name, isIP(name) === 4 ? 'ipv4' : 'ipv6'));
}
