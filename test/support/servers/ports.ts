/** Ports of servers that are stopped and restarted. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const lowest = 10_000;

/**
 * A free port below the range for outgoing connections (`ip_local_port_range`, ip(7)): a connection
 * could take a port in that range before the server restarts.
 */
export async function freePort(): Promise<number> {
  const [end = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/).map(Number);
  if (end <= lowest) throw new Error(`no port is kept from connections: ip_local_port_range begins with ${end}`);
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (end - lowest));
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
