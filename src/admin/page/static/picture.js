/**
 * The chart of the last hours as SVG: the windows of one source over time, the age of its newest proof, and the wait of records for each
 * sink. Every state has a shape in addition to its color, and the label and the table below contain the same data.
 */
import { html, svg } from './elements.js';
import { clock, counted, span, windowStates } from './text.js';

/** @import { OverviewJson } from '../overview.ts' */
/** @typedef {NonNullable<OverviewJson['detail']>} Detail */
/** @typedef {{ readonly left: number, readonly right: number, readonly from: number, readonly to: number }} Axis */
/** @typedef {readonly (readonly [x: number, y: number])[]} Points */

const minSeconds = 60;
const maxSeconds = 6 * 3_600;
const gutter = 56;
const steps = [10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200];
/** Heights of the three parts, and the space between them. */
const strip = 30;
const proofs = 120;
const deliveries = 84;
const space = 40;
const titled = 18;

/**
 * @param {Detail} detail
 * @param {ReadonlySet<string>} failing  sinks
 * @param {OverviewJson['sources'][number] | undefined} source
 * @param {number} now  seconds since 1970
 * @param {number} width  CSS pixels
 */
export function picture(detail, failing, source, now, width) {
  const first = detail.samples[0] ?? now;
  const begin = detail.windows[0]?.[0] ?? now;
  const seconds = Math.max(minSeconds, now - first, Math.min(maxSeconds, now - begin));
  const axis = { left: gutter, right: Math.max(gutter + 100, width - 8), from: now - seconds, to: now };
  const top = titled;
  const second = top + strip + space;
  const third = second + proofs + space;
  const bottom = third + deliveries;
  const dueAfter = source?.dueAfterSeconds ?? 0;
  const height = bottom + 26;
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label(detail, source) },
    hatches(),
    ...timeAxis(axis, bottom),
    title(`Windows of ${detail.source}`, top),
    ...windowShapes(detail, axis, top, now),
    title(`Age of the newest proof${dueAfter === 0 ? '' : `; due after ${span(dueAfter)} (dashed)`}`, second),
    ...plot([{ values: detail.lag }], detail, axis, second, proofs, dueAfter, source?.lagSeconds ?? null),
    title('Wait of the oldest undelivered record', third),
    ...(isListed(detail, width) ? [] : names(detail, axis, third)),
    ...plot(
      detail.sinks.map(({ id, lag }) => ({ values: lag, isQuiet: isQuiet(id, detail, failing) })),
      detail,
      axis,
      third,
      deliveries,
      0,
      null,
    ),
  );
}

/** @param {Detail} detail @param {OverviewJson['sources'][number] | undefined} source */
function label(detail, source) {
  const known = detail.lag.filter((lag) => lag !== null);
  const proof =
    source === undefined || source.lagSeconds === null
      ? 'Nothing is proven yet.'
      : `The newest proof is ${span(source.lagSeconds)} old, at most ${span(Math.max(source.lagSeconds, ...known))}; a proof is due after ${span(source.dueAfterSeconds)}.`;
  const waits = detail.sinks.map(({ id, lag }) => `${id} ${span(lag.at(-1) ?? 0)}`).join(', ');
  return `Windows of ${detail.source}: ${windowCounts(detail)
    .map(({ name, count }) => `${count} ${name}`)
    .join(', ')}. ${proof} Records wait for sinks: ${waits || 'no sink'}.`;
}

/** The number of windows in each state, without states that have none. @param {Detail} detail */
export function windowCounts(detail) {
  return [...windowStates]
    .map(([letter, name]) => ({ letter, name, count: detail.windows.filter((window) => window[2] === letter).length }))
    .filter(({ count }) => count > 0);
}

/** @param {string} text @param {number} y */
function title(text, y) {
  return svg('text', { x: 0, y: y - 8, class: 'title' }, text);
}

/** From this number of sinks on, only failing ones have a color, and the legend is below the chart. */
const manySinks = 4;

/** @param {Detail} detail @param {number} width */
function isListed({ sinks }, width) {
  return sinks.length >= manySinks || sinks.reduce((sum, { id }) => sum + 40 + id.length * 7.5, 280) > width - 8;
}

/** @param {string} id @param {Detail} detail @param {ReadonlySet<string>} failing */
function isQuiet(id, { sinks }, failing) {
  return sinks.length >= manySinks && !failing.has(id);
}

