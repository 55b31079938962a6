/** The status page: reads the overview every few seconds and shows it. While the daemon is unreachable, it shows the age of the data. */
import { byId, html, renew, write } from './elements.js';
import { picture, sinkLegend, windowCounts } from './picture.js';
import { gapsTable, isBad, sinksTable, sourcesTable, windowsTable } from './tables.js';
import { clock, commandsIn, counted, grouped, size, span } from './text.js';

/** @import { OverviewJson } from '../overview.ts' */

const readMs = 3_000;
const retryMs = 2_000;
const timeoutMs = 10_000;
/** The smallest number of sources with a filter field. */
const filterFrom = 6;
/** The problems that the page lists in full. */
const maxProblems = 12;
/** The list of gaps is read again after this time, or when their number changes. */
const gapsMs = 30_000;

/** @type {{ overview: OverviewJson, at: number } | undefined}  `at`: the time of its arrival by `performance.now()` */
let shown;
/** @type {{ since: number, reason: string } | undefined} */
let outage;
/** @type {number | undefined} */
let backAt;
let chosen = new URLSearchParams(location.hash.slice(1)).get('source') ?? '';
let gapsRead = { at: -Infinity, count: 0 };
/** The title of the tab while the daemon is reachable. */
let tabTitle = document.title;
/** Counts requests: `read` drops a response to an earlier selection. */
let reading = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** The time at the daemon, ms since 1970. */
function now() {
  return shown ? Date.parse(shown.overview.generatedAt) + performance.now() - shown.at : Date.now();
}

async function read() {
  clearTimeout(timer);
  const mine = (reading += 1);
  /** @type {string | undefined} */
  let failure;
  try {
    const query = chosen === '' ? '' : `?source=${encodeURIComponent(chosen)}`;
    const answer = await fetch(`overview${query}`, { cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) });
    const body = /** @type {unknown} */ (await answer.json());
    if (mine !== reading) return;
    const { error = '' } = /** @type {{ error?: string }} */ (body);
    if (answer.ok) accept(/** @type {OverviewJson} */ (body));
    else if (answer.status === 400 && chosen !== '') {
      // That source no longer exists.
      choose('');
      return;
    } else if (answer.status === 401 || answer.status === 429)
      failure = `The daemon rejected the token (${error}); reload the page to send another one`;
    else failure = `The daemon cannot show its state: ${error}`;
  } catch (thrown) {
    if (mine !== reading) return;
    failure = reasonOf(thrown);
  }
  if (failure !== undefined) lose(failure);
  tick();
  if (!document.hidden) timer = setTimeout(read, failure === undefined ? readMs : retryMs);
}

/** @param {unknown} thrown */
function reasonOf(thrown) {
  if (thrown instanceof DOMException && thrown.name === 'TimeoutError') return `The daemon did not respond within ${timeoutMs / 1000} s`;
  return thrown instanceof SyntaxError
    ? 'The daemon cannot be reached: another program responds at its address'
    : 'The daemon cannot be reached';
}

/** @param {OverviewJson} overview */
function accept(overview) {
  // Another release may have another page.
  if (shown && shown.overview.version !== overview.version) location.reload();
  if (outage && shown) backAt = performance.now();
  outage = undefined;
  shown = { overview, at: performance.now() };
  show(overview);
  void showGaps(overview);
}

/** @param {string} reason */
function lose(reason) {
  outage = { since: outage?.since ?? performance.now(), reason };
}

/** @param {string} source */
function choose(source) {
  chosen = source;
  history.replaceState(null, '', source === '' ? location.pathname : `#${new URLSearchParams({ source }).toString()}`);
  void read();
}

/** Updates the parts that change without a new overview: ages, and the state of the connection. */
function tick() {
  const link = byId('link');
  const age = shown ? (performance.now() - shown.at) / 1000 : 0;
  const notice = byId('outage');
  link.dataset['state'] = outage ? 'lost' : shown ? 'live' : 'loading';
  document.body.classList.toggle('stale', outage !== undefined && shown !== undefined);
  notice.hidden = outage === undefined;
  document.title = outage ? '✗ Not reachable · Waybill' : tabTitle;
  if (outage) {
    write(byId('link-text'), 'Not reachable');
    const since = clock(Date.now() - (performance.now() - outage.since), Date.now());
    const old = shown ? ` The page shows data from ${clock(Date.parse(shown.overview.generatedAt), Date.now())} UTC.` : '';
    write(
      notice,
      `${outage.reason}, since ${since} UTC.${old} The page tries again every few seconds. If this lasts, check whether the daemon runs.`,
    );
  } else if (shown) {
    const isBack = backAt !== undefined && performance.now() - backAt < 30_000;
    write(byId('link-text'), isBack ? 'Reachable again' : 'Live');
  }
  write(byId('age'), shown ? `· ${outage ? 'shown: ' : 'updated '}${span(age)} ${outage ? 'old' : 'ago'}` : '');
}

