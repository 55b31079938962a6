/** `waybill setup elasticsearch`: pipeline, mapping and template, a retention, and the key of a sink. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../../clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { Secret } from '../../../settings/secret.ts';
import { within } from '../../../deliver/deadline.ts';
import { WaybillError } from '../../../errors.ts';
import { ElasticClient, understood } from '../../../sink/elasticsearch/client.ts';
import { greet } from '../../../sink/elasticsearch/identify.ts';
import { patternOf } from '../../../sink/elasticsearch/settings.ts';
import type { ElasticsearchSettings } from '../../../sink/elasticsearch/settings.ts';
import { factsOf, install, mappingOf, makeKey, stepsFor } from '../../../sink/elasticsearch/templates.ts';
import type { Retention } from '../../../sink/elasticsearch/templates.ts';
import { agreed } from '../../operation.ts';
import { lateAt, lookMs } from '../check/sink.ts';
import type { Io } from '../../io.ts';
import { silent, sinkOf } from './sink.ts';

export async function setup(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      sink: { type: 'string' },
      retention: { type: 'string' },
      ilm: { type: 'boolean', default: false },
      key: { type: 'boolean', default: false },
      print: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
    },
  });
  const retention = retentionOf(values.retention, values.ilm);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = sinkOf(config, 'elasticsearch', values.sink);
  const given = sink.settings as ElasticsearchSettings;
  if (retention?.by === 'lifecycle' && given.index !== undefined)
    throw new WaybillError('usage', 'cannot use --retention without --ilm: ordinary indices have no lifecycle of a data stream');
  if (values.print) {
    const facts = { version: undefined, isServerless: false, builtIn: new Set(['logs@mappings', 'logs@settings', 'ecs@mappings']) };
    for (const { path, body } of stepsFor(given, sink.id, facts, retention))
      io.stdout.write(`PUT ${path}\n${JSON.stringify(body, null, 2)}\n\n`);
    return 0;
  }
  const settings = asAdministrator(given, io.env);
  await using client = await ElasticClient.make(settings, {
    id: sink.id,
    format: sink.format,
    log: silent,
    clock: systemClock,
    ca: config.tls.ca,
    proxy: config.proxy,
  });
  // Between two of these a person may take all the time in the world.
  const ask = <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> =>
    within(
      (signal) => understood(sink.id, 'sink_unavailable', signal, () => work(signal)),
      lookMs,
      () => lateAt(sink.id, settings),
      systemClock,
      io.signal,
    );
  const steps = await ask(async (signal) => {
    await greet(client, settings, { id: sink.id, clock: systemClock }, signal);
    return stepsFor(settings, sink.id, await factsOf(client, signal), retention);
  });
  const plan = [
    `At ${client
      .routes()
      .map(({ target }) => target)
      .join(', ')}, for sink "${sink.id}", these are put, whatever they held before:`,
    ...steps.map(({ path }) => `  ${path}`),
    ...(values.key ? [`  an API key "waybill-${sink.id}" with the rights of the sink on "${patternOf(settings)}"`] : []),
  ];
  if (!(await agreed(plan, values, io))) return 1;
  for (const { path } of await ask((signal) => install(client, settings, sink.id, signal, retention))) io.stderr.write(`put ${path}\n`);
  if ((await ask((signal) => mappingOf(client, settings, signal))).isOurs === false)
    io.stderr.write(`what is there already keeps its mapping until it is rolled over: POST /${patternOf(settings)}/_rollover\n`);
  if (values.key) io.stdout.write(`${await ask((signal) => makeKey(client, settings, sink.id, signal))}\n`);
  return 0;
}

function retentionOf(after: string | undefined, ilm: boolean): Retention | undefined {
  if (after === undefined) {
    if (ilm) throw new WaybillError('usage', 'cannot use --ilm alone: --retention says at which age events are deleted');
    return undefined;
  }
  if (!/^[1-9]\d{0,5}[dh]$/.test(after))
    throw new WaybillError('usage', `cannot use --retention "${after}": it is not an age such as 365d`);
  return { after, by: ilm ? 'ilm' : 'lifecycle' };
}

/** The sink's settings with the credentials of whoever sets up, where the environment names them. */
function asAdministrator(settings: ElasticsearchSettings, env: NodeJS.ProcessEnv): ElasticsearchSettings {
  const { WAYBILL_SETUP_API_KEY: key, WAYBILL_SETUP_USERNAME: user, WAYBILL_SETUP_PASSWORD: password } = env;
  const named = (name: string, value: string): Secret => {
    const secret = new Secret(value);
    secret.bind(name, undefined);
    return secret;
  };
  const nobody = { apiKey: undefined, username: undefined, password: undefined };
  if (key) return { ...settings, ...nobody, apiKey: named('WAYBILL_SETUP_API_KEY', key) };
  if (user) return { ...settings, ...nobody, username: user, password: named('WAYBILL_SETUP_PASSWORD', password ?? '') };
  return settings;
}
