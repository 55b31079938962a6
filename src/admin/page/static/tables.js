/** The tables of the page. On a narrow screen each row becomes a card: a cell carries the name of its column. */
import { html } from './elements.js';
import { clock, counted, grouped, perSecond, span, windowStates } from './text.js';

/** @import { OverviewJson } from '../overview.ts' */
/** @typedef {OverviewJson['sources'][number]} Source */
/** @typedef {OverviewJson['sinks'][number]} Sink */
/** @typedef {NonNullable<OverviewJson['detail']>} Detail */

/** How many rows the page draws; a filter finds the others. */
const maxRows = 200;
const stripCells = 40;
const windowRows = 60;

/** True for the states of a source or sink that does not do its work. @param {string} state */
export function isBad(state) {
  return ['failing', 'suspended', 'paused', 'blocked', 'retrying'].includes(state);
}

/** @param {string} state */
function badge(state) {
  const tones = { active: 'good', waiting: 'info', 'catching up': 'info', retrying: 'warning', paused: 'warning', unconfigured: 'warning' };
  const tone = isBad(state) && !(state in tones) ? 'bad' : (Object.entries(tones).find(([name]) => name === state)?.[1] ?? 'off');
  const sign = new Map(Object.entries({ bad: '!', warning: '↻', info: '…', off: '–', good: '✓' })).get(tone) ?? '';
  return html('span', { class: `badge ${tone}` }, html('span', { 'aria-hidden': 'true' }, sign), ` ${state}`);
}

/** @param {string} label @param {string | readonly (Node | string)[]} content @param {boolean} [isNumber] */
function cell(label, content, isNumber = false) {
  return html('td', { 'data-label': label, class: isNumber ? 'number' : null }, ...(typeof content === 'string' ? [content] : content));
}

