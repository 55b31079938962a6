/**
 * Draws a dashboard as an SVG that follows the colour scheme of its viewer. The layout is Kibana's:
 * 48 columns, rows of 20 pixels.
 */
import { worldMap } from '../world-map.ts';

/** Counts per time bucket, one list for each series. */
export interface BarsData {
  readonly kind: 'bars';
  readonly times: readonly number[];
  readonly series: readonly { readonly name: string; readonly counts: readonly number[] }[];
}

export interface TableData {
  readonly kind: 'table';
  readonly columns: readonly { readonly label: string; readonly isNumber: boolean }[];
  readonly rows: readonly (readonly string[])[];
  /** The number of all rows; the picture shows only the first. */
  readonly total: number;
}

export interface MapData {
  readonly kind: 'map';
  readonly clusters: readonly { readonly lon: number; readonly lat: number; readonly count: number }[];
}

export interface PanelPicture {
  readonly title: string;
  readonly grid: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly data: BarsData | TableData | MapData | TextData;
}

/** Markdown, without a title above it. */
interface TextData {
  readonly kind: 'text';
  readonly markdown: string;
}

interface DashboardPicture {
  readonly title: string;
  readonly description: string;
  /** `Last 7 days` */
  readonly range: string;
  readonly controls: readonly string[];
  readonly panels: readonly PanelPicture[];
}

const [pageWidth, margin, columns, rowHeight, gap] = [1280, 16, 48, 20, 8];
const columnWidth = (pageWidth - 2 * margin) / columns;
/** The heights of the title and of a row of controls. */
const [titleHeight, controlsHeight] = [64, 40];

/** Distinguishable with the common kinds of colour blindness, on light and dark. */
const colours = [
  '#54b399',
  '#6092c0',
  '#d36086',
  '#9170b8',
  '#d6a657',
  '#e7664c',
  '#8aa63b',
  '#ca8eae',
  '#b9a888',
  '#aa6556',
  '#4f74d1',
  '#7b8794',
];

const style = `
.page{fill:#f6f9fc}.card{fill:#fff;stroke:#d9e0ea}.title{font-weight:600}.text{fill:#1d2a3e}.muted{fill:#5d6b82}.line{stroke:#e3e8f0}
.chip{fill:#fff;stroke:#c7d0de}.land{fill:#dbe2ec}.dot{fill:#e7664c;fill-opacity:.72;stroke:#fff}
text{font:12px Inter,"Segoe UI",Roboto,Helvetica,Arial,"DejaVu Sans",sans-serif}.head{font-size:20px}.small{font-size:11px}
.number{font-variant-numeric:tabular-nums}.strong{font-weight:600}.emphasis{font-style:italic}.code{font-family:monospace}
@media (prefers-color-scheme:dark){.page{fill:#0b1220}.card{fill:#141d2e;stroke:#2b394f}.text{fill:#dfe5ef}.muted{fill:#98a7bf}
.line{stroke:#263349}.chip{fill:#1b273b;stroke:#3a4a63}.land{fill:#2a3950}.dot{stroke:#141d2e}}
`;

