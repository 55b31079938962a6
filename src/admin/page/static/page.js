/** The status page: reads the overview every few seconds and shows it. While the daemon is unreachable, it shows the age of the data. */
import { byId, html, renew, write } from './elements.js';
import { picture, windowCounts } from './picture.js';
import { sinksTable, sourcesTable, windowsTable } from './tables.js';
import { clock, counted, grouped, size, span } from './text.js';

/** @import { OverviewJson } from '../overview.ts' */

const readMs = 3_000;
const retryMs = 2_000;
const timeoutMs = 10_000;
/** The smallest number of sources with a filter field. */
const filterFrom = 6;

/** @type {{ overview: OverviewJson, at: number } | undefined}  `at`: the time of its arrival by `performance.now()` */
let shown;
/** @type {{ since: number, reason: string } | undefined} */
let outage;
/** @type {number | undefined} */
let backAt;
let chosen = new URLSearchParams(location.hash.slice(1)).get('source') ?? '';
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
function showHeadline({ summary, tone, advice, waits }) {
  // A summary begins with the result in capitals; the explanation follows.
  const [head = ''] = /^[A-Z][A-Z, ]*[A-Z](?![a-z])(?: at [^;]*)?/.exec(summary) ?? [];
  const rest = summary.slice(head.length).replace(/^[:,;]? /, '');
  byId('headline').dataset['tone'] = tone;
  write(byId('summary'), head === '' ? summary : head);
  write(byId('summary-rest'), head === '' ? '' : rest.charAt(0).toUpperCase() + rest.slice(1));
  tabTitle = `${{ good: '✓', waiting: '…', warning: '!', bad: '✗' }[tone]} ${head === '' ? 'Waybill' : `${head} · Waybill`}`;
  byId('todo').hidden = advice === null;
  if (advice) {
    write(byId('todo-what'), advice.what);
    write(byId('todo-lost'), advice.lost);
    renew(byId('todo-operation'), [html('strong', {}, 'To do: '), html('span', {}, advice.operation)]);
  }
  byId('waits').hidden = waits.length === 0;
  renew(
    byId('waits'),
    waits.map((line) => html('li', {}, line)),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} more
 * @param {string} [tone]
 * @param {readonly Node[]} [others]
 */
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
function tiles({ sources, sinks, journal, delivered, lacking, complete, firstProof }) {
  const polled = sources.filter(({ state }) => state !== 'retired' && state !== 'unconfigured');
  const known = polled.filter(({ frontier, strip }) => frontier !== null && strip !== '');
  const oldest = known.toSorted((a, b) => (b.lagSeconds ?? 0) - (a.lagSeconds ?? 0))[0];
  const until = oldest?.frontier
    ? tile(
        // The time before the frontier may contain accepted gaps and windows in doubt.
        complete ? 'Complete until' : 'Proven up to',
        `${clock(Date.parse(oldest.frontier), now())} UTC`,
        `${span(oldest.lagSeconds ?? 0)} ago${polled.length > 1 ? `; slowest: ${oldest.id}` : ''}`,
        complete ? 'good' : '',
      )
    : tile(
        'Complete until',
        'nothing proven yet',
        firstProof === null ? '' : `first proof about ${clock(Date.parse(firstProof), now())} UTC`,
      );
  const active = sinks.filter(({ state }) => state !== 'retired');
  const newest = active
    .flatMap(({ lastSuccess }) => lastSuccess ?? [])
    .sort()
    .at(-1);
  const waiting = Math.max(0, ...active.map(({ lagRecords }) => lagRecords));
  // A sink that has everything proven can fail nevertheless: newer records wait for it.
  const failing = active.filter(({ needsAttention, lagRecords }) => needsAttention && lagRecords > 0).map(({ id }) => id);
  const last = newest === undefined ? 'no delivery since the start' : `last delivery ${span((now() - Date.parse(newest)) / 1000)} ago`;
  const behind = delivered ? failing : lacking;
  const more = behind.length === 0 || waiting === 0 ? last : `${behind.join(', ')}: ${counted(waiting, 'record')} to deliver`;
  const delivery =
    active.length === 0
      ? tile('Delivered', 'no sink', '')
      : known.length === 0
        ? // Records in transit to a sink are normal, and no window lacks them yet.
          tile('Delivered', 'nothing due yet', more)
        : tile('Delivered', delivered ? 'everything proven' : 'not all', more, behind.length === 0 ? 'good' : 'warning');
  const needy = [...sources, ...sinks].filter(({ needsAttention }) => needsAttention).map(({ id }) => id);
  const names = needy.length > 3 ? `${needy.slice(0, 3).join(', ')} and ${needy.length - 3} more` : needy.join(', ');
  const needs = tile('Needs attention', needy.length === 0 ? 'nothing' : names, `${counted(polled.length, 'source')}, ${counted(active.length, 'sink')}`, needy.length === 0 ? 'good' : 'bad'); // prettier-ignore
  const meter = html('progress', { max: journal.maxSize, value: journal.bytes - journal.reserved, 'aria-label': 'Journal used' });
  const [used, tone] = journalState(journal);
  const space = tile('Journal', `${size(journal.bytes - journal.reserved)} of ${size(journal.maxSize)}`, used, tone, [meter]);
  return [until, delivery, needs, space];
}

/**
 * @param {OverviewJson['journal']} journal
 * @returns {[text: string, tone: string]}
 */
function journalState({ paused, forecast, head }) {
  if (paused !== null) return [`collection is paused: ${paused}`, 'bad'];
  if (forecast) return [`full in about ${span(forecast.secondsUntilFull)} unless ${forecast.sink} resumes`, 'warning'];
  return [`${grouped(head)} ${head === 1 ? 'entry' : 'entries'}`, ''];
}

function showPicture() {
  const overview = shown?.overview;
  byId('picture-part').hidden = !overview?.detail;
  if (!overview?.detail) return;
  const { detail } = overview;
  const source = overview.sources.find(({ id }) => id === detail.source);
  const width = Math.max(280, Math.floor(byId('picture').clientWidth));
  renew(byId('picture'), [picture(detail, source, now() / 1000, width)]);
  const keys = windowCounts(detail).map(({ letter, name, count }) =>
    html('li', {}, html('span', { class: `key w-${letter}`, 'aria-hidden': 'true' }), ` ${grouped(count)} ${name}`),
  );
  const open = html('li', {}, html('span', { class: 'key w-o', 'aria-hidden': 'true' }), ' open: not proven yet');
  renew(byId('legend'), [...keys, open]);
  renew(byId('windows-table'), [windowsTable(detail, now())]);
}

/**
 * @template {{ readonly id: string }} Item
 * @param {string} name
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} words
 */
function found(name, items, words) {
  const input = byId(`find-${name}`, HTMLInputElement);
  const wanted = input.value.trim().toLowerCase();
  const some = items.filter((item) => words(item).toLowerCase().includes(wanted));
  byId(`${name}-filter`).hidden = items.length < filterFrom;
  write(byId(`${name}-count`), wanted === '' ? counted(items.length, '').trim() : `${grouped(some.length)} of ${grouped(items.length)}`);
  return some;
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
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void read();
});
window.addEventListener('online', () => void read());
new ResizeObserver(showPicture).observe(byId('picture'));
setInterval(tick, 1_000);
void read();
