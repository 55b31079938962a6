/**
 * Explanations of stable codes: error codes and incidents are headings of docs/operations.md, log
 * events are a table. Pure.
 */
import { WaybillError } from '../errors.ts';
import { logEvents } from '../model/log-events.ts';
import type { LogEventCode } from '../model/log-events.ts';
import { nearest } from '../settings/nearest.ts';

interface Section {
  readonly heading: string;
  /** Markdown. */
  readonly body: string;
}

/**
 * @param code  an error code, a log event, or a heading of the document, in any case
 * @param operations  the text of docs/operations.md
 * @throws WaybillError `usage` that names the nearest code
 */
export function explanation(code: string, operations: string): string {
  const sections = sectionsOf(operations);
  const isMeant = (name: string): boolean => name.toLowerCase() === code.trim().toLowerCase();
  const section = sections.find(({ heading }) => isMeant(heading));
  if (section) return sectionText(section);
  const events = Object.keys(logEvents) as LogEventCode[];
  const event = events.find(isMeant);
  if (event) return eventText(event, sections);
  const found = nearest(code, [...sections.map(({ heading }) => heading), ...events]);
  const hint = found === undefined ? 'docs/operations.md and docs/logs.md list all' : `the nearest is "${found}"`;
  throw new WaybillError('usage', `cannot explain "${code}": no error code, log event or incident; ${hint}`);
}

/** The codes that `explanation` knows, without the headings of several words. */
export function codesIn(operations: string): readonly string[] {
  const headings = sectionsOf(operations).map(({ heading }) => heading);
  return [...headings.filter((heading) => /^[a-z_]+$/.test(heading)), ...Object.keys(logEvents)];
}

/** The sections that have a text below their heading, without those below a deeper heading. */
function sectionsOf(operations: string): Section[] {
  return [...operations.matchAll(/^#{2,} (.+)\n([^]*?)(?=^#{2,} |(?![^]))/gm)]
    .map(([, heading = '', body = '']) => ({ heading, body: body.trim() }))
    .filter(({ body }) => body !== '');
}

function eventText(event: LogEventCode, sections: readonly Section[]): string {
  const { level, message, fields, meaning } = logEvents[event];
  const [, heading = ''] = /operations\.md, "([^"]+)"/.exec(meaning) ?? [];
  const section = sections.find((each) => each.heading === heading);
  const named = fields === '' ? '' : `Fields: ${fields.replaceAll(' ', ', ')}\n`;
  const more = section ? `\n${sectionText(section)}` : '';
  return `${event}: ${message}\n\n${meaning.replaceAll('`', '')}\n\nLevel: ${level}\n${named}${more}`;
}

/** Markdown as plain text: links by their text, no emphasis. Tables stay. */
function sectionText({ heading, body }: Section): string {
  const plain = body.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('**', '');
  return `${heading}\n\n${plain}\n`;
}