export function dashboardSvg({ title, description, range, controls, panels }: DashboardPicture): string {
  const top = titleHeight + (controls.length > 0 ? controlsHeight : 0);
  const height = top + Math.max(...panels.map(({ grid }) => grid.y + grid.h)) * rowHeight + margin;
  const chips = controls.map((control, index) => chip(margin + index * 190, 62, 180, control, 'Any'));
  const time = chip(pageWidth - margin - 180, 20, 180, 'Time', range);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${pageWidth} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<style>${style.replaceAll('\n', '')}</style>`,
    `<rect class="page" width="${pageWidth}" height="${height}" rx="6"/>`,
    text(margin, 32, title, 'title text head'),
    text(margin, 51, description, 'muted'),
    time,
    ...chips,
    ...panels.map((panel) => panelSvg(panel, top)),
    '</svg>',
    '',
  ].join('\n');
}

function chip(x: number, y: number, width: number, label: string, value: string): string {
  const box = `<rect class="chip" x="${x}" y="${y}" width="${width}" height="28" rx="6"/>`;
  return box + text(x + 10, y + 18, label, 'title text small') + text(x + width - 10, y + 18, value, 'muted small', 'end');
}

function panelSvg({ title, grid, data }: PanelPicture, pageTop: number): string {
  const [x, y] = [margin + grid.x * columnWidth + gap / 2, pageTop + grid.y * rowHeight + gap / 2];
  const [width, height] = [grid.w * columnWidth - gap, grid.h * rowHeight - gap];
  const inner = [width - 24, height - 44] as const;
  const drawn = data.kind === 'bars' ? barsSvg(data, ...inner) : data.kind === 'table' ? tableSvg(data, ...inner) : data.kind === 'map' ? mapSvg(data, ...inner) : textSvg(data, inner[0]); // prettier-ignore
  const top = data.kind === 'text' ? 4 : 34;
  return [
    `<g transform="translate(${x} ${y})">`,
    `<rect class="card" width="${width}" height="${height}" rx="6"/>`,
    ...(title === '' ? [] : [text(12, 22, title, 'title text')]),
    `<g transform="translate(12 ${top})">${drawn}</g></g>`,
  ].join('\n');
}

const legendWidth = 236;

function barsSvg({ times, series }: BarsData, width: number, height: number): string {
  const hasRoom = width > 800;
  const legendText = hasRoom ? legendWidth + 140 : legendWidth;
  const [left, right, bottom] = [34, width - legendText - 16, height - 22];
  const totals = times.map((_, index) => series.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0));
  const step = niceStep(Math.max(...totals, 1) / 4);
  const top = Math.ceil(Math.max(...totals, 1) / step) * step;
  const yOf = (count: number): number => bottom - (count / top) * (bottom - 6);
  const slot = (right - left) / times.length;
  const lines = Array.from({ length: top / step + 1 }, (_, index) => index * step).map(
    (count) =>
      `<path class="line" d="M${left} ${yOf(count).toFixed(1)}H${right.toFixed(1)}"/>` +
      text(left - 6, yOf(count) + 4, String(count), 'muted small number', 'end'),
  );
  const labels = times.flatMap((time, index) => {
    const label = labelOf(time, (times.at(-1) ?? 0) - (times[0] ?? 0));
    return label === undefined ? [] : [text(left + index * slot, height - 4, label, 'muted small')];
  });
  const base = times.map(() => 0);
  const bars = series.map(({ counts }, position) => {
    const path = counts.map((count, index) => {
      if (count === 0) return '';
      const from = base[index] ?? 0;
      base[index] = from + count;
      const [x, y0, y1] = [left + index * slot + slot * 0.1, yOf(from), yOf(from + count)];
      return `M${x.toFixed(1)} ${y0.toFixed(1)}V${y1.toFixed(1)}h${(slot * 0.8).toFixed(1)}V${y0.toFixed(1)}Z`;
    });
    return `<path fill="${colourOf(position)}" d="${path.join('')}"/>`;
  });
  const rows = Math.floor(height / 17);
  const named = series.length > rows ? rows - 1 : rows;
  const legend = series.slice(0, named).map(({ name }, index) => {
    const y = 8 + index * 17;
    const mark = `<rect x="${right + 16}" y="${y - 7}" width="9" height="9" rx="2" fill="${colourOf(index)}"/>`;
    return mark + text(right + 31, y + 2, fitted(name, legendText - 31), 'text small');
  });
  const more = series.length > named ? text(right + 31, 10 + named * 17, `and ${series.length - named} more`, 'muted small') : '';
  return [...lines, ...bars, ...labels, ...legend, more].join('');
}

const colourOf = (index: number): string => colours[index % colours.length] ?? '';

/** 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10);
}

/** The date at midnight; within a day, every third hour. @param range  of the axis, ms */
function labelOf(time: number, range: number): string | undefined {
  const iso = new Date(time).toISOString();
  if (range < 86_400_000) return /T(00|03|06|09|12|15|18|21):00/.test(iso) ? iso.slice(11, 16) : undefined;
  if (!iso.includes('T00')) return undefined;
  return new Date(time).toLocaleDateString('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
}

function tableSvg({ columns: heads, rows, total }: TableData, width: number, height: number): string {
  const shown = rows.slice(0, Math.floor((height - 24) / 22));
  const widths = widthsOf(heads, shown, width);
  const starts = widths.map((_, index) => widths.slice(0, index).reduce((sum, each) => sum + each, 0));
  const cell = (index: number, y: number, value: string, names: string): string => {
    const [start, size] = [starts[index] ?? 0, widths[index] ?? 0];
    return heads[index]?.isNumber
      ? text(start + size - 18, y, fitted(value, size - 18), `${names} number`, 'end')
      : text(start, y, fitted(value, size - columnGap), names);
  };
  const head = heads.map(({ label }, index) => cell(index, 12, label, 'muted small title'));
  const body = shown.map(
    (row, line) =>
      `<path class="line" d="M0 ${20 + line * 22}H${width}"/>` +
      row.map((value, index) => cell(index, 35 + line * 22, value, 'text small')).join(''),
  );
  const rest = total > shown.length ? text(width, height + 6, `${shown.length} of ${total} rows`, 'muted small', 'end') : '';
  return [...head, ...body, rest].join('');
}

/** Space between the texts of two columns. */
const columnGap = 14;

/** Short columns have the width of their content, and the others share the rest. */
function widthsOf(heads: TableData['columns'], rows: TableData['rows'], width: number): readonly number[] {
  const wanted = heads.map(({ label, isNumber }, index) => {
    const longest = Math.max(...[label, ...rows.map((row) => row[index] ?? '')].map(widthOf));
    return isNumber ? label.length * 7 + 34 : longest + columnGap;
  });
  const isShort = (each: number): boolean => each <= 130;
  const sumOf = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0);
  const long = sumOf(wanted.filter((each) => !isShort(each)).map((each) => Math.min(each, 300)));
  const left = width - sumOf(wanted.filter(isShort));
  if (long === 0) return wanted.map((each) => (each * width) / sumOf(wanted));
  return wanted.map((each) => (isShort(each) ? each : (Math.min(each, 300) * left) / long));
}

/** Paragraphs of markdown with strong and emphasized words and code. */
function textSvg({ markdown }: TextData, width: number): string {
  const [lineHeight, space] = [18, 8];
  let y = 0;
  const lines = markdown.split('\n\n').flatMap((paragraph) => {
    y += space;
    return linesOf(paragraph, width).map((spans) => {
      const shown = spans.map(({ names, content }) => `<tspan class="${names}">${escaped(content)}</tspan>`);
      return `<text x="0" y="${(y += lineHeight)}" class="text" xml:space="preserve">${shown.join('')}</text>`;
    });
  });
  return lines.join('');
}

interface TextSpan {
  readonly names: string;
  content: string;
}

/** The lines of a paragraph, each as texts with the names of their styles. */
function linesOf(paragraph: string, width: number): readonly (readonly TextSpan[])[] {
  const lines: TextSpan[][] = [[]];
  let used = 0;
  for (const piece of paragraph.match(/\*\*.+?\*\*|\*.+?\*|`.+?`|[^*`]+/g) ?? []) {
    const [mark, names] = marks.find(([each]) => piece.startsWith(each)) ?? ['', 'plain'];
    for (const word of piece.slice(mark.length, piece.length - mark.length).split(/(?<= )/)) {
      const size = widthOf(word) * markdownScale;
      if (used > 0 && used + size > width) {
        lines.push([]);
        used = 0;
      }
      used += size;
      const line = lines.at(-1) ?? [];
      const last = line.at(-1);
      if (last?.names === names) last.content += word;
      else line.push({ names, content: word });
    }
  }
  return lines;
}

