/**
 * The floor of the logs endpoint: the same HTTPS server of Node with the same certificate and
 * ciphers, which sends the same prepared bytes for each request. Arguments: the folder of the CA,
 * the head of the response, and its length. Prints one line of JSON when it listens.
 */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { certificatesIn } from '../src/reference/http/certificates.ts';
import { tlsOptions } from '../src/reference/http/server.ts';

const [, , tlsFolder = '', head = '', length = '0'] = process.argv;
const body = Buffer.alloc(Number(length), 'x');
body.write(head);
const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length };

const server = createServer(tlsOptions(await certificatesIn(tlsFolder)), (_, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`));
process.on('SIGTERM', () => process.exit(0));
