/**
 * How a command asks the running daemon: through the socket in the state directory, or from elsewhere through the admin server, with a token.
 */
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { ClientRequest, RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { isLoopback } from '../connect/proxy.ts';
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import { forbidden } from '../journal/state.ts';
import type { SinkSnapshot, Snapshot } from '../model/snapshot.ts';
import { quote } from '../quote.ts';
import { remember } from '../secrets.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Question {
  readonly timeoutMs?: number;
  /** JSON; then the question is a POST. */
  readonly body?: string;
}

const timeoutUsual = 30_000;
/** A report of years is some tens of MB; more than this is not one. */
const bodyMost = 1_000_000_000;

/** Asks the daemon that owns the state; undefined: none runs. */
export async function askSocket(
  state: string,
  path: string,
  { timeoutMs = timeoutUsual, body }: Question = {},
): Promise<Answer | undefined> {
  const headers = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const method = body === undefined ? 'GET' : 'POST';
  try {
    return await exchange(httpRequest({ socketPath: join(state, 'waybill.sock'), path, method, headers }), timeoutMs, body);
  } catch (thrown) {
    const code = systemCode(thrown);
    // No socket, or one that a dead process left.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ECONNREFUSED') return undefined;
    if (code === 'EACCES') throw forbidden(state, thrown);
    if (codeOf(thrown) !== undefined) throw thrown;
    throw new WaybillError('state_unusable', `cannot ask the running daemon: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** What the running daemon shows; undefined when none runs, or it does not own the state yet. */
export async function liveSnapshot(state: string): Promise<Snapshot | undefined> {
  const answer = await askSocket(state, '/snapshot', { timeoutMs: 5_000 });
  return answer?.status === 200 ? (JSON.parse(answer.body) as Snapshot) : undefined;
}

export async function liveSink(state: string, id: string): Promise<SinkSnapshot | undefined> {
  return (await liveSnapshot(state))?.sinks.find((sink) => sink.id === id);
}

/** Whether a daemon answers at the socket in the state directory. */
export async function isRunning(state: string): Promise<boolean> {
  return (await askSocket(state, '/healthz')) !== undefined;
}

/** The options of a command that can also be asked of a daemon elsewhere. */
export const adminOptions = { admin: { type: 'string' }, 'admin-ca': { type: 'string' } } as const;

/** Their lines in a usage text. */
export const adminUsage = `  --admin URL         asks the admin server of a running daemon instead of reading the
                      state; WAYBILL_ADMIN_TOKEN holds its token, admin.readToken is
                      enough. http only on loopback
  --admin-ca FILE     certificates to trust there instead of the system's, PEM;
                      NODE_EXTRA_CA_CERTS=FILE adds to them`;

export interface AdminValues {
  readonly admin?: string | undefined;
  readonly 'admin-ca'?: string | undefined;
}

/** Members of an answer by which it is known to be Waybill's: an object, or a list of objects. */
export type Members<Value> = Readonly<Partial<Record<keyof Value & string, 'object' | 'objects'>>>;

export interface AdminServer {
  /**
   * Asks for one path of the admin server, with these parameters.
   * @returns its JSON, an object with these members at least
   * @throws WaybillError `admin_unreachable` when nobody answers, or another program than Waybill
   */
  get<Value>(path: string, members: Members<Value>, parameters?: Readonly<Record<string, string | undefined>>): Promise<Value>;
}

/** @returns undefined without `--admin`. @throws WaybillError `usage` for an address or token that cannot be used */
export function adminServer(values: AdminValues, env: NodeJS.ProcessEnv): AdminServer | undefined {
  const { admin: given, 'admin-ca': caFile } = values;
  if (given === undefined) {
    if (caFile !== undefined) throw new WaybillError('usage', 'cannot use --admin-ca without --admin');
    return undefined;
  }
  const base = addressOf(given);
  const token = env['WAYBILL_ADMIN_TOKEN'];
  if (token !== undefined && !/^[\x21-\x7e]*$/.test(token))
    throw new WaybillError('usage', 'cannot use the token in WAYBILL_ADMIN_TOKEN: it holds a character that no header can carry');
  if (token !== undefined) remember(adminOptions, token);
  const headers = token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` };
  const options: RequestOptions & { ca?: string } = { headers, ...(caFile !== undefined && { ca: certificates(caFile) }) };
  return {
    async get<Value>(path: string, members: Members<Value>, parameters: Readonly<Record<string, string | undefined>> = {}): Promise<Value> {
      const url = new URL(`${base.pathname.replace(/\/$/, '')}${path}`, base);
      for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
      const asking = url.protocol === 'https:' ? httpsRequest(url, options) : httpRequest(url, options);
      const answer = await exchange(asking, timeoutUsual * 4).catch((thrown: unknown) => {
        throw new WaybillError('admin_unreachable', `cannot reach the admin server at ${base.origin}: ${unreachableWords(thrown)}`, {
          cause: thrown,
        });
      });
      if (answer.status !== 200) throw refusal(base, answer, token);
      const value = jsonOf(base, answer.body);
      if (!hasMembers(value, members)) throw unusable(base, "it answers JSON that is not Waybill's");
      return value as Value;
    },
  };
}

function addressOf(given: string): URL {
  const url = URL.parse(given);
  const refuse = (message: string): WaybillError => new WaybillError('usage', `cannot use --admin ${JSON.stringify(given)}: ${message}`);
  if (!url || !/^https?:$/.test(url.protocol)) throw refuse('not an address such as https://waybill.example:9464');
  if (url.username !== '' || url.password !== '')
    throw new WaybillError('usage', 'cannot use --admin with a token in the address: set WAYBILL_ADMIN_TOKEN');
  if (url.search !== '' || url.hash !== '') throw refuse('it has a query or a fragment; the command adds the path');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw refuse('http would send the token and the report in the clear; use https, or http on a loopback address');
  return url;
}

function certificates(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new WaybillError('usage', `cannot read --admin-ca "${file}": ${messageOf(cause)}`, { cause });
  }
}

