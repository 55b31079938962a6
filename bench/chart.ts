/** The chart of README as SVG, readable on a light and on a dark page: rate and CPU of each program, with the spread of the rounds. */
import type { ChartRow, Range } from './result.ts';

const [width, labelWidth, valueWidth, rowHeight, barHeight] = [760, 190, 70, 34, 18];
const panelTop = 34;

export function chart(rows: readonly ChartRow[]): string {
  const panelHeight = panelTop + rows.length * rowHeight + 14;
  const panels = [
    panel(
      'records per second, from process start to the synced file: more is better',
      rows,
      ({ recordsPerSecond }) => recordsPerSecond,
      (value) => Math.round(value).toLocaleString('en-US'),
    ),
    panel(
      'seconds of CPU per 100,000 records: less is better',
      rows,
      ({ cpuPer100k }) => cpuPer100k,
      (value) => value.toFixed(2),
    ),
  ];
  const height = panels.length * panelHeight;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">${escaped(summary(rows))}</title>
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600 }
.bar { fill: #8c959f }
.waybill { fill: #1a7f64 }
.spread { stroke: #24292f; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6e7681 } .waybill { fill: #3fb68b } .spread { stroke: #e6edf3 } }
</style>
${panels.map((each, i) => `<g transform="translate(0 ${i * panelHeight})">\n${each}\n</g>`).join('\n')}
</svg>
`;
}

function panel(head: string, rows: readonly ChartRow[], of: (row: ChartRow) => Range, text: (value: number) => string): string {
  const longest = Math.max(...rows.map((row) => of(row).max));
  const x = (value: number): number => Math.round((value / longest) * (width - labelWidth - valueWidth) * 10) / 10;
  const bars = rows.map((row, i) => {
    const { median, min, max } = of(row);
    const top = panelTop + i * rowHeight;
    const middle = top + barHeight / 2;
    return [
      `<text x="${labelWidth - 10}" y="${middle + 5}" text-anchor="end">${escaped(row.name)}</text>`,
      `<rect class="bar${row.name.startsWith('Waybill') ? ' waybill' : ''}" x="${labelWidth}" y="${top}" width="${x(median)}" height="${barHeight}" rx="2"/>`,
      ...(min === max
        ? []
        : [`<line class="spread" x1="${labelWidth + x(min)}" x2="${labelWidth + x(max)}" y1="${middle}" y2="${middle}"/>`]),
      `<text x="${labelWidth + x(max) + 8}" y="${middle + 5}">${text(median)}</text>`,
    ].join('\n');
  });
  return [`<text class="head" x="10" y="18">${head}</text>`, ...bars].join('\n');
}

function summary(rows: readonly ChartRow[]): string {
  const each = rows.map(
    ({ name, recordsPerSecond, cpuPer100k }) =>
      `${name} ${Math.round(recordsPerSecond.median).toLocaleString('en-US')} records per second, ${cpuPer100k.median.toFixed(2)} s of CPU per 100,000`,
  );
  return `${each.join('; ')}.`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
