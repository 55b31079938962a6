/** `waybill setup elasticsearch`: pipeline, mapping, template, retention and API key of a sink. */
import { systemClock } from '../../../time/clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { within } from '../../../time/deadline.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { ElasticClient, understood } from '../../../sink/elasticsearch/client.ts';
import { authenticate } from '../../../sink/elasticsearch/identify.ts';
import { patternOf, type ElasticsearchSettings } from '../../../sink/elasticsearch/settings.ts';
import { factsOf, install, mappingOf, makeKey, stepsFor, type Retention } from '../../../sink/elasticsearch/templates.ts';
import { confirmed } from '../../operation.ts';
import { lateAt, lookMs } from '../check/sink.ts';
import type { Io } from '../../io.ts';
import { administratorOf } from './administrator.ts';
import { sinkOf } from './sink.ts';

interface SetupValues {
  readonly config: string | undefined;
  readonly sink: string;
  readonly retention: string | undefined;
  readonly ilm: boolean;
  readonly key: boolean;
  readonly print: boolean;
  readonly yes: boolean;
}

export async function setup(values: SetupValues, io: Io): Promise<number> {
  const retention = retentionOf(values.retention, values.ilm);
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: false });
  const sink = sinkOf(config, 'elasticsearch', values.sink);
  const given = sink.settings as ElasticsearchSettings;
  if (retention?.by === 'lifecycle' && given.index !== undefined)
    throw new WaybillError('usage', 'cannot use --retention without --ilm: plain indices have no data stream lifecycle');
  if (values.print) {
    const facts = { version: undefined, isServerless: false, builtIn: new Set(['logs@mappings', 'logs@settings', 'ecs@mappings']) };
    for (const { path, body } of stepsFor(given, sink.id, facts, retention))
      io.stdout.write(`PUT ${path}\n${JSON.stringify(body, null, 2)}\n\n`);
    return 0;
  }
  const settings = administratorOf(given, io.env) ?? given;
  await using client = await ElasticClient.make(settings, sinkContext(sink, config, { clock: systemClock }));
  // One deadline a request: the user may confirm at any time.
  const ask = <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> =>
    within(
      (signal) => understood(sink.id, 'sink_unavailable', signal, () => work(signal)),
      lookMs,
      () => lateAt(sink.id, settings),
      systemClock,
      io.signal,
    );
  const steps = await ask(async (signal) => {
    await authenticate(client, settings, { id: sink.id, clock: systemClock }, signal);
    return stepsFor(settings, sink.id, await factsOf(client, signal), retention);
  });
  const nodes = client.routes().map(({ target }) => target);
  const plan = [
    `At ${nodes.join(', ')}, for sink "${sink.id}", replaces:`,
    ...steps.map(({ path }) => `  ${path}`),
    ...(values.key ? [`  creates an API key "waybill-${sink.id}" with the permissions of the sink on "${patternOf(settings)}"`] : []),
  ];
  if (!(await confirmed(plan, values, io))) return 1;
  for (const { path } of await ask((signal) => install(client, settings, sink.id, signal, retention))) io.stderr.write(`put ${path}\n`);
  if ((await ask((signal) => mappingOf(client, settings, signal))).isOurs === false)
    io.stderr.write(`existing indices keep their mapping; to roll over: POST /${patternOf(settings)}/_rollover\n`);
  if (values.key) io.stdout.write(`${await ask((signal) => makeKey(client, settings, sink.id, signal))}\n`);
  return 0;
}

function retentionOf(after: string | undefined, ilm: boolean): Retention | undefined {
  if (after === undefined) {
    if (ilm) throw new WaybillError('usage', 'cannot use --ilm without --retention');
    return undefined;
  }
  return { after, by: ilm ? 'ilm' : 'lifecycle' };
}
