/** The client of the admin server, for commands that read from a daemon on another machine. */
import type { RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isLoopback } from '../settings/loopback.ts';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { request as httpRequest } from '../connect/node-http.ts';
import { objectIn } from '../record/json-object.ts';
import { quote } from '../errors/quote.ts';
import { remember } from '../errors/secrets.ts';
import { exchange, systemCode, type Answer } from './http-exchange.ts';
import { readInput } from './io.ts';
import { text, type ValuesOf } from './option.ts';

const timeoutMs = 120_000;

export const adminOptions = {
  admin: text(
    'URL',
    'query the admin server of a running daemon instead of the state, with the token in WAYBILL_ADMIN_TOKEN; http for loopback addresses only',
  ),
  'admin-ca': text(
    'FILE',
    'PEM file of CA certificates for --admin; replaces the system roots, while NODE_EXTRA_CA_CERTS=FILE extends them',
  ),
};

export type AdminValues = ValuesOf<typeof adminOptions>;

type Members<Value> = Readonly<Partial<Record<keyof Value & string, 'object' | 'objects'>>>;

export interface AdminServer {
  /** @param members  that the JSON must have. @throws WaybillError `admin_unreachable` without a response, or for one not of Waybill */
  get<Value>(path: string, members: Members<Value>, parameters?: Readonly<Record<string, string | undefined>>): Promise<Value>;
}

/** Undefined without `--admin`. @throws WaybillError `usage` for an unusable address or token */
export function adminServer(
  values: AdminValues & { readonly 'data-dir'?: string | undefined },
  env: NodeJS.ProcessEnv,
): AdminServer | undefined {
  const { admin: given, 'admin-ca': caFile } = values;
  if (given === undefined) {
    if (caFile !== undefined) throw new WaybillError('usage', 'cannot use --admin-ca without --admin');
    return undefined;
  }
  if (values['data-dir'] !== undefined) throw new WaybillError('usage', 'cannot use --data-dir with --admin: choose one of them');
  const base = addressOf(given);
  const token = env['WAYBILL_ADMIN_TOKEN'];
  if (token !== undefined && !/^[\x21-\x7e]*$/.test(token))
    throw new WaybillError(
      'usage',
      'cannot use the token in WAYBILL_ADMIN_TOKEN: it contains a character that an HTTP header cannot carry',
    );
  if (token !== undefined) remember(adminOptions, token);
  const headers = token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` };
  const options: RequestOptions & { ca?: string; allowPartialTrustChain?: boolean } = {
    headers,
    ...(caFile !== undefined && { ca: readInput(caFile, '--admin-ca').toString('utf8'), allowPartialTrustChain: true }),
  };
  return {
    async get<Value>(path: string, members: Members<Value>, parameters: Readonly<Record<string, string | undefined>> = {}): Promise<Value> {
      const url = new URL(`${base.pathname.replace(/\/$/, '')}${path}`, base);
      for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
      const request = url.protocol === 'https:' ? httpsRequest(url, options) : httpRequest(url, options);
      const answer = await exchange(request, timeoutMs).catch((thrown: unknown) => {
        throw new WaybillError('admin_unreachable', `cannot reach the admin server at ${base.origin}: ${unreachableReason(thrown)}`, {
          cause: thrown,
        });
      });
      if (answer.status !== 200) throw refusal(base, answer, token);
      const value = jsonOf(base, answer.body);
      if (!hasMembers(value, members)) throw unusable(base, "the JSON of the response is not Waybill's");
      return value as Value;
    },
  };
}

function addressOf(given: string): URL {
  const url = URL.parse(given);
  const refuse = (message: string): WaybillError => new WaybillError('usage', `cannot use --admin ${JSON.stringify(given)}: ${message}`);
  if (!url || !/^https?:$/.test(url.protocol)) throw refuse('not an address such as https://waybill.example:9464');
  if (url.username !== '' || url.password !== '')
    throw new WaybillError('usage', 'cannot use --admin with credentials in the address: set WAYBILL_ADMIN_TOKEN');
  if (url.search !== '' || url.hash !== '') throw refuse('the URL must not have a query or fragment; the command adds the path');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw refuse('http would send the token and the report unencrypted; use https, or http on a loopback address');
  return url;
}

function refusal(base: URL, { status, body }: Answer, token = ''): WaybillError {
  // Another server may echo the token that it received.
  const detail = quote(errorIn(body), 300);
  const reason =
    status === 401
      ? token === ''
        ? 'it requires a token, and WAYBILL_ADMIN_TOKEN is not set'
        : 'it rejected the token in WAYBILL_ADMIN_TOKEN'
      : `it responded with status ${status}`;
  const message = `cannot use the admin server at ${base.origin}: ${reason}${detail === '' ? '' : `: ${detail}`}`;
  return new WaybillError(status === 400 ? 'usage' : 'admin_unreachable', message);
}

/** The `error` member of a response; nothing else of the body is quoted. */
function errorIn(body: string): string {
  const { error } = objectIn(body);
  return typeof error === 'string' ? error : '';
}

function jsonOf(base: URL, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw unusable(base, 'the response is not JSON', cause);
  }
}

function unusable(base: URL, message: string, cause?: unknown): WaybillError {
  return new WaybillError('admin_unreachable', `cannot use the admin server at ${base.origin}: ${message}`, { cause });
}

function hasMembers(value: unknown, members: Readonly<Record<string, 'object' | 'objects' | undefined>>): boolean {
  return (
    isObject(value) &&
    Object.entries(members).every(([name, kind]) => {
      const member = value[name];
      return kind === 'object' ? isObject(member) : Array.isArray(member) && member.every(isObject);
    })
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unreachableReason(thrown: unknown): string {
  const code = systemCode(thrown) ?? '';
  if (code === 'ECONNREFUSED')
    return 'connection refused (ECONNREFUSED); check that the daemon runs and that admin.listen has this address';
  if (/CERT|SIGNATURE|SELF_SIGNED|ISSUER/.test(code))
    return `its certificate is not trusted (${code}); --admin-ca FILE or NODE_EXTRA_CA_CERTS names its CA`;
  if (code === 'EPROTO') return 'no TLS at this address (EPROTO); use http:// when admin.tls is not configured';
  if (code === 'ECONNRESET') return 'it closed the connection (ECONNRESET); use https:// when admin.tls is configured';
  return messageOf(thrown);
}
