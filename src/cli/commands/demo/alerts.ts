/** What an analyst sees of the demo: the alerts of the detection rules on the events that the sink received, and the timeline of a person. Pure. */
import { eventOf, fieldsOf } from '../../../detections/event.ts';
import { evaluate, type Alert, type DetectionEvent, type Lists } from '../../../detections/evaluate.ts';
import type { Rule } from '../../../detections/rule.ts';
import { valuesOf } from '../../../detections/trial.ts';
import { printable } from '../../../errors/escape.ts';
import { counted } from '../../../report/format-time.ts';

interface Fired {
  readonly rule: Rule;
  readonly alert: Alert;
}

const namedAtMost = 5;
const stepsAtMost = 20;
/** Of the people in an alert and in a timeline, besides what rules read. */
const fieldsOfPeople = ['user.full_name', 'user.id', 'host.hostname', 'source.ip'];

export class Alerts {
  readonly #rules: readonly Rule[];
  readonly #lists: Lists;
  readonly #fields: readonly string[];
  readonly #events = new Map<string, DetectionEvent>();
  readonly #shown = new Set<string>();

  /** @param lists  the exceptions of the rules */
  constructor(rules: readonly Rule[], lists: Lists) {
    this.#rules = rules.filter(({ dataset, severity, isBuildingBlock }) => dataset === 'audit' && severity !== 'low' && !isBuildingBlock);
    this.#lists = lists;
    this.#fields = [...fieldsOf(rules), ...fieldsOfPeople];
  }

  /**
   * @param documents  of the format ecs, in any order
   * @returns the texts of alerts of severity medium or high that these events raise first
   */
  add(documents: readonly unknown[]): readonly string[] {
    for (const event of documents.flatMap((document) => eventOf(document, this.#fields) ?? [])) this.#events.set(event.uid, event);
    if (documents.length === 0) return [];
    return this.#fired().flatMap((fired) => {
      const { rule, alert } = fired;
      const name = JSON.stringify([rule.id, alert.group]);
      if (this.#shown.has(name)) return [];
      const about = `${rule.id} ${whoOf(alert)}`;
      const isAgain = this.#shown.has(about);
      this.#shown.add(name).add(about);
      return isAgain ? [`ALERT ${rule.severity} again (${rule.id}): ${whoOf(alert)}, ${filesOf(alert)}`] : alertText(fired);
    });
  }

  /** The alerts in numbers, and what the person of the gravest alert did. */
  end(): readonly string[] {
    const fired = this.#fired();
    const events = this.#sorted();
    const people = new Set(events.map(({ fields }) => fields['user.id'])).size;
    const total = `${counted(fired.length, 'alert')} on ${counted(events.length, 'event')} of ${counted(people, 'user')}`;
    const gravest = fired.find(({ rule }) => rule.severity === 'high') ?? fired[0];
    const id = gravest?.alert.events.at(-1)?.fields['user.id'];
    if (!gravest || id === undefined) return [`${total}. With a longer --for the attack comes to its end.`];
    const steps = stepsOf(events.filter(({ fields }) => fields['user.id'] === id));
    return [
      `${total}:`,
      ...[...Map.groupBy(fired, ({ rule, alert }) => `  ${rule.severity.padEnd(6)} ${rule.id}: ${whoOf(alert)}`)].map(
        ([line, { length }]) => (length === 1 ? line : `${line}, ${length} times`),
      ),
      '',
      `Timeline of ${whoOf(gravest.alert)}:`,
      ...steps.slice(0, stepsAtMost).map(stepText),
      ...(steps.length > stepsAtMost ? [`  and ${counted(steps.length - stepsAtMost, 'more step')}`] : []),
    ];
  }

  #sorted(): readonly DetectionEvent[] {
    return [...this.#events.values()].sort((a, b) => a.at - b.at);
  }

  #fired(): readonly Fired[] {
    const events = this.#sorted();
    const now = events.at(-1)?.at ?? 0;
    return this.#rules.flatMap((rule) => evaluate(rule, events, this.#lists, now).map((alert) => ({ rule, alert })));
  }
}

function alertText({ rule, alert }: Fired): readonly string[] {
  const seconds = Math.round((alert.at - alert.started) / 1000);
  return [
    '',
    `ALERT ${rule.severity}: ${rule.title} (${rule.id})`,
    `  Who:   ${whoOf(alert)}`,
    `  What:  ${counted(alert.events.length, 'event')} in ${seconds} s on ${filesOf(alert)}`,
    `  From:  ${listed(valuesOf(alert, 'host.hostname'))}, ${listed(valuesOf(alert, 'source.ip'))}`,
    `  Means: ${rule.meaning}`,
    ...rule.next.map((step) => `  Next:  ${step}`),
    '',
  ];
}

function filesOf(alert: Alert): string {
  const files = valuesOf(alert, 'file.name', 'dpas.payload.id');
  return `${counted(files.length, 'file')}: ${listed(files)}`;
}

function whoOf(alert: Alert): string {
  const mails = valuesOf(alert, 'user.email', 'user.id');
  const [name] = valuesOf(alert, 'user.full_name');
  return mails.length === 1 && name !== undefined ? `${printable(name)} <${listed(mails)}>` : listed(mails);
}

function listed(values: readonly string[]): string {
  const named = values.slice(0, namedAtMost).map(printable).join(', ');
  return values.length > namedAtMost ? `${named} and ${values.length - namedAtMost} more` : named;
}

/** Events of one kind and machine that follow each other. */
function stepsOf(events: readonly DetectionEvent[]): readonly (readonly DetectionEvent[])[] {
  const steps: DetectionEvent[][] = [];
  const kindOf = ({ fields }: DetectionEvent): string => [fields['event.code'], fields['host.hostname']].join(' ');
  for (const event of events) {
    const last = steps.at(-1);
    if (last?.[0] && kindOf(last[0]) === kindOf(event)) last.push(event);
    else steps.push([event]);
  }
  return steps;
}

function stepText(events: readonly DetectionEvent[]): string {
  const [first] = events;
  const timeOf = (event: DetectionEvent | undefined): string => new Date(event?.at ?? 0).toISOString().slice(11, 19);
  const code = printable(first?.fields['event.code'] ?? '-').replaceAll(':', ' ');
  const until = events.length === 1 ? '' : ` to ${timeOf(events.at(-1))}`;
  const host = printable(first?.fields['host.hostname'] ?? '-');
  return `  ${timeOf(first)}${until}  ${code}, ${host}: ${listed(valuesOf({ events }, 'file.name', 'dpas.payload.id'))}`;
}