/** @param {OverviewJson} overview */
function show(overview) {
  byId('content').hidden = false;
  showHeadline(overview);
  renew(byId('tiles'), tiles(overview));
  showPicture();
  showTables();
  showChoices(overview);
  write(byId('version'), overview.version);
}

/** @param {OverviewJson} overview */
function showHeadline({ summary, tone, problems, problemCount, waits, host }) {
  // The headline begins with the worst; completeness follows.
  const at = summary.search(/[;:] |, (complete|read|state|configuration) /);
  const head = at < 0 ? summary : summary.slice(0, at);
  byId('headline').dataset['tone'] = tone;
  write(byId('summary'), head);
  write(byId('summary-rest'), at < 0 ? '' : summary.slice(at + 2).trim());
  write(byId('host'), host ?? '');
  tabTitle = [`${{ good: '✓', waiting: '…', warning: '!', bad: '✗' }[tone]} ${head}`, ...(host === null ? [] : [host]), 'Waybill'].join(
    ' · ',
  );
  byId('todo').hidden = problems.length === 0;
  renew(byId('problems'), problems.slice(0, maxProblems).map(problemItem));
  const rest = problemCount - Math.min(problems.length, maxProblems);
  byId('problems-more').hidden = rest === 0;
  write(byId('problems-more'), `and ${counted(rest, 'more problem')}: waybill status --json`);
  byId('waits').hidden = waits.length === 0;
  renew(
    byId('waits'),
    waits.map((line) => html('li', {}, line)),
  );
}

/** @param {OverviewJson['problems'][number]} problem */
function problemItem({ what, lost, operation, code }) {
  const more = code === undefined ? [] : ['. More: ', ...command(`waybill explain ${code}`)];
  const act = commandsIn(code === undefined ? operation : operation.replace(/\.$/, '')).flatMap(({ text, isCommand }) =>
    isCommand ? command(text) : [text],
  );
  return html(
    'li',
    {},
    html('p', { class: 'what' }, what),
    html('p', { class: 'lost' }, lost),
    html('p', {}, html('strong', {}, 'To do: '), ...act, ...more),
  );
}

/** A command, with a button that copies it where the browser permits. @param {string} text */
function command(text) {
  const button = html('button', { type: 'button', class: 'copy', 'data-copy': text, 'aria-label': `Copy ${text}` }, 'Copy');
  return [html('code', {}, text), ...('clipboard' in navigator ? [' ', button] : [])];
}

/** @param {string} name @param {string} value @param {string} more @param {string} [tone] @param {readonly Node[]} [others] */
function tile(name, value, more, tone = '', others = []) {
  return html(
    'div',
    { class: `tile ${tone}` },
    html('dt', {}, name),
    html('dd', { class: 'value' }, value),
    html('dd', { class: 'more' }, more),
    ...others.map((other) => html('dd', {}, other)),
  );
}