/**
 * The legend below the chart: each drawn sink with its line, the others as a count. Empty if the chart has the names.
 * @param {Detail} detail
 * @param {ReadonlySet<string>} failing
 * @param {number} width
 */
export function sinkLegend(detail, failing, width) {
  if (!isListed(detail, width)) return [];
  const quiet = detail.sinks.filter(({ id }) => isQuiet(id, detail, failing)).length;
  const line = (/** @type {string} */ name) =>
    svg('svg', { width: 20, height: 8, 'aria-hidden': 'true' }, svg('line', { x1: 0, x2: 20, y1: 4, y2: 4, class: `line line-${name}` }));
  const drawn = detail.sinks.flatMap(({ id }, i) => (isQuiet(id, detail, failing) ? [] : [html('li', {}, line(String(i % 4)), ` ${id}`)]));
  return quiet === 0 ? drawn : [...drawn, html('li', {}, line('quiet'), ` ${counted(quiet, 'other sink')}`)];
}

/** Draws the legend to the right of the title. @param {Detail} detail @param {Axis} axis @param {number} y */
function names(detail, axis, y) {
  const wide = detail.sinks.map(({ id }) => 40 + id.length * 7.5);
  const all = wide.reduce((sum, each) => sum + each, 0);
  return detail.sinks.map(({ id }, i) => {
    const x = Math.max(axis.left + 6, axis.right - all) + wide.slice(0, i).reduce((sum, each) => sum + each, 0);
    const at = y - 8;
    return svg(
      'g',
      {},
      svg('line', { x1: x, x2: x + 20, y1: at - 4, y2: at - 4, class: `line line-${i % 4}` }),
      svg('text', { x: x + 25, y: at, class: `name-${i % 4}` }, id),
    );
  });
}

function hatches() {
  const hatch = (/** @type {string} */ id, /** @type {number} */ angle, /** @type {number} */ step) =>
    svg(
      'pattern',
      { id: `hatch-${id}`, width: step, height: step, patternUnits: 'userSpaceOnUse', patternTransform: `rotate(${angle})` },
      svg('rect', { width: step, height: step, class: `hatch-${id}` }),
      svg('line', { x1: 0, y1: 0, x2: 0, y2: step, class: 'hatch-line' }),
    );
  return svg('defs', {}, hatch('g', 45, 6), hatch('a', -45, 6), hatch('d', 0, 4), hatch('o', 45, 8));
}

/** @param {Axis} axis @param {number} at  seconds since 1970 */
function across({ left, right, from, to }, at) {
  return left + ((Math.min(to, Math.max(from, at)) - from) / (to - from)) * (right - left);
}

/** @param {Detail} detail @param {Axis} axis @param {number} y @param {number} now */
function windowShapes(detail, axis, y, now) {
  const last = detail.windows.at(-1)?.[1];
  const shapes = detail.windows
    .filter(([, to]) => to > axis.from)
    .map(([from, to, letter, records]) => {
      const x = across(axis, from);
      const wide = across(axis, to) - x;
      const high = letter === 'p' ? strip * 0.65 : strip;
      return svg(
        'rect',
        { x, y: y + strip - high, width: Math.max(1, wide - (wide > 5 ? 1.5 : wide > 2 ? 0.6 : 0)), height: high, class: `w-${letter}` },
        svg(
          'title',
          {},
          `${clock(from * 1000, now * 1000)}–${clock(to * 1000, now * 1000)}: ${windowStates.get(letter) ?? letter}, ${counted(records, 'record')}`,
        ),
      );
    });
  const openFrom = Math.max(axis.from, last ?? axis.from);
  const x = across(axis, openFrom);
  const open = svg(
    'rect',
    { x, y: y + strip * 0.35, width: Math.max(0, axis.right - x), height: strip * 0.65, class: 'w-o' },
    svg('title', {}, 'open: not proven yet'),
  );
  return [svg('line', { x1: axis.left, x2: axis.right, y1: y + strip + 0.5, y2: y + strip + 0.5, class: 'base' }), ...shapes, open];
}

/**
 * Lines over time, with a scale and the bound.
 * @param {readonly { readonly values: readonly (number | null)[], readonly isQuiet?: boolean }[]} series
 * @param {Detail} detail
 * @param {Axis} axis
 * @param {number} y
 * @param {number} high
 * @param {number} bound  seconds; 0: none
 * @param {number | null} present
 */
