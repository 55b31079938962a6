/** `waybill setup kibana`: imports the data views, dashboards, exception lists and detection rules of `content/kibana` into a space, and enables rules. */
import { readFileSync } from 'node:fs';
import { systemClock } from '../../../time/clock.ts';
import { loadConfig, type SinkConfig } from '../../../config/load.ts';
import { Connection } from '../../../connect/connection.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { packageFile } from '../../../disk/files.ts';
import { ledgerDataset } from '../../../model/event.ts';
import type { Clock } from '../../../model/time.ts';
import { authorizationOf, patternOf, type ElasticsearchSettings } from '../../../sink/elasticsearch/settings.ts';
import { nearestOrAll } from '../../../settings/nearest.ts';
import type { Io } from '../../io.ts';
import { confirmed } from '../../operation.ts';
import { administratorOf } from './administrator.ts';
import { Kibana, UnchangedKibana, type Import } from './kibana-client.ts';
import { sinkOf } from './sink.ts';

interface SetupValues {
  readonly config: string | undefined;
  readonly sink: string;
  readonly url: string | undefined;
  readonly space: string | undefined;
  readonly enable: string | undefined;
  readonly threshold: boolean;
  /** ms */
  readonly wait: number;
  readonly print: boolean;
  readonly yes: boolean;
}

/** Files to import, and the ids of the rules to enable. */
interface Content {
  readonly prefix: string;
  readonly imports: readonly Import[];
  readonly wanted: readonly string[];
}

/** The patterns in the shipped files. */
const shipped = { records: 'logs-dpas.audit-*', ledger: 'logs-dpas.ledger-*' };
/** Timeout for TCP, proxy and TLS, ms. */
const connectMs = 60_000;

export async function setup(values: SetupValues, io: Io, clock: Clock = systemClock): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = sinkOf(config, 'elasticsearch', values.sink);
  const settings = sink.settings as ElasticsearchSettings;
  const content = contentFor(sink, values);
  if (values.print) {
    for (const { path, text } of content.imports) io.stdout.write(`POST ${path}\n${text}\n`);
    return 0;
  }
  if (values.url === undefined)
    throw new WaybillError('usage', 'missing --url: the address of Kibana, such as https://kibana.example:5601');
  const base = baseOf(values.url);
  const administrator = administratorOf(settings, io.env);
  const authorization = administrator && authorizationOf(administrator);
  if (authorization === undefined)
    throw new WaybillError(
      'usage',
      'missing credentials of Kibana: set WAYBILL_SETUP_API_KEY, or WAYBILL_SETUP_USERNAME and WAYBILL_SETUP_PASSWORD',
    );
  if (!(await confirmed(planOf(base, sink, content), values, io))) return 1;
  const { ca, proxy } = sinkContext(sink, config, { clock });
  await using connection = new Connection({
    setting: `sinks.${sink.id}`,
    url: base,
    tls: settings.tls,
    sharedCa: ca,
    proxy: settings.proxy === 'none' ? undefined : (settings.proxy ?? proxy),
    timeoutMs: connectMs,
  });
  const { prefix } = content;
  const say = (line: string): void => void io.stderr.write(`${line}\n`);
  const kibana = new Kibana({ base, prefix, authorization, connection, clock, signal: io.signal, waitMs: values.wait, say });
  return (await load(kibana, content, io.signal, say)) ? 0 : 1;
}

/** @returns false if Kibana refused an object or a rule; stderr names it */
async function load(kibana: Kibana, { imports, wanted }: Content, signal: AbortSignal, say: (line: string) => void): Promise<boolean> {
  const existing: string[] = [];
  let isComplete = true;
  for (const [index, each] of imports.entries()) {
    const rest = imports.slice(index + 1).map(({ file }) => file);
    const imported = await kibana.importFile(each).catch((thrown: unknown) => {
      const done = thrown instanceof UnchangedKibana ? 'not imported' : 'perhaps imported in part';
      say(`${each.file}: ${done}${rest.length === 0 ? '' : `; not imported: ${rest.join(', ')}`}. Run the command again.`);
      throw thrown;
    });
    const { count, failures } = imported;
    existing.push(...imported.existing);
    const unchanged = imported.existing.length === 0 ? '' : `, ${imported.existing.length} already exist; unchanged`;
    say(`${each.file}: ${count} imported${unchanged}${failures.length === 0 ? '' : `, ${failures.length} refused`}`);
    for (const failure of failures) say(`  ${failure}`);
    isComplete &&= failures.length === 0;
  }
  for (const id of wanted.filter((each) => existing.includes(each))) {
    try {
      say(`${id}: ${(await kibana.enable(id)) ? 'enabled' : 'was enabled already'}`);
    } catch (thrown) {
      signal.throwIfAborted();
      say(`${id}: not enabled: ${messageOf(thrown)}`);
      isComplete = false;
    }
  }
  return isComplete;
}

