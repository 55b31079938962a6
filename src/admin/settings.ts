/** The settings of the admin server. */
import { z } from 'zod';
import { listenAddress, oneOrMany, path, secret } from '../settings/values.ts';

/** `admin` */
export const adminSettings = z
  .strictObject({
    listen: oneOrMany(listenAddress())
      .prefault('127.0.0.1:9464')
      .describe(
        'Address, or list of addresses, e.g. `[::]:9464`. Without a token, an address other than loopback serves only probes and metrics',
      ),
    token: secret().optional().describe('Token for reads and operations'),
    readToken: secret().optional().describe('Token for reads: status, ledger, gaps, operations and metrics'),
    tls: z
      .strictObject({
        cert: path().describe('Certificate with its chain, a PEM file'),
        key: path().describe('Private key of the certificate, a PEM file'),
      })
      .optional()
      .describe('Certificate of the admin server; without it the server speaks plain HTTP'),
  })
  .prefault({})
  .describe('Admin server: probes, metrics, status and reports');
