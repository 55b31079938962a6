/**
 * `waybill check`: the configuration with every error at once, then what works and what does not, connection by connection. Sends no record
 * and changes nothing.
 */
import { parseArgs } from 'node:util';
import { systemClock, systemRandom } from '../../../clock.ts';
import { Handoff } from '../../../collect/handoff.ts';
import { Requester } from '../../../collect/requester.ts';
import { handCount } from '../../../collect/hand-count.ts';
import { loadConfig } from '../../../config/load.ts';
import type { Config, SourceConfig } from '../../../config/load.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Source } from '../../../model/source.ts';
import type { DelayMeasure, Log, Meters } from '../../../model/telemetry.ts';
import { clockFinding } from '../../../report/clock-text.ts';
import { closeDelayAdvice } from '../../../report/close-delay-advice.ts';
import { identify } from '../../../record/identity.ts';
import { microsToIso } from '../../../record/timestamp.ts';
import { calibrate, emptyIsMissing } from '../../../source/calibrate.ts';
import type { Calibration } from '../../../source/calibrate.ts';
import { createSource } from '../../../source/client.ts';
import { UnboundedQuery } from '../../../source/unbounded-query.ts';
import { wayOf } from '../../../connect/connection.ts';
import { Budget } from '../../../source/limits.ts';
import { ServerClock } from '../../../source/server-clock.ts';
import { requestsADay } from '../../idle-operation.ts';
import { certificateLines } from './certificates.ts';
import { messageLines } from './messages.ts';
import { checkSink, settingLines } from './sink.ts';
import { checkText } from './text.ts';
import { knownState, writableLines } from './state.ts';
import type { Line } from './state.ts';
import { widthOf } from '../../io.ts';
import type { Io } from '../../io.ts';

export const summary = 'checks the configuration, then every connection and right';

