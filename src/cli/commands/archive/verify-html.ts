/**
 * The result of `waybill archive verify` as one HTML page to be filed with an opinion: without scripts and external resources, and for print.
 * Every text of the archive is escaped. Pure.
 */
import { formatVerifier, type Verifier } from '../../../archive/signed-note.ts';
import type { VerifyReport } from '../../../archive/verify/verify.ts';
import type { Micros } from '../../../model/time.ts';
import { ledgerHtmlPolicy, style } from '../../../report/ledger/html-style.ts';
import { number, table, text } from '../../../report/ledger/html-tables.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { joined } from '../../../report/chunks.ts';
import { lines, markup, none, trusted, type Html } from '../../../report/markup.ts';
import { conclusions } from './verify-text.ts';

interface Asked {
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
  readonly hasSince: boolean;
  readonly hasTimeStamps: boolean;
  readonly hasWitnesses: boolean;
  readonly keys: readonly Verifier[];
  readonly now: Micros;
  readonly version: string;
}

const maxFindings = 1_000;
const tones = { intact: 'good', unproven: 'warn', altered: 'bad' } as const;

/** In chunks; can be read once. */
export function verifyHtml(report: VerifyReport, asked: Asked): Iterable<string> {
  const { origin, checkpoints, records, root, result } = report;
  const [verdict = '', ...more] = conclusions(report, asked.hasSince, asked.now);
  const period =
    asked.from === undefined && asked.to === undefined
      ? 'the whole archive'
      : `${bound(asked.from, 'its start')} to ${bound(asked.to, 'its end')}`;
  const size = counted(report.lines, 'line');
  const facts: readonly (readonly [name: string, value: string])[] = [
    ['Archive', origin ?? 'not known'],
    ['Period', period],
    ['Checked', `${counted(checkpoints, 'signed checkpoint')}, ${size}, ${counted(records, 'record')}`],
    ['Root', root === undefined ? 'no signed checkpoint' : `${root} (SHA-256 in base64, of ${size})`],
    ...asked.keys.map((key) => ['Key', formatVerifier(key)] as const),
    ['Verifier', `Waybill ${asked.version}, on ${rfc3339(asked.now)}`],
  ];
  const page = lines([
    trusted('<!doctype html>'),
    markup`<html lang="en">`,
    markup`<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    markup`<meta http-equiv="Content-Security-Policy" content="${ledgerHtmlPolicy}"><meta name="referrer" content="no-referrer">`,
    markup`<title>Verification of the archive ${origin ?? ''}</title><style>${trusted(style)}</style></head>`,
    markup`<body><header><h1>Verification of a signed archive</h1>`,
    markup`<p class="summary ${tones[result]}">${verdict}</p></header><main>`,
    markup`<ul>${more.map((line) => markup`<li>${line}</li>`)}</ul>`,
    markup`<dl>${facts.map(([name, value]) => markup`<dt>${name}</dt><dd><code>${value}</code></dd>`)}</dl>`,
    sourcePart(report),
    findingPart(report),
    markup`<section><h2>What was not checked</h2><ul>${notChecked(report, asked).map((each) => markup`<li>${each}</li>`)}</ul></section>`,
    markup`</main></body></html>`,
    none,
  ]);
  return joined([page.chunks], '');
}

function bound(at: Micros | undefined, otherwise: string): string {
  return at === undefined ? otherwise : rfc3339(at);
}

function sourcePart({ sources }: VerifyReport): Html {
  if (sources.length === 0) return none;
  const rows = sources.map((each) => [
    markup`<th scope="row">${each.source}</th>`,
    ...[text(rfc3339(each.from)), text(each.to === undefined ? '' : rfc3339(each.to))],
    ...[each.windows, each.proven, each.notChecked, each.records].map((count) => number(grouped(count))),
    markup`<td class="words"><code>${each.digest}</code></td>`,
  ]);
  const heads = ['Source', 'From', 'To', '#Windows', '#Proven', '#Not checked', '#Records of proven windows', 'Digest'];
  return lines([
    markup`<section><h2>Windows that the service counted</h2>`,
    table('By source', heads, rows),
    markup`<p class="note">The service returned as many records for each proven window as it counted. The digest is the SHA-256 of one line for each proven window, in order: its start and its end in microseconds since 1970, its number of records, and its own digest, separated by blanks.</p></section>`,
  ]);
}

function findingPart({ findings }: VerifyReport): Html {
  if (findings.length === 0) return none;
  const rows = findings
    .slice(0, maxFindings)
    .map(({ severity, object, message }) => [
      markup`<th scope="row" class="${{ altered: 'bad', unproven: 'warn', note: '' }[severity]}">${severity}</th>`,
      ...[object, message].map((each) => markup`<td class="words">${each}</td>`),
    ]);
  const omitted = findings.length - rows.length;
  const rest = omitted > 0 ? markup`<p>And ${counted(omitted, 'more finding')}: --json lists all.</p>` : none;
  return markup`<section><h2>Findings</h2>${table('In the order of the check', ['Severity', 'Object', 'Finding'], rows)}${rest}</section>`;
}

function notChecked(
  { missing: lost, sources, timeStamps }: VerifyReport,
  { from, to, hasSince, hasTimeStamps, hasWitnesses }: Asked,
): readonly string[] {
  const missing = sources.reduce((sum, each) => sum + each.notChecked, 0);
  return [
    ...(hasSince ? [] : ['Whether the newest lines were removed: no checkpoint from elsewhere was given (--since).']),
    ...(hasTimeStamps ? [] : ['When the lines existed: no roots of a time-stamping authority were given (--timestamp-ca).']),
    ...(hasTimeStamps && !timeStamps ? ['When the lines existed: no time stamp is valid.'] : []),
    ...(hasWitnesses ? [] : ['Whether somebody else was shown another history: no keys of witnesses were given (--witness).']),
    ...(from === undefined && to === undefined ? [] : ['Windows outside of the period. Signatures and hashes were checked for all lines.']),
    ...(lost > 0 ? [`The content of ${counted(lost, 'line')} whose segments are missing: only hashes of them were checked.`] : []),
    ...(missing > 0 ? [`${counted(missing, 'window')} whose records may be in removed segments.`] : []),
    'Records that the service neither counted nor returned.',
    'The names of operators: nobody authenticated them.',
    'Fields that no digest covers, against the service: the digest covers logId, time, action, result and its reason.',
  ];
}
