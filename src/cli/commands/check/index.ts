/** `waybill check`: checks the configuration, then each connection. Sends no record and changes nothing. */
import { systemClock, systemRandom } from '../../../time/clock.ts';
import { Handoff } from '../../../collect/handoff.ts';
import { Requester } from '../../../collect/requester.ts';
import { contradictionsNow, misread } from '../../../collect/contradictions.ts';
import { handCount } from '../../../collect/hand-count.ts';
import { loadConfig, type Config, type SourceConfig } from '../../../config/load.ts';
import { databaseFindings } from '../../../fleet/check.ts';
import { shardNumbers } from '../../../fleet/database.ts';
import { openSource } from '../../../daemon/open-source.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { silentLog } from '../../../telemetry/discard.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import type { Source } from '../../../model/source.ts';
import type { DelayMeasure } from '../../../model/telemetry.ts';
import { clockFinding } from '../../../report/clock-text.ts';
import { closeDelayAdvice } from '../../../report/close-delay-advice.ts';
import { identify } from '../../../record/identity.ts';
import { microsToIso } from '../../../record/timestamp.ts';
import { calibrate, emptyIsMissing, type Calibration } from '../../../collect/calibrate.ts';
import { UnboundedQuery } from '../../../source/unbounded-query.ts';
import { wayOf } from '../../../connect/connection.ts';
import { ServerClock } from '../../../source/server-clock.ts';
import { requestsADay } from './idle-requests.ts';
import { certificateLines, endingLines } from './certificates.ts';
import { messageLines } from './messages.ts';
import { checkSink, settingLines } from './sink.ts';
import { checkText } from './text.ts';
import { sizingLines } from './sizing.ts';
import { adminLines } from './admin.ts';
import { knownState, writableLines, type Line } from './state.ts';
import { defineCommand } from '../../command.ts';
import { printJson, widthOf, type Io } from '../../io.ts';
import { byId } from '../../not-found.ts';
import { withDatabase } from '../../../fleet/readers.ts';
import { accessOf } from '../../state-access.ts';
import { configOption, jsonOption, text, toggle, type ValuesOf } from '../../option.ts';

const options = {
  source: text('ID', 'only this source'),
  sink: text('ID', 'only this sink'),
  offline: toggle('check only the configuration, message sizes, and certificates with their keys; a missing secret is a warning'),
  'require-secrets': toggle('with --offline: a missing secret is an error'),
  ...jsonOption,
  ...configOption,
};

export const command = defineCommand({
  name: 'check',
  summary: 'checks the configuration, then every connection and permission',
  description: `Checks the configuration and reports every error at once. Then, unless --offline is given: checks that the state is writable and the
address of the admin server free, obtains a token, reads one page of each source, and checks each sink. Sends no record. It also reports how often each idle source is polled, whether the
measured delays suggest another closeDelay, what the measured rate needs (journal, requests, outage), and whether a source was renamed.

Exits with 2 for an invalid configuration, with 1 for a problem with a server or a permission.`,
  options,
  examples: ['waybill check --config waybill.yaml', 'waybill check --offline --require-secrets'],
  run,
});

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const { config, warnings, file } = await loadConfig(values.config, io.env, {
    requireSecrets: !values.offline || values['require-secrets'],
    now: systemClock.now(),
  });
  const only = values.source !== undefined || values.sink !== undefined;
  const sources = chosen('source', config.sources, values.source, only);
  const sinks = chosen('sink', config.sinks, values.sink, only);
  const lines: Line[] = warnings.map((message) => ({ subject: 'configuration', level: 'warning', message }));
  lines.push({
    subject: 'configuration',
    level: 'ok',
    message: `"${file}" is valid: ${names('source', config.sources)}, ${names('sink', config.sinks)}`,
  });
  if (!values.offline && !only) lines.push(...(await writableLines(config)), ...(await adminLines(config)));
  const database = config.fleet && !values.offline ? await askDatabase(config) : undefined;
  if (database && !only) lines.push(...database.lines);
  const known = knownState(config);
  lines.push(...known.lines);
  for (const source of sources) lines.push(...idleLines(source, known.delays));
  if (!only) lines.push(...sizingLines(known.measured, config.journal.maxSize));
  lines.push(...groupLines(config.sources));
  for (const sink of sinks) lines.push(...messageLines(sink, config));
  if (values.offline) {
    for (const sink of sinks) lines.push(...settingLines(sink));
    lines.push(...certificateLines({ ...config, sources, sinks }));
  } else {
    for (const source of sources) lines.push(...(await checkSource(source, config, io.signal)));
    for (const sink of sinks) {
      const context = sinkContext(sink, config, { clock: systemClock }, known.place);
      lines.push(...(await checkSink(sink, { ...context, fleet: context.fleet && { shards: database?.shards } }, io.signal)));
    }
  }
  const failed = lines.some(({ level }) => level === 'error');
  if (values.json) printJson(io, { ok: !failed, findings: lines });
  else io.stdout.write(`${checkText(lines, widthOf(io.stdout)).join('\n')}\n`);
  return failed ? 1 : 0;
}

