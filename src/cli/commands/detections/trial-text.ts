/** The result of trying rules on a history, as text. Days are days in UTC. */
import type { Alert, DetectionEvent } from '../../../detections/evaluate.ts';
import { thresholdOf, valuesOf, type Trial } from '../../../detections/trial.ts';
import { counted } from '../../../report/format-time.ts';
import { right, table } from '../../../report/text-table.ts';

const shownEntities = 5;

/** Whom or what an alert is about: the user of its group, else the file, else the source. */
function entityOf(alert: Alert, { rule: { detect } }: Trial): string {
  const isOfUser = detect.group.includes('user.id') || (detect.kind === 'sequence' && detect.across?.by === 'user.id');
  const fields = isOfUser ? ['user.email', 'user.id'] : ['file.name', 'dpas.payload.id'];
  return valuesOf(alert, ...fields, 'dpas.ledger.source')[0] ?? alert.group.join(' ');
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function daysOf(trial: Trial): readonly { readonly day: string; readonly alerts: readonly Alert[] }[] {
  return [...Map.groupBy(trial.alerts, ({ at }) => dayOf(at))].map(([day, alerts]) => ({ day, alerts }));
}

export function trialText(trials: readonly Trial[], events: readonly DetectionEvent[]): readonly string[] {
  const [from, to] = [dayOf(events[0]?.at ?? 0), dayOf(events.at(-1)?.at ?? 0)];
  const rows = trials.map((trial) => {
    const days = daysOf(trial);
    const most = Math.max(0, ...days.map(({ alerts }) => alerts.length));
    const present = thresholdOf(trial.rule.detect);
    const others = trial.thresholds.map(({ threshold, alerts }) => {
      const text = `${String(threshold)}: ${String(alerts)}`;
      return threshold === present ? `[${text}]` : text;
    });
    const { id, severity, isBuildingBlock } = trial.rule;
    return [id, isBuildingBlock ? 'block' : severity, String(trial.alerts.length), String(days.length), String(most), others.join(', ')];
  });
  const columns = ['RULE', 'SEVERITY', right('ALERTS'), right('DAYS'), right('MOST A DAY'), 'ALERTS BY THRESHOLD'];
  // A building block raises no alert, so its days are left out: they would outnumber the alerts.
  const shown = trials.filter(({ rule }) => !rule.isBuildingBlock || trials.length === 1);
  const lines = shown.flatMap((trial) =>
    daysOf(trial).map(({ day, alerts }) => {
      const entities = [...new Set(alerts.map((alert) => entityOf(alert, trial)))];
      const more = entities.length > shownEntities ? [`and ${String(entities.length - shownEntities)} more`] : [];
      return [day, trial.rule.id, String(alerts.length), [...entities.slice(0, shownEntities), ...more].join(', ')];
    }),
  );
  lines.sort(([a = ''], [b = '']) => (a < b ? -1 : Number(a > b)));
  const perDay = [...Map.groupBy(lines, ([day = '']) => day)].map(([, each]) => each.reduce((sum, [, , count]) => sum + Number(count), 0));
  const total = perDay.reduce((sum, count) => sum + count, 0);
  return [
    `${counted(events.length, 'event')} from ${from} to ${to} (UTC)\n\n`,
    `${table(columns, rows).join('\n')}\n\n`,
    ...(total === 0 ? [] : [`${table(['DAY', 'RULE', right('ALERTS'), 'FOR'], lines).join('\n')}\n\n`]),
    `${counted(total, 'alert')}${total === 0 ? '' : `, at most ${String(Math.max(...perDay))} a day`}\n`,
  ];
}
