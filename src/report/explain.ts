/**
 * Explanations of stable codes: error codes and incidents are headings of docs/operations.md, log events are a table, alerts are the rules
 * of content/prometheus/alerts.yaml. Pure.
 */
import { WaybillError } from '../errors/errors.ts';
import { logEvents, type LogEventCode } from '../model/log-events.ts';
import { nearest } from '../settings/nearest.ts';

interface Section {
  readonly heading: string;
  /** Markdown. */
  readonly body: string;
}

/** The documents that the explanations come from, as text. */
interface Documents {
  /** docs/operations.md */
  readonly operations: string;
  /** content/prometheus/alerts.yaml */
  readonly alerts: AlertFile;
}

/** A file of alerting rules of Prometheus. */
export interface AlertFile {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly annotations: { readonly summary: string; readonly command: string; readonly description: string };
}

/** The error codes of an HTTP status: of the service or its proxy, then of a receiver. */
const statuses: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(302|400|405|410|431)$/, ['page_refused', 'sink_refused']],
  [/^403$/, ['source_forbidden', 'sink_blocked']],
  [/^404$/, ['page_not_found', 'sink_blocked']],
  [/^407$/, ['proxy_refused']],
  [/^413$/, ['sink_refused']],
  [/^5\d\d$/, ['source_busy', 'sink_unavailable']],
];

/**
 * @param code  an error code, a state, a reason, a log event, an alert, an HTTP status, or words of a heading of docs/operations.md, in any case
 * @throws WaybillError `usage` that names the nearest code
 */
export function explanation(code: string, documents: Documents): string {
  const sections = sectionsOf(documents.operations);
  const alerts = alertsOf(documents.alerts);
  const isMeant = (name: string): boolean => plainName(name) === plainName(code);
  const section = sections.find(({ heading }) => isMeant(heading));
  if (section) return sectionText(section);
  const events = Object.keys(logEvents) as LogEventCode[];
  const words = wordsIn(sections);
  const meant = words.filter(({ word }) => isMeant(word));
  // `daemon.stopped` is an event, and `daemon_stopped` a reason.
  const event = events.find((name) => name === code) ?? (meant.length === 0 ? events.find(isMeant) : undefined);
  if (event) return eventText(event, sections);
  if (meant.length > 0) return meant.map(wordText).join('\n');
  const alert = alerts.find((each) => isMeant(each.alert));
  if (alert) return alertText(alert, sections);
  const ofStatus = statuses.find(([pattern]) => pattern.test(code.trim()))?.[1] ?? [];
  if (ofStatus.length > 0)
    return sections
      .filter(({ heading }) => ofStatus.includes(heading))
      .map(sectionText)
      .join('\n');
  const all = [
    ...sections.map(({ heading }) => heading),
    ...words.map((each) => each.word),
    ...events,
    ...alerts.map((each) => each.alert),
  ];
  const word = ` ${plainName(code)} `;
  const holding = all.filter((name) => ` ${plainName(name)} `.includes(word));
  const found = holding.length > 0 ? holding : [nearest(code, all) ?? []].flat();
  const hint = found.length > 0 ? `the nearest is ${found.map((name) => `"${name}"`).join(', ')}` : 'waybill explain lists all';
  throw new WaybillError('usage', `cannot explain "${code}": no error code, state, reason, log event, alert or incident; ${hint}`);
}

/** Everything that `explanation` knows, as text. */
export function explanationList({ operations, alerts }: Documents): string {
  const codes = sectionsOf(operations).map(({ heading }) => heading);
  const groups: readonly (readonly [string, readonly string[]])[] = [
    ['Error codes (`code` in a log line)', codes.filter(isCode)],
    ['Incidents', codes.filter((heading) => !isCode(heading))],
    ['States and reasons', [...new Set(wordsIn(sectionsOf(operations)).map(({ word }) => word))]],
    ['Alerts', alertsOf(alerts).map(({ alert }) => alert)],
    ['Log events (`event` in a log line)', Object.keys(logEvents)],
  ];
  return groups.map(([title, names]) => `${title}:\n${names.map((name) => `  ${name}\n`).join('')}`).join('\n');
}

