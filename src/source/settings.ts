/** The settings of a source (`sources[]`). normalize/settings.ts has the settings for its records. */
import { z } from 'zod';
import { parseDuration, parseInstant } from '../settings/units.ts';
import { duration, facts, httpsUrl, line, secret, shortName, text } from '../settings/values.ts';
import { proxySettings, tlsSettings } from '../connect/settings.ts';
import type { Micros } from '../model/time.ts';

/** Where the ledger begins. */
export type Start =
  | { readonly kind: 'instant'; readonly at: Micros }
  | { readonly kind: 'now' }
  | { readonly kind: 'earliest' }
  | { readonly kind: 'ago'; readonly ms: number };

const authSettings = z
  .strictObject({
    authUrl: httpsUrl()
      .refine((url) => !/\/oauth2\//i.test(url), 'must end before "/{tenantId}/oauth2/v2.0/token": Waybill adds this path')
      .describe('Address of the token endpoint, which is `{authUrl}/{tenantId}/oauth2/v2.0/token`'),
    tenantId: text(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'a tenant id: letters, digits, dot, hyphen and underscore').describe(
      'Tenant id, part of the token endpoint and `organization.id` of every event',
    ),
    clientId: line().describe('Client id'),
    clientSecret: secret().optional().describe('Client secret; needed by `client_credentials`'),
    scopeAddress: text(/^(?!api:)[^\s/][^\s]*$/, 'the address of a scope, without a leading api:// and without spaces')
      .refine(
        (scope) => scope.startsWith('api:') || !/\/(\.default|access_as_user)$/.test(scope),
        'must end before "/.default" or "/access_as_user": Waybill adds this',
      )
      .describe('Scope: `api://{scopeAddress}/.default`, or `/access_as_user` with the password grant'),
    grantType: z.enum(['client_credentials', 'password']).default('client_credentials').describe('OAuth 2.0 grant type'),
    username: line().optional().describe('User of the password grant'),
    password: secret().optional().describe('Password of the password grant'),
    tls: tlsSettings.optional().describe('CA and client certificate for the token endpoint; default the `tls` of the source'),
  })
  .describe('OAuth 2.0 client');

const requestSettings = z
  .strictObject({
    perSecond: z.number().min(0.01).max(1000).default(10).describe('Maximum requests per second, token requests excluded'),
    timeout: duration({ min: '1s', max: '10m' }).prefault('30s').describe('Timeout of one request'),
    group: shortName().optional().describe('Sources with the same group share one budget and must set the same values'),
  })
  .prefault({})
  .describe('Request budget');

const startExpects = 'a time such as 2026-11-21T00:00:00Z, now, earliest, or a duration before now such as 24h';
const start = z
  .string()
  .transform((given, context): Start => {
    const at = parseInstant(given);
    if (at !== undefined) return { kind: 'instant', at };
    if (given === 'now' || given === 'earliest') return { kind: given };
    const ms = parseDuration(given);
    if (ms !== undefined) return { kind: 'ago', ms };
    context.addIssue({ code: 'custom', message: `is not ${startExpects}` });
    return z.NEVER;
  })
  .register(facts, { expects: startExpects });

/** One entry of `sources`; config/schema.ts adds the settings that other folders define. */
export const sourceSettings = z.strictObject({
  id: shortName().describe('Name of the source and part of every uid: with a new id, all records are collected and sent again'),
  baseUrl: httpsUrl()
    .refine((url) => !/\/logs(\/(full-)?payload)?$/i.test(url), 'must end before "/logs": Waybill adds this path')
    .describe('Address of the service, up to and with `/api`; http only on a loopback address'),
  endpoint: z
    .enum(['full-payload', 'payload'])
    .default('full-payload')
    .describe('Logs endpoint to poll; `payload` lacks personal data and `userNetwork`'),
  auth: authSettings,
  subscriptionKey: secret().optional().describe('Subscription key of the service'),
  tls: tlsSettings.optional().describe('CA and client certificate for the service'),
  proxy: proxySettings.optional().describe('Overrides the general `proxy` for this source; `none` for a direct connection'),
  start: start
    .prefault('now')
    .describe(
      'Start of a new ledger; an existing ledger keeps its start. Prefer a literal time: after a lost state the ledger starts there again. Or `now`, `earliest` (the first record that the service still has), or a duration before now',
    ),
  pollInterval: duration({ min: '1s', max: '1h' }).prefault('10s').describe('Interval between live polls'),
  closeDelay: duration({ min: '1s', max: '7d' }).prefault('15m').describe('Age at which a window is closed and proven'),
  recountAfter: z
    .array(duration({ min: '1s' }))
    .refine((ages) => ages.every((age, index) => index === 0 || age > (ages[index - 1] ?? 0)), 'must be ascending')
    .prefault(['1h', '6h', '1d', '3d', '7d', '14d', '30d'])
    .describe('Ages at which a closed window is counted again, ascending; an empty list disables recounts'),
  pageSize: z
    .union([z.literal('auto'), z.int().min(1).max(10_000)])
    .register(facts, { expects: '"auto" or a whole number from 1 to 10000' })
    .default('auto')
    .describe(
      'Records per page: `auto` finds the largest page that the service accepts; a number is requested as it is, and a smaller page is accepted',
    ),
  requests: requestSettings,
});