function plot(series, detail, axis, y, high, bound, present) {
  const largest = Math.max(10, bound * 1.15, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)), present ?? 0);
  const up = (/** @type {number} */ value) => y + high - (Math.min(largest, value) / largest) * (high - 4);
  const marks = scale(largest);
  const grid = marks.flatMap((mark) => [
    svg('line', { x1: axis.left, x2: axis.right, y1: up(mark), y2: up(mark), class: mark === 0 ? 'base' : 'grid' }),
    svg('text', { x: axis.left - 8, y: up(mark) + 4, class: 'tick end' }, mark === 0 ? '0' : span(mark)),
  ]);
  const limit = bound === 0 ? [] : [svg('line', { x1: axis.left, x2: axis.right, y1: up(bound), y2: up(bound), class: 'bound' })];
  const lines = series.flatMap(({ values, isQuiet: quiet = false }, i) => {
    const color = quiet ? 'quiet' : i % 4;
    const runs = runsOf(values, detail, axis, up);
    const shape = runs.map((run) => run.map(([x, at], j) => `${j === 0 ? 'M' : 'L'}${x.toFixed(1)} ${at.toFixed(1)}`).join('')).join('');
    const areas = runs.map((run) => {
      const [start, end] = [run[0]?.[0] ?? 0, run.at(-1)?.[0] ?? 0];
      return `M${start.toFixed(1)} ${y + high}${run.map(([x, at]) => `L${x.toFixed(1)} ${at.toFixed(1)}`).join('')}L${end.toFixed(1)} ${y + high}Z`;
    });
    const [endX, endY] = runs.at(-1)?.at(-1) ?? [];
    const end =
      endX === undefined || endY === undefined ? [] : [svg('circle', { cx: endX, cy: endY, r: quiet ? 2 : 3.5, class: `end-${color}` })];
    return [
      ...(series.length === 1 ? [svg('path', { d: areas.join(''), class: 'area' })] : []),
      svg('path', { d: shape, class: `line line-${color}` }),
      ...end,
    ];
  });
  const isEmpty = series.every(({ values }) => values.every((value) => value === null));
  const empty = isEmpty ? [svg('text', { x: axis.left + 6, y: y + high - 10, class: 'tick' }, 'no sample yet')] : [];
  return [...grid, ...limit, ...lines, ...empty];
}

/**
 * Splits a line where nothing was sampled.
 * @param {readonly (number | null)[]} values
 * @param {Detail} detail
 * @param {Axis} axis
 * @param {(value: number) => number} up
 * @returns {Points[]}
 */
function runsOf(values, detail, axis, up) {
  const apart = Math.max(30, detail.intervalSeconds * 3);
  /** @type {(readonly [number, number])[][]} */
  const runs = [];
  let before = -Infinity;
  values.forEach((value, i) => {
    const at = detail.samples[i] ?? 0;
    if (value === null || at < axis.from) return;
    if (at - before > apart) runs.push([]);
    runs.at(-1)?.push([across(axis, at), up(value)]);
    before = at;
  });
  return runs;
}

/** Zero and one or two round values. @param {number} largest  seconds */
function scale(largest) {
  const nice = [5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 604_800, 2_592_000];
  const step = nice.findLast((each) => each <= largest / 1.5) ?? 5;
  return [0, ...[1, 2].map((n) => n * step).filter((mark) => mark <= largest)];
}

/** @param {Axis} axis @param {number} y */
function timeAxis(axis, y) {
  const seconds = axis.to - axis.from;
  const most = Math.max(2, Math.floor((axis.right - axis.left) / 84));
  const step = steps.find((each) => seconds / each <= most) ?? Math.ceil(seconds / most / 3_600) * 3_600;
  const marks = [];
  for (let at = Math.ceil(axis.from / step) * step; at < axis.to; at += step) marks.push(at);
  return marks
    .flatMap((at) => {
      const x = across(axis, at);
      // A centered label of six digits and "now" need this space.
      const isNear = x > axis.right - 60;
      return [
        svg('line', { x1: x, x2: x, y1: titled, y2: y + 4, class: 'grid' }),
        ...(isNear || x < axis.left + 10 ? [] : [svg('text', { x, y: y + 18, class: 'tick middle' }, clock(at * 1000, at * 1000))]),
      ];
    })
    .concat([svg('text', { x: axis.right, y: y + 18, class: 'tick end' }, 'now')]);
}
