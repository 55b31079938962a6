/** `waybill status`: a verdict, then sources, sinks and journal. Asks the running daemon, here or elsewhere, else reads what the state knows. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { parseZone } from '../../settings/period.ts';
import { reportSettings, requestedBy } from '../../daemon/live-status.ts';
import { WaybillError } from '../../errors.ts';
import { snapshotOf, withCoverage } from '../../journal/queries/snapshot.ts';
import { lastWrite, openReadOnly } from '../../journal/state.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { worst } from '../../report/advice.ts';
import { statusJson } from '../../report/verdict.ts';
import { version } from '../../version.ts';
import { adminOptions, adminServer, adminUsage, liveSnapshot } from '../daemon-client.ts';
import type { AdminValues } from '../daemon-client.ts';
import { widthOf } from '../io.ts';
import type { Io } from '../io.ts';
import { readUsage, settingsFor, stateOptions } from '../state-access.ts';
import type { KnownSettings, StateValues } from '../state-access.ts';
import { statusText } from '../../report/status-text.ts';

export const summary = 'shows what is complete, and what needs attention';

export const usage = `waybill status [--source PATTERN] [--tz ZONE] [--json] [--exit-code]

A summary first, then sources, sinks and the journal, and last what to do about the worst trouble.

  --source PATTERN    only these sources; * stands for anything, as in 'acme-*'
  --tz ZONE           zone of the times in text; default UTC
  --exit-code         exits 3 when something needs attention: whenever the text ends with "To do"
  --json              as JSON
${readUsage}
${adminUsage}

Examples:
  waybill status
  waybill status --source 'acme-*' --json
  waybill status --exit-code --admin https://waybill.example:9464 --admin-ca ca.pem
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      ...{ ...stateOptions, ...adminOptions },
      source: { type: 'string' },
      tz: { type: 'string', default: 'UTC' },
      json: { type: 'boolean', default: false },
      'exit-code': { type: 'boolean', default: false },
    },
  });
  const tz = parseZone(values.tz);
  const whole = await currentSnapshot(values, io);
  const requested = values.source === undefined ? () => true : glob(values.source);
  const snapshot = { ...whole, sources: whole.sources.filter(({ id }) => requested(id)) };
  if (values.source !== undefined && snapshot.sources.length === 0) {
    throw new WaybillError('usage', `cannot find a source "${values.source}": there are ${whole.sources.map(({ id }) => id).join(', ')}`);
  }
  if (values.json) io.stdout.write(`${JSON.stringify(statusJson(snapshot), null, 2)}\n`);
  else {
    const color = 'isTTY' in io.stdout && io.stdout.isTTY === true && !io.env['NO_COLOR'];
    // A program or a file gets whole lines: what is cut off is lost there.
    const text = statusText(snapshot, { color, tz, width: widthOf(io.stdout, Infinity) });
    io.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
  }
  return values['exit-code'] && worst(snapshot) !== undefined ? 3 : 0;
}

/** The moment as a running daemon knows it, here or elsewhere, else as the state does. */
export async function currentSnapshot(values: StateValues & AdminValues, io: Io): Promise<Snapshot> {
  const server = adminServer(values, io.env);
  return server
    ? server.get<Snapshot>('/snapshot', { sources: 'objects', sinks: 'objects', journal: 'object' })
    : localSnapshot(await settingsFor(values, io));
}

/** The moment as the daemon on this state knows it, else as the state does. */
export async function localSnapshot(known: KnownSettings): Promise<Snapshot> {
  return (await liveSnapshot(known.settings.dataDir)) ?? stopped(known);
}

/** The default of `closeDelay`, where no configuration sets another. */
const defaultCloseDelayMs = 900_000;

function stopped({ settings, isConfigured }: KnownSettings): Snapshot {
  const db = openReadOnly(settings.dataDir);
  try {
    const closeDelay = new Map(settings.sources.map((source) => [source.id, source.closeDelay]));
    const snapshot = snapshotOf(db, version, systemClock.now() * 1000, {
      source: () => undefined,
      sink: () => undefined,
      closeDelaySeconds: (id) => (closeDelay.get(id) ?? defaultCloseDelayMs) / 1000,
      paused: undefined,
      maxSize: settings.journal.maxSize,
      configured: isConfigured ? settings.sources.map(({ id }) => id) : undefined,
      requested: requestedBy(settings),
      stopped: { since: lastWrite(settings.dataDir) },
    });
    return withCoverage(db, snapshot, reportSettings(settings));
  } finally {
    db.close();
  }
}

function glob(pattern: string): (id: string) => boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`);
  return (id) => expression.test(id);
}
