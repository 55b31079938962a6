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

/**
 * @param {string} state
 * @param {boolean} needsAttention
 */
function badge(state, needsAttention) {
  const isOver = state === 'retired' || state === 'unconfigured' || state === 'stopped';
  const tone = needsAttention ? 'bad' : state === 'retrying' ? 'warning' : isOver ? 'off' : 'good';
  const sign = { bad: '!', warning: '↻', off: '–', good: '✓' }[tone];
  return html('span', { class: `badge ${tone}` }, html('span', { 'aria-hidden': 'true' }, sign), ` ${state}`);
}

/**
 * @param {string} label
 * @param {string | readonly (Node | string)[]} content
 * @param {boolean} [isNumber]
 */
function cell(label, content, isNumber = false) {
  return html('td', { 'data-label': label, class: isNumber ? 'number' : null }, ...(typeof content === 'string' ? [content] : content));
}

/**
 *
 * @param {string} caption
 * @param {readonly string[]} heads  heads of number columns begin with `#`
 * @param {readonly HTMLElement[]} rows
 */
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

/** @param {string | null} text */
function note(text) {
  return text === null ? [] : [html('small', { class: 'note' }, text)];
}

/**
 * One cell for each window, all of one size, the newest at the right.
 * @param {string} strip
 */
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

/**
 * @param {readonly Source[]} sources
 * @param {number} now  ms since 1970
 * @param {string} chosen  the source that is drawn
 */
export function sourcesTable(sources, now, chosen) {
  if (sources.length === 0) return html('p', { class: 'empty' }, 'No source.');
  const rows = sources.slice(0, maxRows).map((source) => {
    const { id, state, needsAttention, message, lastError, frontier, lagSeconds, lastSuccess, records, late, gaps, inDoubt } = source;
    const isDoubled = message !== null && lastError !== null && message.includes(lastError);
    const until =
      frontier === null || lagSeconds === null || source.strip === ''
        ? 'nothing proven yet'
        : `${clock(Date.parse(frontier), now)} (${span(lagSeconds)} ago)`;
    return html(
      'tr',
      { class: id === chosen ? 'chosen' : null },
      html(
        'th',
        { scope: 'row' },
        html('button', { type: 'button', class: 'plain', 'data-source': id, 'aria-pressed': id === chosen ? 'true' : 'false' }, id),
      ),
      cell('State', [
        badge(state, needsAttention),
        ...note(needsAttention ? message : null),
        ...note(needsAttention && !isDoubled ? lastError : null),
      ]),
      cell('Complete until', until),
      cell('Newest windows', [stripOf(source.strip)]),
      cell('Last response', lastSuccess === null ? 'none yet' : `${span((now - Date.parse(lastSuccess)) / 1000)} ago`),
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
  });
  const heads = ['Source', 'State', 'Complete until', 'Newest windows', 'Last response', '#Rate', '#Records', '#Late', '#Gaps'];
  return table('Sources, problems first', heads, rows);
}

/**
 * @param {readonly Sink[]} sinks
 * @param {number} now  ms since 1970
 */
export function sinksTable(sinks, now) {
  if (sinks.length === 0) return html('p', { class: 'empty' }, 'No sink.');
  const rows = sinks.slice(0, maxRows).map((sink) => {
    const { id, type, state, needsAttention, message, lastError, failedAttempts, nextAttempt, lagRecords, lagSeconds } = sink;
    const { lastSuccess, hasDelivered, deadLetters } = sink;
    const tries = failedAttempts ? `${counted(failedAttempts, 'attempt')} failed.` : null;
    const isFailing = state === 'retrying' || state === 'blocked' || tries !== null;
    const left = nextAttempt === null ? 0 : (Date.parse(nextAttempt) - now) / 1000;
    const next = isFailing && left > 0 ? `Next attempt in ${span(left)}.` : null;
    const delivery =
      lastSuccess !== null ? `${span((now - Date.parse(lastSuccess)) / 1000)} ago` : hasDelivered ? 'before this start' : 'never';
    const error = lastError ?? message;
    return html(
      'tr',
      {},
      html('th', { scope: 'row' }, id, ' ', html('small', { class: 'note' }, type)),
      cell('State', [badge(state, needsAttention), ...note(tries), ...note(next)]),
      cell('Lag', lagRecords === 0 ? 'nothing waits' : `${counted(lagRecords, 'record')} (${span(lagSeconds)})`),
      cell('Rate', perSecond(sink.recordsPerSecond), true),
      cell('Last delivery', delivery),
      cell('Last error', error === null ? 'none' : [isFailing ? error : html('span', { class: 'note' }, `resolved: ${error}`)]),
      cell('Dead letters', deadLetters === 0 ? '0' : [html('strong', { class: 'bad-text' }, grouped(deadLetters))], true),
    );
  });
  return table('Sinks, problems first', ['Sink', 'State', 'Lag', '#Rate', 'Last delivery', 'Last error', '#Dead letters'], rows);
}

/**
 * @param {Detail} detail
 * @param {number} now  ms since 1970
 */
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