/** @param {OverviewJson} overview */
function tiles({ sources, sinks, journal, delivered, lacking, complete, firstProof, problems, today, nextCertificateEnd }) {
  const polled = sources.filter(({ state }) => state !== 'retired' && state !== 'unconfigured');
  const known = polled.filter(({ completeUntil, strip }) => completeUntil !== null && strip !== '');
  const oldest = known.toSorted((a, b) => (b.lagSeconds ?? 0) - (a.lagSeconds ?? 0))[0];
  const until = oldest?.completeUntil
    ? tile(
        // The time before this may contain accepted gaps and windows in doubt.
        'Complete until',
        `${clock(Date.parse(oldest.completeUntil), now())} UTC`,
        `${span(oldest.lagSeconds ?? 0)} ago${polled.length > 1 ? `; slowest: ${oldest.id}` : ''}`,
        complete ? 'good' : '',
      )
    : tile(
        'Complete until',
        'nothing proven yet',
        firstProof === null ? '' : `first proof about ${clock(Date.parse(firstProof), now())} UTC`,
      );
  const active = sinks.filter(({ state }) => state !== 'retired' && state !== 'unconfigured');
  const newest = active
    .flatMap(({ lastSuccess }) => lastSuccess ?? [])
    .sort()
    .at(-1);
  const waiting = Math.max(0, ...active.map(({ lagEntries }) => lagEntries));
  // A sink that has everything proven can fail nevertheless: newer records wait for it.
  const failing = active.filter(({ state, lagEntries }) => isBad(state) && lagEntries > 0).map(({ id }) => id);
  const last = newest === undefined ? 'no delivery since the start' : `last delivery ${span((now() - Date.parse(newest)) / 1000)} ago`;
  const behind = delivered ? failing : lacking;
  const more = behind.length === 0 || waiting === 0 ? last : `${behind.join(', ')}: ${counted(waiting, 'entry', 'entries')} to deliver`;
  const delivery =
    active.length === 0
      ? tile('Delivered', 'no sink', '')
      : known.length === 0
        ? // Records in transit to a sink are normal, and no window lacks them yet.
          tile('Delivered', 'nothing due yet', more)
        : tile('Delivered', delivered ? 'everything proven' : 'not all', more, behind.length === 0 ? 'good' : 'warning');
  const needy = [...new Set(problems.map(({ source, sink }) => source ?? sink ?? 'the daemon'))];
  const names = needy.length > 3 ? `${needy.slice(0, 3).join(', ')} and ${needy.length - 3} more` : needy.join(', ');
  const needs = tile('Needs attention', needy.length === 0 ? 'nothing' : names, `${counted(polled.length, 'source')}, ${counted(active.length, 'sink')}`, needy.length === 0 ? 'good' : 'bad'); // prettier-ignore
  const records = tile('Records today', grouped(today.records), `${grouped(today.late)} late; in closed windows since 00:00 UTC`);
  const slowest = Math.max(-1, ...polled.map(({ delays }) => delays.p99 ?? -1));
  const delay = tile('Delay p99', slowest < 0 ? 'not measured yet' : `up to ${span(slowest)}`, 'from the event to its first sight');
  return [until, delivery, needs, records, delay, ...certificateTile(nextCertificateEnd), ...journalTile(journal)];
}

/** @param {OverviewJson['nextCertificateEnd']} certificate */
function certificateTile(certificate) {
  if (!certificate) return [];
  const days = (Date.parse(certificate.at) - now()) / 86_400_000;
  const tone = days < 14 ? 'bad' : days < 30 ? 'warning' : '';
  return [
    tile(
      'Next certificate end',
      days < 0 ? 'ended' : `in ${span(days * 86_400)}`,
      `${certificate.at.slice(0, 10)}, ${certificate.target}`,
      tone,
    ),
  ];
}

/** Only once a tenth is used: before that it says nothing. @param {OverviewJson['journal']} journal */
function journalTile(journal) {
  const used = journal.bytes - journal.reserved;
  const [more, tone] = journalState(journal);
  if (tone === '' && used < journal.maxSize / 10) return [];
  const meter = html('progress', { max: journal.maxSize, value: used, 'aria-label': 'Journal used' });
  return [tile('Journal', `${size(used)} of ${size(journal.maxSize)}`, more, tone, [meter])];
}

/** @param {OverviewJson['journal']} journal @returns {[text: string, tone: string]} */
function journalState({ paused, forecast, head }) {
  if (paused !== null) return [`collection is paused: ${paused}`, 'bad'];
  if (forecast) return [`full in about ${span(forecast.secondsUntilFull)} unless ${forecast.sink} resumes`, 'warning'];
  return [`${grouped(head)} ${head === 1 ? 'entry' : 'entries'}`, ''];
}

function showPicture() {
  const overview = shown?.overview;
  byId('picture-part').hidden = !overview?.detail;
  if (!overview?.detail) return;
  const { detail, sinks } = overview;
  const failing = new Set(sinks.filter(({ state }) => isBad(state)).map(({ id }) => id));
  const source = overview.sources.find(({ id }) => id === detail.source);
  const width = Math.max(280, Math.floor(byId('picture').clientWidth));
  renew(byId('picture'), [picture(detail, failing, source, now() / 1000, width)]);
  const entries = sinkLegend(detail, failing, width);
  byId('sink-legend').hidden = entries.length === 0;
  renew(byId('sink-legend'), entries);
  const keys = windowCounts(detail).map(({ letter, name, count }) =>
    html('li', {}, html('span', { class: `key w-${letter}`, 'aria-hidden': 'true' }), ` ${grouped(count)} ${name}`),
  );
  const open = html('li', {}, html('span', { class: 'key w-o', 'aria-hidden': 'true' }), ' open: not proven yet');
  renew(byId('legend'), [...keys, open]);
  renew(byId('windows-table'), [windowsTable(detail, now())]);
}

