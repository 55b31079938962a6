/** The output of the demo: denials as the file sink receives them, and at intervals the verdict and the ledger. */
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { originOf } from '../../../archive/head.ts';
import { signerOf } from '../../../archive/signed-note.ts';
import { verifyArchive } from '../../../archive/verify/verify.ts';
import { systemClock } from '../../../time/clock.ts';
import type { Config } from '../../../config/load.ts';
import { reportSettings } from '../../../config/report-settings.ts';
import { openLedgerReport } from '../../../journal/queries/ledger.ts';
import { snapshotOf, withCoverage } from '../../../journal/queries/snapshot.ts';
import { counted } from '../../../report/format-time.ts';
import { presentOf } from '../../../report/completeness.ts';
import { assessed } from '../../../report/summary.ts';
import { signingKeysOf } from '../../../sink/archive/key.ts';
import { openStore } from '../../../sink/archive/open.ts';
import type { ArchiveSettings } from '../../../sink/archive/settings.ts';
import { version } from '../../../disk/version.ts';
import type { Alerts } from './alerts.ts';
import { denialLine, eventParts, type Denial } from './line.ts';
import { newestOf, type Shown } from './page.ts';
import { usesColor, widthOf, type Io } from '../../io.ts';
import { byId } from '../../not-found.ts';
import { wrapped } from '../../../report/text-table.ts';
import { verifyText } from '../archive/verify-text.ts';
import { readState } from '../../state-access.ts';
import { ledgerText } from '../../../report/ledger/text.ts';

type ShownEvent = Denial & { readonly event: { readonly outcome: string } };

const lookMs = 250;
/** Denials shown in each interval of `lookMs`, so that they stay readable. The demo counts the others. */
const linesPerLook = 1;
const ledgerEveryMs = 10_000;
const windowsShown = 8;

export class DemoScreen {
  readonly #io: Io;
  readonly #directory: string;
  readonly #color: boolean;
  #alerts: Alerts | undefined;
  #newest: Shown['newest'] = [];
  #hasEnded = false;

  constructor(io: Io, directory: string) {
    this.#io = io;
    this.#directory = directory;
    this.#color = usesColor(io);
  }

  say(line: string): void {
    this.#io.stdout.write(`${line}\n`);
  }

