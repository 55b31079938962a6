/**
 * Loads the configuration: finds and reads the file, resolves references, checks every setting, and reports all problems at once. The
 * result has every default, each secret has the name of its setting, and each source has its proxy.
 */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { z } from 'zod';
import type { deliverSettings } from '../deliver/settings.ts';
import { WaybillError, messageOf } from '../errors/errors.ts';
import type { PrivacySettings } from '../normalize/settings.ts';
import type { SinkDefinition } from '../sink/define.ts';
import { remember } from '../errors/secrets.ts';
import type { ProxySettings } from '../connect/settings.ts';
import { crossFaults } from './cross-checks.ts';
import { type Document, type Fault, keyOf, type Path, readDocument } from './document.ts';
import { withIncluded } from './include.ts';
import { PemFiles } from '../settings/pem.ts';
import { orderOf, problem, schemaFaults, settingName } from './problems.ts';
import { environmentProxy } from './environment-proxy.ts';
import type { Environment } from '../settings/reference.ts';
import { configSchema, type Settings } from './schema.ts';
import { isSecretAt, memberOf } from './schema-walk.ts';
import { Secret } from '../settings/secret.ts';
import { ignoredVariables } from '../telemetry/variables.ts';
import { environmentProblems, settingWarnings } from './warnings.ts';

type Given = Settings['sources'][number];
type Common = z.output<z.ZodObject<ReturnType<typeof deliverSettings>>>;

/**
 * A source with its effective proxy (its own, the general one, or the environment's) and `privacy` (each member its own or the general
 * one).
 */
export type SourceConfig = Omit<Given, 'proxy' | 'privacy'> & {
  readonly proxy: ProxySettings | undefined;
  readonly privacy: PrivacySettings;
};

/** A sink: the settings common to all sinks, and in `settings` the settings of its type. */
export type SinkConfig = Common &
  Pick<Settings['sinks'][number], 'includeOriginal' | 'filter' | 'cef'> & {
    readonly type: string;
    /** Overrides the privacy of a source: `{ ...source.privacy, ...sink.privacy }`. */
    readonly privacy: Partial<PrivacySettings>;
    readonly definition: SinkDefinition;
    readonly settings: Readonly<Record<string, unknown>>;
  };

export type Config = Omit<Settings, 'sources' | 'sinks' | 'proxy' | 'include'> & {
  readonly sources: readonly SourceConfig[];
  readonly sinks: readonly SinkConfig[];
  readonly proxy: ProxySettings | undefined;
  /** Restricted to the sources of this shard. */
  readonly shard?: number;
};

export interface Loaded {
  readonly config: Config;
  /** Warnings for `check` and the start, one line each. */
  readonly warnings: readonly string[];
  readonly file: string;
  /** The files to watch: the files that `include`, `${file:…}` and PEM settings name. */
  readonly files: readonly string[];
}

/** A change of one of these can change the configuration. */
export interface Watched {
  readonly files: readonly string[];
  /** Names and patterns of `include`, relative to `directory`. */
  readonly patterns: readonly string[];
  readonly directory: string;
}

export interface LoadOptions {
  /** The known types of sinks; default all. */
  readonly sinks?: readonly SinkDefinition[];
  /** False: a missing secret is a warning, as for `check --offline`. Default true: it is a problem. */
  readonly requireSecrets?: boolean;
  /** ms. Without it, a `start` in the future causes no warning. */
  readonly now?: number;
  /** Called with the files and patterns of the configuration, before the check of its settings. */
  readonly reads?: (watched: Watched) => void;
  /** Reads the configuration itself; default from the file. */
  readonly read?: (file: string) => string;
}

const usual = ['./waybill.yaml', '/etc/waybill/waybill.yaml'];

/**
 * @param path  from `--config`; default `WAYBILL_CONFIG`, `./waybill.yaml`, `/etc/waybill/waybill.yaml`
 * @throws WaybillError `config_invalid`, with every problem in `problems`
 */
export async function loadConfig(path: string | undefined, environment: Environment, options: LoadOptions = {}): Promise<Loaded> {
  const { file, text } = readConfigured(path, environment, options.read);
  options.reads?.({ files: [file], patterns: [], directory: dirname(file) });
  const sinks = options.sinks ?? (await import('../sink/index.ts')).sinks;
  return { ...readConfig(text, file, environment, sinks, options), file };
}

/** @param warnings  listed after the problems */
export function refusal(file: string, problems: readonly string[], warnings: readonly string[] = []): WaybillError {
  const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
  return new WaybillError('config_invalid', `cannot use the configuration "${file}": ${count}`, {
    problems: [...problems, ...warnings.map((warning) => `warning: ${warning}`)],
  });
}