/** @template {{ readonly id: string }} Item @param {string} name @param {readonly Item[]} items @param {(item: Item) => string} words */
function found(name, items, words) {
  const input = byId(`find-${name}`, HTMLInputElement);
  const wanted = input.value.trim().toLowerCase();
  const some = items.filter((item) => words(item).toLowerCase().includes(wanted));
  byId(`${name}-filter`).hidden = items.length < filterFrom;
  write(byId(`${name}-count`), wanted === '' ? grouped(items.length) : `${grouped(some.length)} of ${grouped(items.length)}`);
  return some;
}

/** Gaps and windows in doubt, from the lists that `waybill gaps list` prints. @param {OverviewJson} overview */
async function showGaps({ sources }) {
  const count = sources.reduce((sum, { gaps, inDoubt }) => sum + gaps + inDoubt, 0);
  byId('gaps-part').hidden = count === 0;
  if (count === 0 || (count === gapsRead.count && performance.now() - gapsRead.at < gapsMs)) return;
  gapsRead = { at: performance.now(), count };
  try {
    const answer = await fetch('gaps', { cache: 'no-store', signal: AbortSignal.timeout(timeoutMs) });
    const body = /** @type {unknown} */ (await answer.json());
    const { gaps = [], inDoubt = [] } = /** @type {import('./tables.js').GapLists} */ (body);
    renew(byId('gaps'), [gapsTable([...gaps, ...inDoubt], now())]);
  } catch {
    // The connection line of the page reports an unreachable daemon; the next read tries again.
    gapsRead = { at: -Infinity, count };
  }
}

function showTables() {
  if (!shown) return;
  const { sources, sinks, detail } = shown.overview;
  const someSources = found('sources', sources, ({ id, state, message }) => `${id} ${state} ${message ?? ''}`);
  const focused = document.activeElement?.getAttribute('data-source');
  renew(byId('sources'), [sourcesTable(someSources, now(), detail?.source ?? '')]);
  // Another order moves the source to another row: the focus stays with the source.
  if (focused && document.activeElement?.getAttribute('data-source') !== focused) {
    const button = byId('sources').querySelector(`[data-source="${CSS.escape(focused)}"]`);
    if (button instanceof HTMLElement) button.focus();
  }
  const someSinks = found('sinks', sinks, ({ id, type, state, lastError }) => `${id} ${type} ${state} ${lastError ?? ''}`);
  renew(byId('sinks'), [sinksTable(someSinks, now())]);
}

/** @param {OverviewJson} overview */
function showChoices({ sources, detail }) {
  const ids = sources.map(({ id }) => id).sort();
  const source = byId('source', HTMLSelectElement);
  byId('choice').hidden = ids.length < 2;
  renew(
    source,
    ids.map((id) => html('option', { value: id }, id)),
  );
  if (document.activeElement !== source) source.value = detail?.source ?? '';
  byId('ledger-choice').hidden = ids.length < 2;
  const [all, ...others] = ['', ...ids].map((id) => html('option', { value: id }, id === '' ? 'all sources' : id));
  renew(byId('ledger-source'), all ? [all, ...others] : others);
  const day = (/** @type {number} */ days) => new Date(now() - days * 86_400_000).toISOString().slice(0, 10);
  const [today, month] = [day(0), day(0).slice(0, 7)];
  const periods = [
    { name: 'Last 24 hours', query: 'from=-24h&by=window' },
    { name: 'Last 7 days', query: 'from=-7d&by=day' },
    { name: `This month (${month})`, query: `from=${month}-01&by=day` },
    { name: `Today (${today})`, query: `from=${today}&by=window` },
    { name: 'Everything', query: 'by=month' },
  ];
  renew(
    byId('periods'),
    periods.map(({ name, query }) => html('li', {}, html('a', { href: `ledger?format=html&${query}` }, name))),
  );
}

byId('sources').addEventListener('click', ({ target }) => {
  const id = target instanceof Element ? target.closest('[data-source]')?.getAttribute('data-source') : undefined;
  if (id) choose(id);
});
byId('source').addEventListener('change', () => choose(byId('source', HTMLSelectElement).value));
for (const name of ['sources', 'sinks']) byId(`find-${name}`).addEventListener('input', showTables);
byId('period').addEventListener('formdata', ({ formData }) => {
  for (const name of ['from', 'to', 'source']) if (formData.get(name) === '') formData.delete(name);
});
document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('[data-copy]') : null;
  if (!button) return;
  void navigator.clipboard.writeText(button.getAttribute('data-copy') ?? '').then(() => write(button, 'Copied'));
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void read();
});
window.addEventListener('online', () => void read());
new ResizeObserver(showPicture).observe(byId('picture'));
setInterval(tick, 1_000);
void read();