const marks = [
  ['**', 'strong'],
  ['*', 'emphasis'],
  ['`', 'code'],
] as const;

/** Markdown is wider than a text of `widthOf`: 12 px, with strong words and code. */
const markdownScale = 1.2;

function mapSvg({ clusters }: MapData, width: number, height: number): string {
  const world = worldMap(width);
  const lift = Math.max(0, (world.height - height) / 2);
  const most = Math.max(...clusters.map(({ count }) => count));
  const dots = clusters
    .toSorted((a, b) => b.count - a.count)
    .map(({ lon, lat, count }) => {
      const [x, y] = world.place(lon, lat);
      return `<circle class="dot" cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${(4 + 12 * Math.sqrt(count / most)).toFixed(1)}"/>`;
    });
  const clip = `<clipPath id="map"><rect width="${width}" height="${height}" rx="4"/></clipPath>`;
  const layers = `<path class="land" d="${world.land}"/>${dots.join('')}`;
  return `${clip}<g clip-path="url(#map)"><g transform="translate(0 ${(-lift).toFixed(1)})">${layers}</g></g>`;
}

function text(x: number, y: number, content: string, names: string, anchor?: 'end'): string {
  const end = anchor ? ` text-anchor="${anchor}"` : '';
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${names}"${end}>${escaped(content)}</text>`;
}

/** Truncated with an ellipsis if wider than the space. */
function fitted(content: string, room: number): string {
  if (widthOf(content) <= room) return content;
  const characters = Array.from(content);
  while (characters.length > 1 && widthOf(`${characters.join('')}…`) > room) characters.pop();
  return `${characters.join('').trimEnd()}…`;
}

/** The width in px of a text in DejaVu Sans of 11 px, the widest of the fonts in `style`; ideographs are square. */
function widthOf(content: string): number {
  let width = 0;
  for (const character of content) width += 11 * (widths.find(([pattern]) => pattern.test(character))?.[1] ?? 0.65);
  return width;
}

/** Width of the matching characters, as a share of the font size. */
const widths: readonly (readonly [RegExp, number])[] = [
  [/[\u2e80-\u{10ffff}]/u, 1],
  [/[…WMm@%]/, 1],
  [/[ijl.,:;'|I ]/, 0.34],
  [/[frt\-()/\\"]/, 0.46],
  [/[A-HJ-LN-VX-Zw]/, 0.79],
];

const escaped = (content: string): string => content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