function readConfig(
  text: string,
  file: string,
  environment: Environment,
  sinks: readonly SinkDefinition[],
  { requireSecrets = true, now = Infinity, reads }: LoadOptions,
): Omit<Loaded, 'file'> {
  const { document, included, patterns, warnings } = withIncluded(parse(text, environment), file, (name) => parse(name, environment));
  const watched = { files: [file, ...referredBy(document), ...included], patterns, directory: dirname(file) };
  reads?.(watched);
  if (document.errors.length > 0) throw refusal(file, document.errors);

  const schema = configSchema(sinks);
  const tolerated = (fault: Fault) => !requireSecrets && fault.missing === true && isSecretAt(schema, fault.path, document.value);
  const result = schema.safeParse(document.value);
  const files = [...referredBy(document), ...(result.success ? bind(result.data, document) : []), ...included];
  const faults = [
    ...document.faults.filter((fault) => !tolerated(fault)),
    ...schemaFaults(schema, document, result.error?.issues ?? []),
    ...crossFaults(document, [file, ...files], sinks),
  ];
  faults.sort((a, b) => orderOf(document, a.path) - orderOf(document, b.path));
  const problems = [...faults.map((fault) => problem(document, fault)), ...environmentProblems(environment)];
  const absent = document.faults.filter(tolerated).map((fault) => problem(document, fault));
  if (!result.success || problems.length > 0) throw refusal(file, [...new Set(problems)], absent);

  return {
    config: complete(result.data, document, sinks, environment),
    warnings: [...absent, ...warnings, ...settingWarnings(schema, result.data, document, now), ...ignoredVariables(environment)],
    files: [...new Set(files)],
  };
}

export function readConfigured(
  path: string | undefined,
  environment: Environment,
  read = (file: string): string => readFileSync(file, 'utf8'),
): { readonly file: string; readonly text: string } {
  const given = path ?? (environment['WAYBILL_CONFIG'] === '' ? undefined : environment['WAYBILL_CONFIG']);
  const candidates = given === undefined ? usual : [given];
  for (const file of candidates) {
    try {
      return { file, text: read(file) };
    } catch (thrown) {
      const absent = thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
      if (given !== undefined || !absent) {
        throw new WaybillError('config_invalid', `cannot read the configuration "${file}": ${messageOf(thrown)}`, { cause: thrown });
      }
    }
  }
  const message = `cannot find a configuration: neither ${usual.join(' nor ')} exists; pass --config FILE or set WAYBILL_CONFIG`;
  throw new WaybillError('config_invalid', `${message}, or create one with "waybill init"`);
}

export function parse(text: string, environment: Environment): Document {
  try {
    return readDocument(text, environment);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return { value: undefined, places: new Map(), faults: [], errors: ['the file is nested too deeply to be a configuration'] };
  }
}

/** Every file that a setting refers to, even if the value is invalid. */
function referredBy({ places }: Document): readonly string[] {
  return [...places.values()].flatMap(({ template }) => template?.files ?? []);
}

/** Gives secrets and PEM files the name of their setting and their origin. @returns the files from which they are read */
function bind(settings: Settings, document: Document): readonly string[] {
  const files = new Set<string>();
  const visit = (value: unknown, path: Path): void => {
    if (value instanceof Secret) {
      value.bind(settingName(document, path), document.places.get(keyOf(path))?.template);
      value.files.forEach((file) => files.add(file));
    } else if (value instanceof PemFiles) {
      value.bind(settingName(document, path));
      value.paths.forEach((file) => files.add(file));
    } else if (Array.isArray(value)) {
      value.forEach((item, index) => visit(item, [...path, index]));
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) visit(item, [...path, key]);
    }
  };
  visit(settings, []);
  if (settings.admin.tls) files.add(settings.admin.tls.cert).add(settings.admin.tls.key);
  return [...files];
}

/** Applies the general settings to each source, and separates the settings of each type of sink. */
function complete(settings: Settings, document: Document, sinks: readonly SinkDefinition[], environment: Environment): Config {
  const general = settings.proxy ?? environmentProxy(environment);
  const direct = (proxy: typeof general): ProxySettings | undefined => (proxy === 'none' ? undefined : proxy);
  const { dataDir, journal, fleet, tls, privacy, mapping, shutdownTimeout, admin, log, telemetry } = settings;
  const sources = settings.sources.map((source, index) => ({
    ...source,
    proxy: direct(source.proxy ?? general),
    privacy: masked({ ...privacy, ...overriding(source.privacy, document, ['sources', index, 'privacy']) }),
  }));
  return {
    dataDir,
    journal,
    fleet,
    tls,
    privacy: masked(privacy),
    mapping,
    shutdownTimeout,
    admin,
    log,
    telemetry,
    proxy: direct(general),
    sources,
    sinks: settings.sinks.map(sinkConfig),
  };

  function sinkConfig(sink: Settings['sinks'][number], index: number): SinkConfig {
    const definition = sinks.find(({ type }) => type === sink.type);
    if (!definition) throw new RangeError(`cannot find the definition of "${sink.type}"`);
    const own = Object.keys(definition.config.shape);
    const part = (requested: boolean) => Object.fromEntries(Object.entries(sink).filter(([key]) => own.includes(key) === requested));
    return {
      ...(part(false) as unknown as SinkConfig),
      ledger: sink.ledger || definition.alwaysLedger === true,
      privacy: masked(overriding(sink.privacy, document, ['sinks', index, 'privacy'])),
      definition,
      settings: part(true),
    };
  }
}

/** Registers the key for masking: it is the only secret that is not a `Secret`. */
function masked<Privacy extends Partial<PrivacySettings>>(privacy: Privacy): Privacy {
  if (privacy.key !== undefined) remember(privacy, privacy.key);
  return privacy;
}

/** The settings that the file contains. Defaults from the schema must not override settings of a higher level. */
function overriding(privacy: PrivacySettings | undefined, document: Document, path: Path): Partial<PrivacySettings> {
  const given = path.reduce(memberOf, document.value);
  return Object.fromEntries(Object.entries(privacy ?? {}).filter(([key]) => memberOf(given, key) !== undefined));
}