/** @returns the number of shards, unless the database cannot tell it */
async function askDatabase(config: Config): Promise<{ readonly lines: readonly Line[]; readonly shards?: number }> {
  const subject = 'database';
  try {
    return await withDatabase(accessOf(config), async (pool) => ({
      lines: (await databaseFindings(pool, systemClock)).map((found) => ({ subject, ...found })),
      shards: (await shardNumbers(pool)).length,
    }));
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    return { lines: [{ subject, level: 'error', message: messageOf(thrown), setting: 'fleet.database' }] };
  }
}

/** Before a record that its query does not show is looked for again. */
const repeatMs = 2_000;
/** Enough for a request at each offset of a time zone. */
const lookMs = 15_000;

async function checkSource(settings: SourceConfig, config: Config, signal: AbortSignal): Promise<Line[]> {
  const subject = `source ${settings.id}`;
  const lines: Line[] = [];
  const add = (level: Line['level'], message: string): number => lines.push({ subject, level, message });
  const ok = (message: string): number => add('ok', message);
  await using source = openSource(settings, config, { clock: systemClock });
  // The user waits: one failure is enough to switch to a time-bounded query.
  const unboundedQuery = new UnboundedQuery({ id: settings.id, source, clock: systemClock, log: silentLog, maxFailures: 1 });
  try {
    await source.authenticate(signal);
    ok(`obtained a token from "${settings.auth.authUrl}" for client "${settings.auth.clientId}"`);
    const found = await calibrate(unboundedQuery, settings.pageSize, signal);
    ok(`read ${settings.endpoint}: pages of ${found.pageSize}, ${found.total ?? 'no'} records counted`);
    if (found.total === undefined)
      add('warning', 'the service returns no usable totalRecords: windows cannot be proven, and each becomes a gap (total)');
    if (!found.dated) add('warning', 'responses have no Date header: using the time of the newest record as server time');
    const missing = await emptyIsMissing(unboundedQuery, found.pageSize, signal);
    if (missing !== undefined)
      add(
        'warning',
        `the service responds with 404 when nothing matches, so empty windows cannot be counted, and each becomes a gap (unreadable): ${missing}`,
      );
    for (const form of unboundedQuery.forms) add('warning', form);
    lines.push(...(await countLines(unboundedQuery, settings, found, signal)));
    lines.push(...(await clockLine(unboundedQuery, subject, found.pageSize, signal)));
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    add('error', messageOf(thrown));
  }
  // Service and token endpoint are often one host; a failed route is already reported.
  if (!lines.some(({ level }) => level === 'error')) for (const way of new Set(source.routes().map(wayOf))) ok(way);
  const peers = source.routes().flatMap(({ peer }) => peer ?? []);
  lines.push(...endingLines(subject, `sources.${settings.id}`, peers, systemClock.now()));
  return lines;
}

/**
 * Looks for records by their times, then compares the total of a small window with its records. Returns no line when that takes longer than
 * the timeout of a request, or `lookMs`.
 */