/** The codes that `explanation` knows, without the headings of several words. */
export function codesIn({ operations, alerts }: Documents): readonly string[] {
  const headings = sectionsOf(operations).map(({ heading }) => heading);
  const words = wordsIn(sectionsOf(operations)).map(({ word }) => word);
  return [...new Set([...headings, ...words].filter(isCode)), ...Object.keys(logEvents), ...alertsOf(alerts).map(({ alert }) => alert)];
}

function isCode(heading: string): boolean {
  return /^[a-z_]+$/.test(heading);
}

/** Without case, article and punctuation: `A gap` is `gap`, `sink_blocked` is `sink blocked`. */
function plainName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[\s_.-]+/g, ' ')
    .trim()
    .replace(/^(a|an|the) /, '');
}

function alertsOf({ groups }: AlertFile): readonly Alert[] {
  return groups.flatMap(({ rules }) => rules);
}

/** The sections that have a text below their heading, without those below a deeper heading. */
function sectionsOf(operations: string): Section[] {
  return [...operations.matchAll(/^#{2,} (.+)\n([^]*?)(?=^#{2,} |(?![^]))/gm)]
    .map(([, heading = '', body = '']) => ({ heading, body: body.trim() }))
    .filter(({ body }) => body !== '');
}

/** A state or a reason, which an item of a list defines. */
interface Word extends Section {
  readonly word: string;
}

function wordsIn(sections: readonly Section[]): readonly Word[] {
  return sections.flatMap(({ heading, body }) =>
    [...body.matchAll(/^- `([a-z_ ]+)`: ([^]*?)(?=\n[-\n]|(?![^]))/gm)].map(([, word = '', text = '']) => ({
      word,
      heading,
      body: text.replace(/\s+/g, ' '),
    })),
  );
}

function wordText({ word, heading, body }: Word): string {
  return `${sectionText({ heading: word, body })}\nMore: waybill explain "${heading}"\n`;
}

function eventText(event: LogEventCode, sections: readonly Section[]): string {
  const { level, message, fields, meaning } = logEvents[event];
  const named = fields === '' ? '' : `Fields: ${fields.replaceAll(' ', ', ')}\n`;
  const text = `${event}: ${message}\n\n${meaning.replaceAll('`', '')}\n\nLevel: ${level}\n${named}`;
  return withSections(text, meaning, sections);
}

function alertText({ alert, expr, for: waits = '0m', annotations }: Alert, sections: readonly Section[]): string {
  const summary = annotations.summary.replace(/\{\{ \$labels\.(\w+) \}\}/g, '$1').replace(/\{\{ \$value[^}]*\}\}/g, 'so');
  const { description } = annotations;
  const plain = description.replaceAll('`', '').replace(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => label.toUpperCase());
  return withSections(`${alert}: ${summary}\n\n${plain}\n\nCondition, for ${waits}:\n${expr}\n`, description, sections);
}

/** Adds the sections of docs/operations.md that a text refers to. */
function withSections(text: string, reference: string, sections: readonly Section[]): string {
  const [, names = ''] = /operations\.md, ("[^"]+"(?:(?:, | and )"[^"]+")*)/.exec(reference) ?? [];
  const headings = [...names.matchAll(/"([^"]+)"/g)].map(([, heading]) => heading);
  return [text, ...sections.filter(({ heading }) => headings.includes(heading)).map(sectionText)].join('\n');
}

/** Markdown as plain text: links by their text, no emphasis. Tables stay. */
function sectionText({ heading, body }: Section): string {
  const plain = body.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('**', '');
  return `${heading}\n\n${plain}\n`;
}