function planOf(base: string, { id, ledger }: SinkConfig, { imports, wanted }: Content): readonly string[] {
  return [
    `At ${base}, imports for sink "${id}":`,
    ...imports.map(({ path, file }) => `  ${file} by ${path}`),
    'Dashboards and data views with the same id are replaced. Detection rules and exception lists that exist stay as they are.',
    ...(wanted.length === 0 ? [] : [`Enables, also where it exists: ${wanted.join(', ')}.`]),
    ...(ledger ? [] : ['Leaves out the rules and the dashboard on ledger events: the sink does not have "ledger: true".']),
  ];
}

/** The files with the index patterns of the sink, and the rules of `--enable` enabled. */
function contentFor({ settings: given, ledger }: SinkConfig, { url, space, enable, threshold }: SetupValues): Content {
  const settings = given as ElasticsearchSettings;
  const prefix = space === undefined || space === 'default' ? '' : `/s/${space}`;
  const { index, dataset } = settings;
  const patterns =
    index === undefined
      ? { records: `logs-${dataset}-*`, ledger: `logs-${ledgerDataset(dataset)}-*` }
      : { records: patternOf(settings), ledger: patternOf(settings) };
  const path = url === undefined ? '' : new URL(baseOf(url)).pathname.replace(/^\/$/, '');
  const read = (file: string): readonly string[] =>
    readFileSync(packageFile(`content/kibana/${file}`), 'utf8')
      .replaceAll(shipped.records, () => patterns.records)
      .replaceAll(shipped.ledger, () => patterns.ledger)
      // Links of a guide lead to the space, under the base path of Kibana.
      .replaceAll('(/app/', () => `(${path}${prefix}/app/`)
      .trimEnd()
      .split('\n');
  const objects = ['saved-objects.ndjson', ...(ledger ? ['saved-objects-ledger.ndjson'] : [])];
  const ruleFiles = [
    'detection-rules.ndjson',
    ...(threshold ? ['detection-rules-threshold.ndjson'] : []),
    ...(ledger ? ['detection-rules-ledger.ndjson'] : []),
  ];
  const rules = ruleFiles.map((file) => {
    const parsed = read(file).map((line) => JSON.parse(line) as Rule);
    return { file, parsed: parsed.filter(({ type }) => !threshold || type !== 'esql') };
  });
  const known = rules.flatMap(({ parsed }) => parsed.map(({ rule_id }) => rule_id));
  const numbered = numberedFiles.flatMap(read).map((line) => (JSON.parse(line) as Rule).rule_id);
  const wanted = wantedOf(enable, known, numbered);
  const enabled = (rule: Rule): Rule => (wanted.includes(rule.rule_id) ? { ...rule, enabled: true } : rule);
  return {
    prefix,
    imports: [
      ...objects.map((file) => ({
        path: `${prefix}/api/saved_objects/_import?overwrite=true`,
        file,
        text: `${read(file).join('\n')}\n`,
      })),
      // Kibana removes a list that does not exist from the rules that name it.
      { path: `${prefix}/api/exception_lists/_import`, file: exceptionLists, text: `${read(exceptionLists).join('\n')}\n` },
      ...rules
        .filter(({ parsed }) => parsed.length > 0)
        .map(({ file, parsed }) => ({
          path: `${prefix}/api/detection_engine/rules/_import`,
          file,
          text: parsed.map((rule) => `${JSON.stringify(enabled(rule))}\n`).join(''),
        })),
    ],
    wanted,
  };
}

interface Rule {
  readonly rule_id: string;
  readonly type: string;
  readonly enabled: boolean;
}

const exceptionLists = 'exception-lists.ndjson';
const prefixOfIds = 'dpas-';
/** Rules are numbered from 0 in the order of these files (content/README.md). */
const numberedFiles = ['detection-rules.ndjson', 'detection-rules-ledger.ndjson'];

/**
 * @param enable  ids of rules with or without `dpas-`, or their numbers, separated by commas; or `all`
 * @param known  the ids in the files to import
 * @param numbered  the ids in the order of their numbers
 * @throws WaybillError `usage` for a rule that no file to import has
 */
function wantedOf(enable: string | undefined, known: readonly string[], numbered: readonly string[]): readonly string[] {
  if (enable === undefined) return [];
  if (enable === 'all') return known;
  const short = known.map((id) => id.slice(prefixOfIds.length));
  return enable.split(',').map((given) => {
    const id = given.trim();
    const byNumber = /^\d+$/.test(id) ? numbered[Number(id)] : undefined;
    const rule = known.find((each) => each === byNumber || each === `${byNumber}-threshold`) ?? id;
    const name = rule.replace(/^dpas-/, '');
    if (!short.includes(name)) throw new WaybillError('usage', `cannot enable the rule "${name}": ${nearestOrAll(name, short)}`);
    return `${prefixOfIds}${name}`;
  });
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
