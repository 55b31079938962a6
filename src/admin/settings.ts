/** The settings of what an operator looks at: the admin server and the log. */
import { z } from 'zod';
import { listenAddress, oneOrMany, path, secret } from '../settings/values.ts';

/** `admin` */
export const adminSettings = z
  .strictObject({
    listen: oneOrMany(listenAddress())
      .prefault('127.0.0.1:9464')
      .describe(
        'Address, or list of addresses, e.g. `[::]:9464`. Elsewhere than on loopback, only probes and metrics answer without a token',
      ),
    token: secret().optional().describe('Token that opens everything'),
    readToken: secret().optional().describe('Token that reads page, status, ledger and metrics'),
    tls: z
      .strictObject({
        cert: path().describe('Certificate with its chain, a PEM file'),
        key: path().describe('Private key of the certificate, a PEM file'),
      })
      .optional()
      .describe('Certificate of the admin server; without it the server speaks plain HTTP'),
  })
  .prefault({})
  .describe('Probes, metrics, status page');

const level = z.enum(['debug', 'info', 'warn', 'error']);

/** `log` */
export const logSettings = z
  .strictObject({
    level: level.default('info').describe('The least that is written; LOG_LEVEL of the environment wins'),
    format: z
      .enum(['json', 'pretty', 'ecs'])
      .optional()
      .describe('`json`, `ecs` (JSON with the names of ECS), or `pretty` for people; default `pretty` on a terminal, else `json`'),
    levels: z.record(z.string().min(1), level).default({}).describe('Levels of single rooms, e.g. `sink/kafka: debug`'),
  })
  .prefault({})
  .describe('Diagnostics, on standard error');
