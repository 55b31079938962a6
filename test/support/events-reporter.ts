/**
 * Compares the log events that the tests of a run provoked with the table of events. A line that lacks a required field, or has a field
 * that the table lacks, fails the run. So does an event that no test of a whole `npm test` provoked; for an event of a fleet, no test of
 * `test/servers/{postgres,fleet}.test.ts`, because it needs a PostgreSQL.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { logEvents, type LogEvent } from '../../src/model/log-events.ts';
import { isLong } from './long-run.ts';

const fleetEvent = /^(shard|fleet)\./;
const fleetTests = /^test\/servers\/(postgres|fleet)\.test\.ts$/;

type Noted = readonly [event: string, names: readonly string[]];

export default class EventsReporter implements Reporter {
  readonly #folder = mkdtempSync(join(tmpdir(), 'waybill-events-'));
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
    process.once('exit', () => rmSync(this.#folder, { recursive: true }));
    // For written-events.ts in the workers.
    process.env['WAYBILL_TEST_EVENTS'] = this.#folder;
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    const lines = readdirSync(this.#folder).flatMap((name) => readFileSync(join(this.#folder, name), 'utf8').trimEnd().split('\n'));
    const noted = lines.map((line) => JSON.parse(line) as Noted);
    const wrong = new Set(noted.flatMap(faultsOf));
    if (wrong.size > 0) {
      process.stdout.write(`\nlog events that differ from src/model/log-events.ts:\n${[...wrong].map((line) => `  ${line}\n`).join('')}`);
      process.exitCode = 1;
    }
    const provoked = new Set(noted.map(([event]) => event));
    const isDue = { whole: await this.#isWhole(modules), fleet: this.#isWholeFleet(modules) };
    const missing = Object.keys(logEvents).filter((event) => !provoked.has(event) && isDue[fleetEvent.test(event) ? 'fleet' : 'whole']);
    if (missing.length > 0) {
      process.stdout.write(`\nlog events that no test of this run provoked:\n  ${missing.join(' ')}\n`);
      process.exitCode = 1;
    }
  }

  async #isWhole(modules: readonly TestModule[]): Promise<boolean> {
    if (!this.#vitest || isLong || this.#vitest.config.testNamePattern) return false;
    return modules.length === (await this.#vitest.globTestSpecifications()).length;
  }

  #isWholeFleet(modules: readonly TestModule[]): boolean {
    const ran = modules.filter((module) => fleetTests.test(module.relativeModuleId) && [...module.children.allTests('passed')].length > 0);
    return ran.length === 2 && !this.#vitest?.config.testNamePattern;
  }
}

/** The differences between a noted line and the table. */
function faultsOf([event, names]: Noted): string[] {
  const known: LogEvent | undefined = (logEvents as Readonly<Record<string, LogEvent>>)[event];
  if (!known) return [`${event} is not in the table`];
  const fields = known.fields.split(' ').filter((name) => name !== '');
  return [
    ...names.filter((name) => !fields.includes(name) && !fields.includes(`${name}?`)).map((name) => `${event} has a field "${name}"`),
    ...fields.filter((name) => !name.endsWith('?') && !names.includes(name)).map((name) => `${event} lacks its field "${name}"`),
  ];
}
