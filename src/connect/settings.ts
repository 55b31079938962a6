/** The settings that every connection shares, whoever makes it: trust, client certificate and proxy. */
import { z } from 'zod';
import { facts, line, pemFile, pemFiles, proxyUrl, secret, text } from '../settings/values.ts';

/** `tls` of one connection. */
export const tlsSettings = z
  .strictObject({
    ca: pemFiles()
      .optional()
      .describe(
        'Trusted by this connection in place of the built-in roots and of the general `tls.ca`; a PEM file, a list of them or a directory',
      ),
    cert: pemFile().optional().describe('Certificate that Waybill shows, with its chain, a PEM file; needs `key`'),
    key: pemFile().optional().describe('Private key of `cert`, a PEM file'),
    passphrase: secret().optional().describe('Passphrase of `key`'),
    serverName: text(/^[A-Za-z0-9._-]+$/, 'the name of a host')
      .optional()
      .describe('Name that the certificate must have; default the host of the address'),
  })
  .describe('Trust and client certificate of this connection');

/** Top-level `tls`. */
export const trustSettings = z
  .strictObject({
    ca: pemFiles().optional().describe('Trusted by every connection besides the built-in roots; a PEM file, a list of them or a directory'),
  })
  .prefault({})
  .describe('What every connection trusts');

/** `proxy`: of every HTTPS connection, or of one. */
export const proxySettings = z
  .union([
    z.literal('none'),
    z.strictObject({
      url: proxyUrl().describe('Address of the proxy, with user and password where it wants them'),
      noProxy: z
        .array(line('a host name, or a suffix of one such as .svc'))
        .default([])
        .describe('Names, and suffixes that begin with a dot, that are reached directly; loopback always is'),
    }),
  ])
  .register(facts, { expects: '"none", or a group with the setting "url"' })
  .describe('Proxy for HTTPS; `none` connects directly and ignores HTTPS_PROXY and NO_PROXY of the environment');

export type ProxySettings = Exclude<z.output<typeof proxySettings>, 'none'>;
