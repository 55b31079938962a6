/** The settings common to all connections: CA, client certificate and proxy. */
import { z } from 'zod';
import { facts, line, pemFile, pemFiles, proxyUrl, secret, text } from '../settings/values.ts';

/** `tls` of one connection. */
export const tlsSettings = z
  .strictObject({
    ca: pemFiles()
      .optional()
      .describe(
        'CA certificates for this connection; replace the built-in roots and the top-level `tls.ca`. A PEM file, a list of PEM files or a directory',
      ),
    cert: pemFile().optional().describe('Client certificate with its chain, a PEM file; requires `key`'),
    key: pemFile().optional().describe('Private key of `cert`, a PEM file'),
    passphrase: secret().optional().describe('Passphrase of `key`'),
    serverName: text(/^[A-Za-z0-9._-]+$/, 'the name of a host')
      .optional()
      .describe('Name expected in the server certificate; default the host of the address'),
  })
  .describe('CA and client certificate for this connection');

/** Top-level `tls`. */
export const trustSettings = z
  .strictObject({
    ca: pemFiles()
      .optional()
      .describe('CA certificates for every connection, in addition to the built-in roots. A PEM file, a list of PEM files or a directory'),
  })
  .prefault({})
  .describe('CA certificates for every connection');

/** `proxy`: for every HTTPS connection, or for one. */
export const proxySettings = z
  .union([
    z.literal('none'),
    z.strictObject({
      url: proxyUrl().describe('Address of the proxy, with user and password if it requires them'),
      noProxy: z
        .array(line('a host name, or a domain suffix such as .svc'))
        .default([])
        .describe('Hosts or .suffixes that bypass the proxy; loopback addresses always do'),
    }),
  ])
  .register(facts, { expects: '"none", or a group with the setting "url"' })
  .describe('Proxy for HTTPS; `none` connects directly and ignores the variables HTTPS_PROXY and NO_PROXY');

export type ProxySettings = Exclude<z.output<typeof proxySettings>, 'none'>;