async function countLines(source: Source, settings: SourceConfig, found: Calibration, signal: AbortSignal): Promise<Line[]> {
  const { id, closeDelay, requests } = settings;
  const parts = { clock: systemClock, log: silentLog };
  const serverClock = new ServerClock({ source: id, closeDelay, ...parts });
  const requester = new Requester({ source, sourceId: id, uidOf: identify(id), serverClock, random: systemRandom, ...parts });
  const paging = { first: found.firstPage, size: found.pageSize };
  const counting = { requester, paging, ...parts };
  const enough = AbortSignal.timeout(Math.max(requests.timeout, lookMs));
  const stop = AbortSignal.any([signal, enough]);
  const subject = `source ${id}`;
  try {
    const looking = { ...counting, handoff: new Handoff(), pauseMs: Math.min(repeatMs, closeDelay) };
    const contradictions = await contradictionsNow(looking, settings, stop);
    if (contradictions.length > 0) return contradictions.map((message) => ({ subject, level: 'error', message }));
    const count = found.total === undefined ? undefined : await handCount(counting, found.total, stop);
    if (!count) return [];
    const unfound = count.absent && (await misread(looking, count.absent, true, stop));
    if (unfound !== undefined) return [{ subject, level: 'error', message: unfound }];
    const window = `the sample window ${microsToIso(count.from)} to ${microsToIso(count.to)}`;
    const lines: Line[] = [];
    if (count.misnumbered) {
      const { requested, reported } = count.misnumbered;
      const message = `the service numbered page ${requested} as page ${reported}; Waybill ignores these numbers and finds the last page by the records`;
      lines.push({ subject, level: 'warning', message });
    }
    if (count.agrees)
      return [...lines, { subject, level: 'ok', message: `totalRecords equals the records returned: ${count.read} in ${window}` }];
    const message = `totalRecords differs from the records returned: ${count.counted} counted, ${count.read} returned in ${window}; windows cannot be verified`;
    return [...lines, { subject, level: 'warning', message }];
  } catch (thrown) {
    if (thrown === enough.reason) return [];
    throw thrown;
  }
}

/** Compares the clock of the service with the local clock. A window is due when both have reached its time. */
async function clockLine(source: Source, subject: string, pageSize: number, signal: AbortSignal): Promise<Line[]> {
  const { date, received } = await source.page({ query: {}, page: undefined, pageSize }, signal);
  if (date === undefined) return [];
  return [{ subject, ...clockFinding((date * 1000 - received) / 1e6) }];
}

/** Findings from the settings of a source and the measurements in the state, without a request. */
function idleLines(settings: SourceConfig, measured: ReadonlyMap<string, DelayMeasure>): Line[] {
  const subject = `source ${settings.id}`;
  const { perSecond } = settings.requests;
  const daily = requestsADay(settings);
  const rate = daily / 86_400;
  const message = `about ${daily} requests a day when idle, ${rate.toFixed(2)} a second`;
  const beyond = rate > perSecond;
  const delays = measured.get(settings.id);
  const advice = delays && closeDelayAdvice(delays, settings.closeDelay / 1000);
  return [
    {
      subject,
      level: beyond ? 'warning' : 'ok',
      message: beyond ? `${message}, which is more than requests.perSecond (${perSecond})` : message,
    },
    ...(advice ? [{ subject, ...advice }] : []),
  ];
}

/** The sources of a group share its rate limit. */
function groupLines(sources: readonly SourceConfig[]): Line[] {
  const groups = Map.groupBy(sources, ({ requests }) => requests.group);
  return [...groups].flatMap(([group, members]) => {
    const rate = members.reduce((sum, source) => sum + requestsADay(source), 0) / 86_400;
    const perSecond = Math.min(...members.map(({ requests }) => requests.perSecond));
    if (group === undefined || rate <= perSecond) return [];
    const message = `${members.length} sources share ${perSecond} requests a second and need ${rate.toFixed(1)} when idle: polls will be later than pollInterval`;
    return [{ subject: `group ${group}`, level: 'warning', message }];
  });
}

/** The items to check: all, or only the one of --source or --sink. */
function chosen<Item extends { readonly id: string }>(
  what: string,
  all: readonly Item[],
  id: string | undefined,
  only: boolean,
): readonly Item[] {
  if (id === undefined) return only ? [] : all;
  return [byId(what, all, id)];
}

function names(what: string, items: readonly { readonly id: string }[]): string {
  return `${items.length} ${what}${items.length === 1 ? '' : 's'}${items.length === 0 ? '' : ` (${items.map(({ id }) => id).join(', ')})`}`;
}
