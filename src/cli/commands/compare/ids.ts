/**
 * Reads ids from an export as a stream: NDJSON (one event a line), CSV with a header, or one id a line. They stay text: some exceed 2^53.
 */
import { createReadStream } from 'node:fs';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import type { JsonValue } from '../../../model/record.ts';
import { objectOf, parseRecord, textOf } from '../../../record/json.ts';
import type { Io } from '../../io.ts';
import { linesOf } from '../../lines.ts';
import type { Tally } from './tally.ts';

/** The id of one line or row; undefined when the field is missing. */
interface Read {
  readonly id: string | undefined;
  /** Number of its first line. */
  readonly line: number;
}

/** Members that contain the event in exports of Elasticsearch, Kibana and Splunk. */
const wrappers = ['_source', 'fields', 'result'];

/** Counts the ids of `--ids FILE` in `tally`. @throws WaybillError `usage` */
export async function readIds(file: string, field: string, tally: Tally, io: Io): Promise<{ ids: number; withoutId: number }> {
  const input = file === '-' ? io.stdin : createReadStream(file);
  let ids = 0;
  let withoutId = 0;
  try {
    for await (const { id } of idsOf(linesOf(input, io.signal), field)) {
      if (id === undefined) withoutId += 1;
      else {
        ids += 1;
        tally.addThere(id);
      }
    }
  } catch (thrown) {
    io.signal.throwIfAborted();
    if (thrown instanceof WaybillError || !(thrown instanceof Error) || !('code' in thrown)) throw thrown;
    throw new WaybillError('usage', `cannot read --ids "${file}": ${messageOf(thrown)}`, { cause: thrown });
  }
  if (ids === 0 && withoutId > 0)
    throw new WaybillError('usage', `cannot find an id in --ids: none of its ${withoutId} lines has the field "${field}"; see --field`);
  return { ids, withoutId };
}

/**
 * @param lines  without line breaks; blank lines are skipped
 * @param field  a path such as `event.id`, or the name of a column; ignored when the lines are ids
 * @throws WaybillError `usage` naming the line that cannot be read
 */
export async function* idsOf(lines: AsyncIterable<string>, field: string): AsyncGenerator<Read, void, void> {
  let read: ((text: string, line: number) => string | undefined) | undefined;
  let number = 0;
  let rest = '';
  let begun = 0;
  let isCsv = false;
  for await (const raw of lines) {
    number += 1;
    const text = number === 1 ? raw.replace(/^\ufeff/, '') : raw;
    if (rest === '') begun = number;
    // A quoted cell may hold line breaks.
    const whole = rest === '' ? text : `${rest}\n${text}`;
    if (isCsv && isOpen(whole)) {
      rest = whole;
      continue;
    }
    rest = '';
    if (whole.trim() === '') continue;
    if (read === undefined) {
      if (whole.trimStart().startsWith('{')) read = (line, at) => idOfEvent(line, field, at);
      else {
        const columns = cellsOf(whole);
        const column = columns.indexOf(field);
        if (column >= 0) {
          isCsv = true;
          read = (line, at) => idOfRow(line, column, columns.length, at);
          continue;
        }
        if (columns.length > 1)
          throw new WaybillError(
            'usage',
            `cannot find the column "${field}" in the header of --ids; its columns: ${columns.slice(0, 20).join(', ')}; see --field`,
          );
        read = (line, at) => idOfLine(line, at);
      }
    }
    yield { id: read(whole, begun), line: begun };
  }
  if (rest !== '') throw new WaybillError('usage', `cannot read line ${begun} of --ids: a quoted cell does not end`);
}

function idOfEvent(text: string, field: string, line: number): string | undefined {
  let value: JsonValue;
  try {
    value = parseRecord(text);
  } catch (cause) {
    throw new WaybillError('usage', `cannot read line ${line} of --ids: it is not JSON`, { cause });
  }
  for (const place of [value, ...wrappers.map((name) => objectOf(value)?.[name])]) {
    const id = fieldOf(place, field);
    if (id !== undefined && id.trim() !== '') return id;
  }
  return undefined;
}

/** The text of a field such as `event.id`; of a list, that of its first element. */
export function fieldOf(value: JsonValue | undefined, field: string): string | undefined {
  const found = at(value, field.split('.'));
  return textOf(Array.isArray(found) ? (found as readonly JsonValue[])[0] : found);
}

/** `event.id` as `{"event": {"id": …}}`, as `{"event.id": …}`, or anything between. */
function at(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  const object = objectOf(value);
  if (object === undefined) return undefined;
  for (let length = path.length; length >= 1; length -= 1) {
    const name = path.slice(0, length).join('.');
    if (!Object.hasOwn(object, name)) continue;
    const found = length === path.length ? object[name] : at(object[name], path.slice(length));
    if (found !== undefined) return found;
  }
  return undefined;
}

function idOfRow(text: string, column: number, columns: number, line: number): string | undefined {
  const cells = cellsOf(text);
  if (cells.length !== columns)
    throw new WaybillError('usage', `cannot read line ${line} of --ids: it has ${cells.length} cells, the header has ${columns}`);
  const id = cells[column]?.trim() ?? '';
  return id === '' ? undefined : id;
}

function idOfLine(text: string, line: number): string {
  const id = /^\s*"(.*)"\s*$/.exec(text)?.[1] ?? text.trim();
  if (/[\s",{}]/.test(id))
    throw new WaybillError('usage', `cannot read line ${line} of --ids: it is neither one id, nor JSON, nor CSV with a header`);
  return id;
}

/** A quoted cell continues on the next line. */
function isOpen(text: string): boolean {
  let quotes = 0;
  for (let i = text.indexOf('"'); i >= 0; i = text.indexOf('"', i + 1)) quotes += 1;
  return quotes % 2 === 1;
}

/** The cells of a row (RFC 4180). */
function cellsOf(text: string): string[] {
  const cells: string[] = [];
  let i = 0;
  for (;;) {
    let cell = '';
    if (text.charAt(i) === '"') {
      i += 1;
      for (;;) {
        const end = text.indexOf('"', i);
        if (end < 0) return [...cells, cell + text.slice(i)];
        cell += text.slice(i, end);
        i = end + 1;
        if (text.charAt(i) !== '"') break;
        cell += '"';
        i += 1;
      }
    }
    const comma = text.indexOf(',', i);
    cells.push(cell + text.slice(i, comma < 0 ? undefined : comma));
    if (comma < 0) return cells;
    i = comma + 1;
  }
}
