/** `waybill setup kibana`: imports the data view, dashboards and detection rules of `content/kibana` into a space. */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../../clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { Connection } from '../../../connect/connection.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { WaybillError } from '../../../errors.ts';
import { packageFile } from '../../../files.ts';
import type { Clock } from '../../../model/time.ts';
import { quote } from '../../../quote.ts';
import { patternOf } from '../../../sink/elasticsearch/settings.ts';
import type { ElasticsearchSettings } from '../../../sink/elasticsearch/settings.ts';
import { nearestOrAll } from '../../../settings/nearest.ts';
import { version } from '../../../version.ts';
import type { Io } from '../../io.ts';
import { confirmed } from '../../operation.ts';
import { sinkOf } from './sink.ts';

interface SetupValues {
  readonly config: string | undefined;
  readonly sink: string;
  readonly url: string | undefined;
  readonly space: string | undefined;
  readonly enable: string | undefined;
  readonly threshold: boolean;
  readonly print: boolean;
  readonly yes: boolean;
}

/** One import of a file. */
interface Import {
  readonly path: string;
  readonly file: string;
  readonly text: string;
}

/** A page of Kibana, whose first answer may take long. */
const requestMs = 60_000;
const attempts = 4;
const shippedPattern = 'logs-dpas.audit-*';

export async function setup(values: SetupValues, io: Io, clock: Clock = systemClock): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = sinkOf(config, 'elasticsearch', values.sink);
  const settings = sink.settings as ElasticsearchSettings;
  const imports = importsFor(settings, values);
  if (values.print) {
    for (const { path, text } of imports) io.stdout.write(`POST ${path}\n${text}\n`);
    return 0;
  }
  if (values.url === undefined)
    throw new WaybillError('usage', 'missing --url: the address of Kibana, such as https://kibana.example:5601');
  const base = baseOf(values.url);
  const authorization = authorizationOf(io.env);
  const plan = [
    `At ${base}, imports for sink "${sink.id}":`,
    ...imports.map(({ path, file }) => `  ${file} by ${path}`),
    'Dashboards and data view with the same id are replaced. Detection rules that exist stay as they are.',
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  const { ca, proxy } = sinkContext(sink, config, { clock });
  await using connection = new Connection({
    setting: `sinks.${sink.id}`,
    url: base,
    tls: settings.tls,
    sharedCa: ca,
    proxy: settings.proxy === 'none' ? undefined : (settings.proxy ?? proxy),
    timeoutMs: requestMs,
  });
  const kibana = { base, authorization, connection, clock, signal: io.signal };
  let isComplete = true;
  for (const each of imports) {
    const { message, failures } = outcomeOf(each, await post(kibana, each));
    io.stderr.write(`${each.file}: ${message}\n`);
    for (const failure of failures) io.stderr.write(`  ${failure}\n`);
    isComplete &&= failures.length === 0;
  }
  return isComplete ? 0 : 1;
}

/** The files with the index pattern of the sink, and the rules of `--enable` enabled. */
function importsFor(settings: ElasticsearchSettings, { space, enable, threshold }: SetupValues): readonly Import[] {
  const prefix = space === undefined || space === 'default' ? '' : `/s/${space}`;
  const pattern = settings.index === undefined ? `logs-${settings.dataset}-*` : patternOf(settings);
  const read = (name: string): string => readFileSync(packageFile(`content/kibana/${name}`), 'utf8').replaceAll(shippedPattern, pattern);
  const rules = threshold ? 'detection-rules-threshold.ndjson' : 'detection-rules.ndjson';
  const objects = 'saved-objects.ndjson';
  return [
    { path: `${prefix}/api/saved_objects/_import?overwrite=true`, file: objects, text: read(objects) },
    { path: `${prefix}/api/detection_engine/rules/_import`, file: rules, text: enabled(read(rules), enable) },
  ];
}

/** @param wanted  ids of rules without `dpas-`, separated by commas, or `all` */
function enabled(rules: string, wanted: string | undefined): string {
  if (wanted === undefined) return rules;
  const lines = rules.trimEnd().split('\n');
  const parsed = lines.map((line) => JSON.parse(line) as { readonly rule_id: string });
  const known = parsed.map(({ rule_id }) => rule_id.replace(/^dpas-/, ''));
  const names = wanted === 'all' ? known : wanted.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new WaybillError('usage', `cannot enable the rule "${unknown}": ${nearestOrAll(unknown, known)}`);
  return parsed
    .map((rule, index) => `${JSON.stringify(names.includes(known[index] ?? '') ? { ...rule, enabled: true } : rule)}\n`)
    .join('');
}

function baseOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url !== undefined && `${url.username}${url.password}` !== '')
    throw new WaybillError('usage', 'cannot use --url with credentials in it: set WAYBILL_SETUP_USERNAME and WAYBILL_SETUP_PASSWORD');
  const isLocal = url !== undefined && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const fits = url !== undefined && url.search === '' && url.hash === '';
  if (!fits || !(url.protocol === 'https:' || (url.protocol === 'http:' && isLocal)))
    throw new WaybillError('usage', `cannot use --url "${given}": not an address such as https://kibana.example:5601`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

/** The credentials of an administrator: the user of the sink has no privileges in Kibana. */
function authorizationOf(env: NodeJS.ProcessEnv): string {
  const { WAYBILL_SETUP_API_KEY: key, WAYBILL_SETUP_USERNAME: user, WAYBILL_SETUP_PASSWORD: password } = env;
  if (key) return `ApiKey ${key}`;
  if (user) return `Basic ${Buffer.from(`${user}:${password ?? ''}`).toString('base64')}`;
  throw new WaybillError(
    'usage',
    'missing credentials of Kibana: set WAYBILL_SETUP_API_KEY, or WAYBILL_SETUP_USERNAME and WAYBILL_SETUP_PASSWORD',
  );
}

interface Kibana {
  readonly base: string;
  readonly authorization: string;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Imports may be repeated, so an unavailable Kibana is tried again. */
async function post(kibana: Kibana, each: Import): Promise<Readonly<Record<string, unknown>>> {
  for (let attempt = 1; ; attempt += 1) {
    const { status, text } = await postOnce(kibana, each);
    const body = status === 200 ? objectIn(text) : undefined;
    if (body && importedOf(body) !== undefined) return body;
    const isBusy = status === 0 || status === 429 || status >= 502;
    if (!isBusy || attempt === attempts) return unexpected(kibana, each, status, text);
    await kibana.clock.sleep(1_000 * 2 ** attempt, kibana.signal);
  }
}

/** @returns the status 0 with the reason for a request without a response */
async function postOnce(
  { base, authorization, connection, signal }: Kibana,
  { path, file, text }: Import,
): Promise<{ status: number; text: string }> {
  const boundary = `waybill-${crypto.randomUUID()}`;
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file}"\r\ncontent-type: application/ndjson\r\n\r\n`;
  try {
    const { origin, pathname } = new URL(base);
    const answer = await connection.dispatcher.request({
      origin,
      path: `${pathname.replace(/\/$/, '')}${path}`,
      method: 'POST',
      headers: {
        authorization,
        'kbn-xsrf': 'waybill',
        'user-agent': `waybill/${version}`,
        'content-type': `multipart/form-data; boundary=${boundary}`,
      },
      body: `${head}${text}\r\n--${boundary}--\r\n`,
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestMs)]),
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  } catch (thrown) {
    signal.throwIfAborted();
    return { status: 0, text: connection.translate(thrown).message };
  }
}

function unexpected({ base }: Kibana, { file, path }: Import, status: number, text: string): never {
  const where = `cannot import ${file} into "${base}"`;
  if (status === 0) throw new WaybillError('sink_unavailable', `${where}: ${text}`);
  const { message } = objectIn(text) ?? {};
  const detail = quote(typeof message === 'string' ? message : text, 300);
  const hint: Readonly<Record<number, string>> = {
    401: ': check the credentials in WAYBILL_SETUP_API_KEY or WAYBILL_SETUP_USERNAME',
    403: ': the credentials need the Kibana privileges "Saved Objects Management: All" and "Security: All" in the space',
    404: `: no Kibana, no such space, or no ${path.split('?', 1)[0] ?? ''}`,
  };
  throw new WaybillError(
    status === 429 || status >= 500 ? 'sink_unavailable' : 'sink_blocked',
    `${where}${hint[status] ?? ''}: ${status} ${detail}`,
  );
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    // A page of a proxy, for example: the caller reports it.
    return undefined;
  }
}

interface ImportError {
  readonly id?: string;
  readonly rule_id?: string;
  readonly error?: { readonly type?: string; readonly status_code?: number; readonly message?: string };
}

/** The number of imported objects; undefined in an answer that is not an answer to an import. */
function importedOf(body: Readonly<Record<string, unknown>>): number | undefined {
  const count = body['success_count'] ?? body['successCount'];
  return typeof count === 'number' ? count : undefined;
}

/** Kibana answers 200 and lists the objects that it refused. A rule that exists is no failure. */
function outcomeOf(
  { file, text }: Import,
  body: Readonly<Record<string, unknown>>,
): { readonly message: string; readonly failures: readonly string[] } {
  const errors = (Array.isArray(body['errors']) ? body['errors'] : []) as readonly ImportError[];
  const existing = errors.filter(({ rule_id, error }) => rule_id !== undefined && error?.status_code === 409);
  const failures = errors
    .filter((each) => !existing.includes(each))
    .map(
      ({ id, rule_id, error }) => `${rule_id ?? id ?? file}: ${quote(error?.message ?? error?.type ?? 'refused without a reason', 300)}`,
    );
  const count = importedOf(body) ?? 0;
  const expected = text.trimEnd().split('\n').length;
  const answered = count + errors.length;
  if (answered < expected) failures.push(`Kibana answered for ${answered} of ${expected} objects`);
  const unchanged = existing.length === 0 ? '' : `, ${existing.length} already exist; unchanged`;
  return { message: `${count} imported${unchanged}${failures.length === 0 ? '' : `, ${failures.length} refused`}`, failures };
}