function refusal(base: URL, { status, body }: Answer, token = ''): WaybillError {
  // A stranger may answer there, with what it was sent.
  const said = quote(errorIn(body), 300);
  const reason =
    status === 401
      ? token === ''
        ? 'it asks for a token, and WAYBILL_ADMIN_TOKEN is not set'
        : 'it does not accept the token in WAYBILL_ADMIN_TOKEN'
      : `it answered ${status}`;
  const message = `cannot use the admin server at ${base.origin}: ${reason}${said === '' ? '' : `: ${said}`}`;
  return new WaybillError(status === 400 ? 'usage' : 'admin_unreachable', message);
}

/** The `error` of an answer of ours; of another server's body nothing is quoted. */
function errorIn(body: string): string {
  try {
    const { error } = JSON.parse(body) as { readonly error?: unknown };
    return typeof error === 'string' ? error : '';
  } catch {
    return '';
  }
}

function jsonOf(base: URL, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw unusable(base, 'its answer is not JSON', cause);
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

function unreachableWords(thrown: unknown): string {
  const code = systemCode(thrown) ?? '';
  if (code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED); does the daemon run, and does admin.listen name this address?';
  if (/CERT|SIGNATURE|SELF_SIGNED|ISSUER/.test(code))
    return `its certificate is not trusted (${code}); --admin-ca FILE or NODE_EXTRA_CA_CERTS names its CA`;
  if (code === 'EPROTO') return 'it does not speak TLS there (EPROTO); without admin.tls the address begins with http://';
  if (code === 'ECONNRESET') return 'it closed the connection (ECONNRESET); with admin.tls the address begins with https://';
  return messageOf(thrown);
}

function exchange(asking: ClientRequest, timeoutMs: number, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    asking.setTimeout(timeoutMs, () =>
      asking.destroy(new WaybillError('state_unusable', `cannot ask the running daemon: no answer within ${timeoutMs / 1000} s`)),
    );
    asking.on('response', (answer) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      answer.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes > bodyMost) asking.destroy(new Error(`the answer is longer than ${bodyMost} bytes`));
        else parts.push(part);
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }));
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

function systemCode(thrown: unknown): string | undefined {
  return thrown instanceof Error && !(thrown instanceof WaybillError) && 'code' in thrown ? String(thrown.code) : undefined;
}
