/**
 * `npm test` runs a part of some tests; `npm run test:long` runs each of them whole, and the
 * tests that take too long for `npm test`.
 */
export const isLong = process.env['WAYBILL_LONG'] !== undefined;

/** The number of cases, rounds or records of a test. */
export function sized(short: number, long: number): number {
  return isLong ? long : short;
}

/** Run by `test:canary` alone, which sets WAYBILL_CANARY. */
export const canary = 'test/contract/canary.test.ts';
export const isCanary = process.env['WAYBILL_CANARY'] !== undefined;

/** Run by `test:long` alone: tests that end programs, need seconds of CPU, or wait for long. */
export const longOnly = [
  'test/contract/archive-commands-s3.test.ts',
  'test/contract/archive/hostile-archives.test.ts',
  'test/contract/archive/prove.test.ts',
  'test/contract/archive/timestamps.test.ts',
  'test/contract/journal-kill.test.ts',
  'test/contract/sinks/archive-kill.test.ts',
  'test/contract/sinks/archive-s3.test.ts',
  'test/contract/sinks/archive-time-stamps.test.ts',
  'test/contract/sinks/archive-witness-kill.test.ts',
  'test/contract/sinks/file-kill.test.ts',
  'test/documented-examples.test.ts',
  'test/e2e/access.test.ts',
  'test/e2e/archive-prune-kills.test.ts',
  'test/e2e/archive-prune.test.ts',
  'test/e2e/archive-replaced.test.ts',
  'test/e2e/archive-replay.test.ts',
  'test/e2e/archive.test.ts',
  'test/e2e/backup.test.ts',
  'test/e2e/bench-options.test.ts',
  'test/e2e/chaos.test.ts',
  'test/e2e/days.test.ts',
  'test/e2e/first-hour.test.ts',
  'test/e2e/history.test.ts',
  'test/e2e/ledger-events.test.ts',
  'test/e2e/log-level.test.ts',
  'test/e2e/log-reader.test.ts',
  'test/e2e/many.test.ts',
  'test/e2e/machine.test.ts',
  'test/e2e/migrating.test.ts',
  'test/e2e/moved.test.ts',
  'test/e2e/network.test.ts',
  'test/e2e/on-demand.test.ts',
  'test/e2e/open-files.test.ts',
  'test/e2e/page-sizes.test.ts',
  'test/e2e/reload.test.ts',
  'test/e2e/report.test.ts',
  'test/e2e/rights.test.ts',
  'test/e2e/rotation-sinks.test.ts',
  'test/e2e/rotation.test.ts',
  'test/e2e/sizing.test.ts',
  'test/e2e/state-lost.test.ts',
  'test/e2e/state.test.ts',
  'test/e2e/switches.test.ts',
  'test/e2e/telemetry.test.ts',
  'test/e2e/trouble.test.ts',
  'test/reference/arrival.test.ts',
  'test/reference/document.test.ts',
  'test/reference/durability.test.ts',
  'test/reference/large-files.test.ts',
  'test/reference/odd-pairs.test.ts',
  'test/reference/program.test.ts',
  'test/reference/switches.test.ts',
  'test/simulation/verdicts.test.ts',
  'test/unit/archive/uid-index.test.ts',
  'test/unit/deliver/outage.test.ts',
];

/** Tests that both runs include. Each does more in `test:long`: by this file, or `isVariant` of a sink suite. */
export const longForms = [
  'test/contract/archive/foreign-answers.test.ts',
  'test/contract/archive/growing.test.ts',
  'test/contract/archive/writer.test.ts',
  'test/contract/cli/adding-a-command.test.ts',
  'test/contract/sinks/archive-power-cut.test.ts',
  'test/contract/sinks/archive-witnesses.test.ts',
  'test/contract/sinks/elasticsearch.test.ts',
  'test/contract/sinks/file-rotation.test.ts',
  'test/contract/sinks/kafka.test.ts',
  'test/contract/sinks/splunk-hec.test.ts',
  'test/contract/sinks/syslog.test.ts',
  'test/e2e/demo.test.ts',
  'test/e2e/incidents.test.ts',
  'test/reference/container.test.ts',
  'test/reference/generated-client.test.ts',
  'test/reference/switched-activity.test.ts',
  'test/unit/archive/line.test.ts',
  'test/unit/collect/contradictions.test.ts',
  'test/unit/collect/idle.test.ts',
  'test/unit/collect/read-window.test.ts',
  'test/unit/collect/right-of-way.test.ts',
  'test/unit/collect/scheduler.test.ts',
  'test/unit/collect/suspension.test.ts',
  'test/unit/config/fuzz.test.ts',
  'test/unit/config/load.test.ts',
  'test/unit/content/kibana-rules.test.ts',
  'test/unit/daemon/source.test.ts',
  'test/unit/deliver/crash.test.ts',
  'test/unit/encode/any-record.test.ts',
  'test/unit/encode/ecs-bytes.test.ts',
  'test/unit/errors/secrets.test.ts',
  'test/unit/journal/damage.test.ts',
  'test/unit/journal/shared-transactions.test.ts',
  'test/unit/normalize/privacy-rules.test.ts',
  'test/unit/record/read.test.ts',
  'test/unit/sink/syslog-frames.test.ts',
  'test/unit/source/scan.fuzz.test.ts',
];