  /** @param line  without colours */
  #wrap(line: string): void {
    for (const part of wrapped(line, widthOf(this.#io.stdout, Infinity), Infinity, '  ')) this.say(part);
  }

  /** Keeps the indentation of lines that it wraps. */
  #showAlerts(lines: readonly string[]): void {
    for (const line of lines) {
      const text = line.trimStart();
      const indent = ' '.repeat(line.length - text.length);
      const parts = wrapped(text, widthOf(this.#io.stdout, Infinity) - indent.length, Infinity, '       ');
      for (const part of parts) this.say(indent + (text.startsWith('ALERT') ? this.#red(part) : part));
    }
  }

  logFile(): { write(line: string): boolean } {
    const stream = createWriteStream(join(this.#directory, 'waybill.log'), { flags: 'a', mode: 0o600 });
    return { write: (line) => stream.write(line) };
  }

  /** @param alerts  of the attack to show, if any */
  begin(baseUrl: string, file: string, alerts: Alerts | undefined): void {
    this.#alerts = alerts;
    this.#wrap(`The service listens on ${baseUrl}:`);
    const records = alerts ? '5 actions a second of 500 people' : '1,500 records of the last minute, 25 a second';
    this.#wrap(`${records}, one record in twenty shown up to 8 s late: the next recount finds it.`);
    this.#wrap(`Configuration ${file}; events and log in the same directory.`);
  }

  listens(addresses: readonly string[]): void {
    for (const address of addresses) this.say(`Status page: ${address}/`);
    this.say('');
    const what = this.#alerts ? 'Alerts, and denials as they arrive' : 'Denials, as they arrive';
    this.say(`${what} in events.ndjson: time, reason, user, file, delay`);
  }

  /** Follows the file and the ledger until stopped. */
  async show(config: Config, stop: AbortSignal): Promise<void> {
    const path = join(this.#directory, 'events.ndjson');
    let offset = 0;
    // Without an event there may be no state yet.
    let ledgerAt = Infinity;
    let unshown = 0;
    while (!stop.aborted) {
      await systemClock.sleep(lookMs, stop).catch(() => undefined);
      const { lines, next } = await newLines(path, offset);
      offset = next;
      // Among alerts the ledger comes only at the end.
      if (lines.length > 0 && ledgerAt === Infinity && !this.#alerts) ledgerAt = systemClock.monotonic() + ledgerEveryMs;
      const events = lines.map((line) => JSON.parse(line) as ShownEvent);
      const denials = events.filter(({ event }) => event.outcome === 'failure');
      // Only the newest are shown.
      unshown += Math.max(0, denials.length - linesPerLook);
      for (const denial of denials.slice(-linesPerLook)) {
        this.say(denialLine(denial, (word) => this.#red(word), widthOf(this.#io.stdout)));
      }
      this.#newest = newestOf([...events.map(shownEvent).reverse(), ...this.#newest]);
      this.#showAlerts(this.#alerts?.add(events) ?? []);
      if (systemClock.monotonic() >= ledgerAt) {
        ledgerAt = systemClock.monotonic() + ledgerEveryMs;
        if (unshown > 0) this.say(this.#dim(`and ${counted(unshown, 'more denial')}, in events.ndjson`));
        unshown = 0;
        await this.#showLedger(config, 1);
      }
    }
  }

  shownOf(alerts: Alerts): Shown {
    return { findings: alerts.findings(), newest: this.#newest, hasEnded: this.#hasEnded };
  }

  async end(config: Config): Promise<void> {
    this.#hasEnded = true;
    await this.#showLedger(config, 0);
    if (this.#alerts) this.#showAlerts([...this.#alerts.end(), '']);
  }

  /** Verifies the archive as "waybill archive verify" does. */
  async verified(config: Config): Promise<void> {
    const { settings } = byId('sink', config.sinks, 'archive');
    const archive = settings as ArchiveSettings;
    await using store = await openStore(archive, { id: 'archive', clock: systemClock });
    const [key] = signingKeysOf(archive, 'archive');
    const origin = await originOf(store);
    if (origin === undefined) this.say('The archive has no segment yet: use a longer --for to see it verified.');
    else
      for (const line of verifyText(await verifyArchive(store, [signerOf(origin, key)]), false, systemClock.now() * 1000)) this.#wrap(line);
    this.say('');
    this.#wrap(`Ended. The files stay in ${this.#directory}: events.ndjson, archive, waybill.log, waybill.yaml, state.`);
    this.#wrap(`Again: waybill archive verify --config ${join(this.#directory, 'waybill.yaml')} --sink archive`);
    if (this.#alerts)
      this.#wrap('The rules on your own history: waybill detections try --help; for Kibana, Splunk and Sigma: content/README.md');
    this.say('Next: waybill init elasticsearch|splunk|kafka|syslog|file|archive > waybill.yaml');
  }

  /** @param minWindows  without as many windows, nothing is shown: a slow machine proves the first one later */
  async #showLedger(config: Config, minWindows: number): Promise<void> {
    await readState(config, (db) => {
      const now = systemClock.now() * 1000;
      const known = snapshotOf(db, version, now, {
        source: () => ({ trouble: undefined }),
        sink: () => undefined,
        closeDelaySeconds: () => (config.sources[0]?.closeDelay ?? 0) / 1000,
        paused: undefined,
        maxSize: config.journal.maxSize,
        configured: config.sources.map(({ id }) => id),
      });
      const snapshot = withCoverage(db, known, reportSettings(config));
      using reading = openLedgerReport(db, { now, ...reportSettings(config) });
      const { report, found } = assessed(reading, { now, from: undefined, to: undefined }, presentOf(snapshot), 'UTC');
      if (found.windows < minWindows) return;
      this.say('');
      const options = {
        by: 'window',
        tz: 'UTC',
        color: this.#color,
        width: widthOf(this.#io.stdout, Infinity),
        newest: windowsShown,
      } as const;
      this.say([...ledgerText(report, options)].join('').trimEnd());
      if (found.windows > windowsShown) this.#wrap(`All windows: waybill ledger --config ${join(this.#directory, 'waybill.yaml')}`);
      this.say('');
    });
  }

  #dim(text: string): string {
    return this.#color ? `\u001b[2m${text}\u001b[0m` : text;
  }

  #red(text: string): string {
    return this.#color ? `\u001b[31m${text}\u001b[0m` : text;
  }
}

const shownEvent = (event: ShownEvent): Shown['newest'][number] => ({ ...eventParts(event), isDenied: event.event.outcome === 'failure' });

/** The complete lines after `offset`, and the offset of the next. */
async function newLines(path: string, offset: number): Promise<{ lines: string[]; next: number }> {
  const handle = await open(path, 'r').catch(() => undefined);
  if (!handle) return { lines: [], next: offset };
  try {
    const { size } = await handle.stat();
    const bytes = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset);
    const end = bytes.subarray(0, bytesRead).lastIndexOf(0x0a) + 1;
    const lines = bytes
      .subarray(0, end)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '');
    return { lines, next: offset + end };
  } finally {
    await handle.close();
  }
}
