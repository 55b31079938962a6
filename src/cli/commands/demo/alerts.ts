/** What an analyst sees of the demo: the alerts of the detection rules on the events that the sink received, and the timeline of a person. Pure. */
import { eventOf, fieldsOf } from '../../../detections/event.ts';
import { evaluate, type Alert, type DetectionEvent, type Lists } from '../../../detections/evaluate.ts';
import type { Rule } from '../../../detections/rule.ts';
import { valuesOf } from '../../../detections/trial.ts';
import { printable } from '../../../errors/escape.ts';
import { counted } from '../../../report/format-time.ts';
import { outcomeName } from './line.ts';

interface Fired {
  readonly rule: Rule;
  readonly alert: Alert;
}

/** What terminal and page show. All texts are without control characters. */
export interface Findings {
  readonly total: string;
  /** The gravest first; further alerts of a rule for the same person count as times. */
  readonly alerts: readonly AlertText[];
  /** Of the gravest alert: name and mail. */
  readonly person: string | undefined;
  readonly mail: string | undefined;
  readonly steps: readonly Step[];
}

type AlertText = ReturnType<typeof alertOf> & { readonly times: number };
type Step = Readonly<Record<'time' | 'what' | 'host' | 'files', string>>;

const namedAtMost = 5;
const stepsAtMost = 20;
/** Fields of people that an alert and a timeline show; rules do not read them. */
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
      const about = aboutOf(fired);
      const isAgain = this.#shown.has(about);
      this.#shown.add(name).add(about);
      return isAgain ? [`ALERT ${rule.severity} again (${rule.id}): ${whoOf(alert)}, ${filesOf(alert)}`] : alertText(fired);
    });
  }

  /** The alerts so far, and what the person of the gravest one did. */
  findings(): Findings {
    const fired = this.#fired().sort((a, b) => Number(b.rule.severity === 'high') - Number(a.rule.severity === 'high'));
    const events = this.#sorted();
    const people = new Set(events.map(({ fields }) => fields['user.id'])).size;
    const gravest = fired[0]?.alert;
    const id = gravest?.events.at(-1)?.fields['user.id'];
    return {
      total: `${counted(fired.length, 'alert')} on ${counted(events.length, 'event')} of ${counted(people, 'user')}`,
      alerts: [...Map.groupBy(fired, aboutOf).values()].flatMap(([first, ...others]) =>
        first ? [{ ...alertOf(first), times: others.length + 1 }] : [],
      ),
      person: gravest && whoOf(gravest),
      mail: gravest && printable(valuesOf(gravest, 'user.email', 'user.id')[0] ?? '-'),
      steps: id === undefined ? [] : stepsOf(events.filter(({ fields }) => fields['user.id'] === id)).map(stepOf),
    };
  }

  /** The alerts in numbers, and what the person of the gravest alert did. */
  end(): readonly string[] {
    const { total, alerts, person, steps } = this.findings();
    if (person === undefined) return [`${total}. With a longer --for the attack comes to its end.`];
    return [
      `${total}:`,
      ...alerts.map(({ severity, rule, who, times }) => `  ${severity.padEnd(6)} ${rule}: ${who}${times === 1 ? '' : `, ${times} times`}`),
      '',
      `Timeline of ${person}:`,
      ...steps.slice(0, stepsAtMost).map(({ time, what, host, files }) => `  ${time}  ${what}, ${host}: ${files}`),
      ...(steps.length > stepsAtMost ? [`  and ${counted(steps.length - stepsAtMost, 'more step')}`] : []),
    ];
  }

  #sorted(): readonly DetectionEvent[] {
    return [...this.#events.values()].sort((a, b) => a.at - b.at);
  }

  #fired(): Fired[] {
    const events = this.#sorted();
    const now = events.at(-1)?.at ?? 0;
    return this.#rules.flatMap((rule) => evaluate(rule, events, this.#lists, now).map((alert) => ({ rule, alert })));
  }
}

const aboutOf = ({ rule, alert }: Fired): string => `${rule.id} ${whoOf(alert)}`;

function alertOf({ rule, alert }: Fired) {
  const seconds = Math.round(((alert.events.at(-1)?.at ?? alert.at) - alert.started) / 1000);
  const facts: readonly (readonly [name: string, text: string])[] = [
    ['Who', whoOf(alert)],
    ['What', `${counted(alert.events.length, 'event')} in ${seconds} s on ${filesOf(alert)}`],
    ['From', `${listed(valuesOf(alert, 'host.hostname'))}, ${listed(valuesOf(alert, 'source.ip'))}`],
    ['Means', rule.meaning],
    ...rule.next.map((step) => ['Next', step] as const),
  ];
  return { title: rule.title, facts, severity: rule.severity, rule: rule.id, who: whoOf(alert) };
}

function alertText(fired: Fired): readonly string[] {
  const { title, facts, severity, rule } = alertOf(fired);
  return ['', `ALERT ${severity}: ${title} (${rule})`, ...facts.map(([name, text]) => `  ${`${name}:`.padEnd(6)} ${text}`), ''];
}

function filesOf(alert: Alert): string {
  const files = fileNames(alert.events);
  return `${counted(files.length, 'file')}: ${listed(files)}`;
}

/** One name for each file: several files may have the same name. */
function fileNames(events: readonly DetectionEvent[]): readonly string[] {
  const names = new Map<string, string>();
  for (const { fields } of events) {
    const id = fields['dpas.payload.id'] ?? fields['file.name'];
    if (id !== undefined) names.set(id, fields['file.name'] ?? id);
  }
  return [...names.values()];
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

function stepOf(events: readonly DetectionEvent[]): Step {
  const [first] = events;
  const timeOf = (event: DetectionEvent | undefined): string => new Date(event?.at ?? 0).toISOString().slice(11, 19);
  return {
    time: events.length === 1 ? timeOf(first) : `${timeOf(first)} to ${timeOf(events.at(-1))}`,
    what: outcomeName(first?.fields['event.code']),
    host: printable(first?.fields['host.hostname'] ?? '-'),
    files: listed(fileNames(events)),
  };
}