export const usage = `waybill check [--config FILE] [--offline] [--require-secrets] [--source ID] [--sink ID] [--json]

Checks the configuration and names every error at once. Then, unless --offline: sees whether the state can be written, gets a token, reads one
page of each source, looks at each sink, and says what works, what does not, and what weakens a guarantee. Sends no record. Either way it says
how often each source is asked at rest, whether the delays that the state has measured suggest another closeDelay, and whether a source was renamed.

  --config FILE       the configuration
  --offline           only the configuration, the size of messages, and each certificate with its key; a missing secret is listed
  --require-secrets   with --offline: a secret that is not there is an error
  --source ID         only this source
  --sink ID           only this sink

Exits 2 when the configuration itself is wrong, 1 when a server or a right is at fault.

Examples:
  waybill check --config waybill.yaml
  waybill check --offline --require-secrets
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      offline: { type: 'boolean', default: false },
      'require-secrets': { type: 'boolean', default: false },
      source: { type: 'string' },
      sink: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
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
  if (!values.offline && !only) lines.push(...(await writableLines(config)));
  const known = knownState(config);
  lines.push(...known.lines);
  for (const source of sources) lines.push(...restLines(source, known.delays));
  lines.push(...groupLines(config.sources));
  for (const sink of sinks) lines.push(...messageLines(sink, config));
  if (values.offline) {
    for (const sink of sinks) lines.push(...settingLines(sink));
    lines.push(...certificateLines({ ...config, sources, sinks }));
  } else {
    for (const source of sources) lines.push(...(await checkSource(source, config, io.signal)));
    const sinkFacts = { clock: systemClock, ca: config.tls.ca, proxy: config.proxy };
    for (const sink of sinks)
      lines.push(...(await checkSink(sink, { ...sinkFacts, sources: sink.sources ?? config.sources.map(({ id }) => id) }, io.signal)));
  }
  const failed = lines.some(({ level }) => level === 'error');
  if (values.json) io.stdout.write(`${JSON.stringify({ ok: !failed, findings: lines }, null, 2)}\n`);
  else io.stdout.write(`${checkText(lines, widthOf(io.stdout)).join('\n')}\n`);
  return failed ? 1 : 0;
}

async function checkSource(settings: SourceConfig, config: Config, signal: AbortSignal): Promise<Line[]> {
  const subject = `source ${settings.id}`;
  const lines: Line[] = [];
  const ok = (message: string): number => lines.push({ subject, level: 'ok', message });
  const budget = new Budget(systemClock, settings.requests.perSecond);
  await using source = createSource(settings, { clock: systemClock, budget, meters: unmetered, ca: config.tls.ca });
  // Whoever looks at the check is waiting: one failure is enough to try another question.
  const unboundedQuery = new UnboundedQuery({ id: settings.id, source, clock: systemClock, log: silent, maxFailures: 1 });
  try {
    await source.authenticate(signal);
    ok(`a token is had from "${settings.auth.authUrl}" for client "${settings.auth.clientId}"`);
    const found = await calibrate(unboundedQuery, settings.pageSize, signal);
    ok(`${settings.endpoint} is read: pages of ${found.pageSize}, ${found.total ?? 'no'} records counted`);
    const { startTime } = unboundedQuery.query;
    if (startTime !== undefined) {
      const message = `the question without times is not answered: records since ${startTime} are counted instead, and a total as large as that may be taken for a cap`;
      lines.push({ subject, level: 'warning', message });
    }
    if (found.total === undefined) {
      lines.push({
        subject,
        level: 'warning',
        message: 'the service gives no usable totalRecords: no window can be proven, each will be a gap (total)',
      });
    }
    if (!found.dated)
      lines.push({ subject, level: 'warning', message: 'answers carry no Date: server time is taken from the newest record' });
    const missing = await emptyIsMissing(unboundedQuery, found.pageSize, signal);
    if (missing !== undefined) {
      const message = `the service answers 404 where nothing matches, which is no count: each quiet window will be a gap (unreadable): ${missing}`;
      lines.push({ subject, level: 'warning', message });
    }
    lines.push(...(await countLine(unboundedQuery, settings, found, signal)));
    lines.push(...(await clockLine(unboundedQuery, subject, found.pageSize, signal)));
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    lines.push({ subject, level: 'error', message: messageOf(thrown) });
  }
  // Service and token endpoint are often one host; and a way that failed has said so.
  if (!lines.some(({ level }) => level === 'error')) for (const way of new Set(source.routes().map(wayOf))) ok(way);
  return lines;
}

/** Whether the total of one small window is what reading it brings. Nothing is said where that cannot be counted in the time of one request. */
async function countLine(source: Source, settings: SourceConfig, found: Calibration, signal: AbortSignal): Promise<Line[]> {
  const { id, closeDelay, requests } = settings;
  if (found.total === undefined) return [];
  const parts = { clock: systemClock, log: silent };
  const serverClock = new ServerClock({ source: id, closeDelay, ...parts });
  const requester = new Requester({ source, sourceId: id, uidOf: identify(id), serverClock, random: systemRandom, ...parts });
  const paging = { first: found.firstPage, size: found.pageSize };
  const sleep = (ms: number, stop: AbortSignal): Promise<void> => systemClock.sleep(ms, stop);
  const counting = { requester, paging, log: silent, sleep, handoff: new Handoff(), store: () => Promise.resolve() };
  const enough = AbortSignal.timeout(requests.timeout);
  try {
    const count = await handCount(counting, found.total, AbortSignal.any([signal, enough]));
    if (!count) return [];
    const window = `${microsToIso(count.from)} to ${microsToIso(count.to)}`;
    const subject = `source ${id}`;
    const lines: Line[] = [];
    if (count.misnumbered) {
      const { asked, said } = count.misnumbered;
      const message = `the answer for page ${asked} says that it is page ${said}: page numbers of the service cannot be trusted; where pages end is told by what they bring`;
      lines.push({ subject, level: 'warning', message });
    }
    if (count.agrees)
      return [...lines, { subject, level: 'ok', message: `its total agrees with a hand count: ${count.read} records around ${window}` }];
    const message = `its total does not agree with a hand count: ${count.counted} counted, ${count.read} read around ${window}; windows cannot be proven`;
    return [...lines, { subject, level: 'warning', message }];
  } catch (thrown) {
    if (thrown === enough.reason) return [];
    throw thrown;
  }
}

/** Compares the service's clock with the local one: the slower of the two decides when a window is due. */
async function clockLine(source: Source, subject: string, pageSize: number, signal: AbortSignal): Promise<Line[]> {
  const { date, received } = await source.page({ query: {}, page: undefined, pageSize }, signal);
  if (date === undefined) return [];
  return [{ subject, ...clockFinding((date * 1000 - received) / 1e6) }];
}

/** What follows from the settings of a source, and from what the state has measured, without asking anybody. */
function restLines(settings: SourceConfig, measured: ReadonlyMap<string, DelayMeasure>): Line[] {
  const subject = `source ${settings.id}`;
  const { perSecond } = settings.requests;
  const daily = requestsADay(settings);
  const rate = daily / 86_400;
  const message = `about ${daily} requests a day at rest, ${rate.toFixed(2)} a second`;
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

/** Sources that share a budget need it together: what each of them needs may be far less. */
function groupLines(sources: readonly SourceConfig[]): Line[] {
  const groups = Map.groupBy(sources, ({ requests }) => requests.group);
  return [...groups].flatMap(([group, members]) => {
    const rate = members.reduce((sum, source) => sum + requestsADay(source), 0) / 86_400;
    const perSecond = Math.min(...members.map(({ requests }) => requests.perSecond));
    if (group === undefined || rate <= perSecond) return [];
    const message = `${members.length} sources share ${perSecond} requests a second and ask ${rate.toFixed(1)} at rest: polls will come later than pollInterval says`;
    return [{ subject: `group ${group}`, level: 'warning', message }];
  });
}

/** With --source or --sink given, only those are looked at. */
function chosen<Item extends { readonly id: string }>(
  what: string,
  all: readonly Item[],
  id: string | undefined,
  only: boolean,
): readonly Item[] {
  if (id === undefined) return only ? [] : all;
  const found = all.filter((item) => item.id === id);
  if (found.length === 0)
    throw new WaybillError('usage', `cannot find the ${what} "${id}": there are ${all.map((item) => item.id).join(', ')}`);
  return found;
}

function names(what: string, items: readonly { readonly id: string }[]): string {
  return `${items.length} ${what}${items.length === 1 ? '' : 's'}${items.length === 0 ? '' : ` (${items.map(({ id }) => id).join(', ')})`}`;
}

const silent: Log = { write: () => undefined };
const unmetered: Pick<Meters, 'sourceRequest'> = { sourceRequest: () => undefined };