/** @param {string} caption @param {readonly string[]} heads  heads of number columns begin with `#` @param {readonly HTMLElement[]} rows */
function table(caption, heads, rows) {
  const head = heads.map((name) => html('th', { scope: 'col', class: name.startsWith('#') ? 'number' : null }, name.replace(/^#/, '')));
  return html(
    'table',
    {},
    html('caption', { class: 'hidden' }, caption),
    html('thead', {}, html('tr', {}, ...head)),
    html('tbody', {}, ...rows),
  );
}

/** One cell for each window, all of one size, the newest at the right. @param {string} strip */
function stripOf(strip) {
  const shown = strip.slice(-stripCells);
  if (shown === '') return html('span', { class: 'note' }, 'no window yet');
  const counts = [...windowStates]
    .map(([letter, name]) => ({ name, count: shown.split(letter).length - 1 }))
    .filter(({ count }) => count > 0);
  const words = `Newest ${counted(shown.length, 'window')}: ${counts.map(({ name, count }) => `${count} ${name}`).join(', ')}`;
  const cells = Array.from(shown, (letter) => html('i', { class: `w-${letter}` }));
  return html('span', { class: 'strip', role: 'img', 'aria-label': words, title: words }, ...cells);
}

/** @param {readonly Source[]} sources @param {number} now  ms since 1970 @param {string} chosen  the source that is drawn */
export function sourcesTable(sources, now, chosen) {
  if (sources.length === 0) return html('p', { class: 'empty' }, 'No source.');
  const rows = sources.slice(0, maxRows).flatMap((source) => {
    const { id, state, message, lastError, completeUntil, lagSeconds, lastSuccess, records, late, gaps, inDoubt, nextAttempt } = source;
    const isDoubled = message !== null && lastError !== null && message.includes(lastError);
    const until =
      completeUntil === null || lagSeconds === null || source.strip === ''
        ? 'nothing proven yet'
        : `${clock(Date.parse(completeUntil), now)} (${span(lagSeconds)} ago)`;
    const errors = isBad(state) ? [message, isDoubled ? null : lastError, nextIn(nextAttempt, now)].filter((text) => text !== null) : [];
    const row = html(
      'tr',
      { class: id === chosen ? 'chosen' : null },
      html(
        'th',
        { scope: 'row' },
        html(
          'button',
          { type: 'button', class: 'plain', title: id, 'data-source': id, 'aria-pressed': id === chosen ? 'true' : 'false' },
          id,
        ),
      ),
      cell('State', [badge(state)]),
      cell('Complete until', until),
      cell('Newest windows', [stripOf(source.strip)]),
      cell('Last success', lastSuccess === null ? 'none yet' : `${span((now - Date.parse(lastSuccess)) / 1000)} ago`),
      cell('Rate', perSecond(source.recordsPerSecond), true),
      cell('Records', grouped(records), true),
      cell('Late', grouped(late), true),
      cell(
        'Gaps',
        gaps + inDoubt === 0
          ? '0'
          : [html('strong', { class: 'bad-text' }, `${grouped(gaps)}${inDoubt === 0 ? '' : `, ${grouped(inDoubt)} in doubt`}`)],
        true,
      ),
    );
    return [row, ...detailRow(errors, 9)];
  });
  const heads = ['Source', 'State', 'Complete until', 'Newest windows', 'Last success', '#Rate', '#Records', '#Late', '#Gaps'];
  return table('Sources, problems first', heads, rows);
}

/** @param {readonly Sink[]} sinks @param {number} now  ms since 1970 */
export function sinksTable(sinks, now) {
  if (sinks.length === 0) return html('p', { class: 'empty' }, 'No sink.');
  const rows = sinks.slice(0, maxRows).flatMap((sink) => {
    const { id, type, state, message, lastError, failedAttempts, nextAttempt, lagEntries, lagSeconds, recoveredAt } = sink;
    const { lastSuccess, hasDelivered, deadLetters, unselected } = sink;
    const isOver = state === 'retired' || state === 'unconfigured';
    const tries = failedAttempts ? `${counted(failedAttempts, 'attempt')} failed.` : null;
    const delivery =
      unselected !== null
        ? `0 of ${counted(unselected, 'record')} passed its filter`
        : lastSuccess !== null
          ? `${span((now - Date.parse(lastSuccess)) / 1000)} ago`
          : hasDelivered
            ? 'before this start'
            : 'never';
    const error = lastError ?? message;
    const errors = isBad(state) ? [error, tries, nextIn(nextAttempt, now)].filter((text) => text !== null) : [];
    const ended = recoveredAt === null ? 'resolved' : `resolved ${span((now - Date.parse(recoveredAt)) / 1000)} ago`;
    const resolved =
      error === null || isBad(state) || isOver
        ? []
        : [html('details', {}, html('summary', {}, ended), html('small', { class: 'note' }, error))];
    const row = html(
      'tr',
      {},
      html('th', { scope: 'row', title: id }, id, ' ', html('small', { class: 'type' }, type)),
      cell('State', [badge(state)]),
      cell('Lag', isOver ? '–' : lagEntries === 0 ? 'nothing waits' : `${counted(lagEntries, 'entry', 'entries')} (${span(lagSeconds)})`),
      cell('Rate', perSecond(sink.recordsPerSecond), true),
      cell('Last delivery', delivery),
      cell('Last error', resolved.length > 0 ? resolved : isBad(state) ? 'below' : 'none'),
      cell('Dead letters', deadLetters === 0 ? '0' : [html('strong', { class: 'bad-text' }, grouped(deadLetters))], true),
    );
    return [row, ...detailRow(errors, 7)];
  });
  return table('Sinks, problems first', ['Sink', 'State', 'Lag', '#Rate', 'Last delivery', 'Last error', '#Dead letters'], rows);
}

/** A second row across the table. @param {readonly string[]} texts @param {number} columns */
function detailRow(texts, columns) {
  return texts.length === 0
    ? []
    : [
        html(
          'tr',
          { class: 'detail' },
          html('td', { colspan: columns, 'data-label': 'Error' }, texts.map((text) => text.replace(/\.?$/, '.')).join(' ')),
        ),
      ];
}

/** @param {string | null} at @param {number} now  ms since 1970 */
function nextIn(at, now) {
  const left = at === null ? 0 : (Date.parse(at) - now) / 1000;
  return left > 0 ? `Next attempt in ${span(left)}.` : null;
}

/** @typedef {{ readonly source: string, readonly from: string, readonly to: string, readonly state: string, readonly message: string | null, readonly total: number | null, readonly received: number, readonly nextTry: string | null }} ListedWindow */
/** @typedef {{ readonly gaps?: readonly ListedWindow[], readonly inDoubt?: readonly ListedWindow[] }} GapLists */

/** Accepted gaps are in the ledger. @param {readonly ListedWindow[]} windows @param {number} now  ms since 1970 */
export function gapsTable(windows, now) {
  const rows = windows
    .slice(0, maxRows)
    .flatMap(({ source, from, to, state, message, total, received, nextTry }) => [
      html(
        'tr',
        {},
        html('th', { scope: 'row' }, `${clock(Date.parse(from), now)}–${clock(Date.parse(to), now)}`),
        cell('Source', source),
        cell('State', state === 'gap' ? 'gap' : 'in doubt'),
        cell('Received', grouped(received), true),
        cell('Counted', total === null ? '–' : grouped(total), true),
        cell('Next attempt', nextTry === null ? 'none' : clock(Date.parse(nextTry), now)),
      ),
      ...detailRow(message === null ? [] : [message], 6),
    ]);
  return table('Gaps and windows in doubt', ['Window', 'Source', 'State', '#Received', '#Counted', 'Next attempt'], rows);
}

/** @param {Detail} detail @param {number} now  ms since 1970 */
export function windowsTable(detail, now) {
  const rows = detail.windows
    .slice(-windowRows)
    .reverse()
    .map(([from, to, letter, records, total]) =>
      html(
        'tr',
        {},
        html('th', { scope: 'row' }, clock(from * 1000, now)),
        cell('To', clock(to * 1000, now)),
        cell('State', [html('span', { class: `key w-${letter}`, 'aria-hidden': 'true' }), ` ${windowStates.get(letter) ?? letter}`]),
        cell('Counted by the service', total === null ? '–' : grouped(total), true),
        cell('Records', grouped(records), true),
      ),
    );
  if (rows.length === 0) return html('p', { class: 'empty' }, 'No window is closed yet.');
  return table(`Newest windows of ${detail.source}`, ['From', 'To', 'State', '#Counted by the service', '#Records'], rows);
}
