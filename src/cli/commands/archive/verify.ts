/** `waybill archive verify`: checks an archive, or proofs of single lines, against public keys. */
import { systemClock } from '../../../time/clock.ts';
import { formatVerifier } from '../../../archive/signed-note.ts';
import { checkProofs, worstOf, type VerifiedLine } from '../../../archive/proof-file.ts';
import { Findings } from '../../../archive/verify/findings.ts';
import { Turns } from '../../../archive/verify/turns.ts';
import type { WitnessOptions } from '../../../archive/verify/cosignatures.ts';
import type { TimeStampOptions } from '../../../archive/verify/timestamps.ts';
import { verifyArchive, type VerifyReport } from '../../../archive/verify/verify.ts';
import { version } from '../../../disk/version.ts';
import { printable } from '../../../errors/escape.ts';
import { WaybillError, codeOf, messageOf } from '../../../errors/errors.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { parseDuration } from '../../../settings/units.ts';
import { assertForward, parsePeriod, parseTime } from '../../../settings/period.ts';
import { subcommand } from '../../command.ts';
import { inputLines, printJson, readAbortable, writeResult, type Io } from '../../io.ts';
import { choice, jsonOption, parsed, text, texts, timeOptions, toggle, type ValuesOf } from '../../option.ts';
import { keyOption, keysIn, keysOf, placeOf, placeOptions } from './place.ts';
import { Progress } from '../../progress.ts';
import { verifyHtml } from './verify-html.ts';
import { statementOf, verifyText } from './verify-text.ts';

const options = {
  ...keyOption,
  ...placeOptions,
  ...timeOptions,
  since: texts('FILE', 'a checkpoint that was stored elsewhere: the archive must contain it; may be repeated'),
  former: text('DIR', 'the archive whose last checkpoint the first line names, because its key was lost: verifies it too'),
  'timestamp-ca': text('FILE', 'root certificates of time-stamping authorities, in PEM: checks the time stamps'),
  witness: texts('FILE', 'public keys of witnesses, one name+id+base64 a line: checks the cosignatures; may be repeated'),
  quorum: parsed('N', 'how many of the witnesses must have cosigned; default all', 'a number from 1 on', (given) =>
    /^[1-9]\d{0,3}$/.test(given) ? Number(given) : undefined,
  ),
  retention: parsed('D', 'segments older than this may be missing, e.g. 400d', 'a duration such as 400d', parseDuration),
  'stamped-within': parsed(
    'D',
    'the longest time from the archiving of a line to its first time stamp or cosignature; default 48h',
    'a duration such as 48h',
    parseDuration,
  ),
  'key-until': text('T', 'a key was stolen then: what no time stamp, cosignature or --since dates before is unproven'),
  fresh: parsed('D', 'the newest line, time stamp and cosignature must not be older, e.g. 26h', 'a duration such as 26h', parseDuration),
  proof: text('FILE', 'check the proofs in this file, of "archive prove" or "archive export", without the archive'),
  print: toggle('with --proof: standard output receives the bytes of the verified lines, and nothing else'),
  format: choice('F', ['text', 'json', 'html'], 'text; json, as --json; or html, one page to be filed; default text'),
  ...jsonOption,
};

type Values = ValuesOf<typeof options>;

export const verify = subcommand({ summary: 'checks signatures, hashes, and the ledger against the records', options, run });

const exitCodes = { intact: 0, altered: 1, unproven: 3 } as const;

async function run(values: Values, io: Io): Promise<number> {
  if (values.proof !== undefined) return verifyProofs(values.proof, values, io);
  if (values.print) throw new WaybillError('usage', 'cannot use --print without --proof');
  const place = await placeOf(values, io);
  await using store = place.store;
  if (values.former !== undefined && values['key-until'] !== undefined)
    throw new WaybillError('usage', 'cannot use --key-until with --former: verify the former archive alone');
  const former =
    values.former === undefined
      ? undefined
      : await placeOf({ directory: values.former, sink: undefined, shard: undefined, config: undefined }, io);
  await using _former = former?.store;
  const verifiers = await keysOf(values.key, io.signal, place);
  const now = systemClock.now() * 1_000;
  const progress = new Progress(io.stderr);
  const findings = new Findings();
  const period = parsePeriod(values, now);
  assertForward('verify', period.from, period.to, values);
  const options = {
    ...period,
    since: await Promise.all(values.since.map((file) => checkpointIn(file, io.signal))),
    former: former?.store,
    timeStamps: await timeStampsOf(values, io.signal),
    within: values['stamped-within'] === undefined ? undefined : values['stamped-within'] * 1_000,
    keyUntil: values['key-until'] === undefined ? undefined : parseTime(values['key-until'], '--key-until', now, false),
    // The clocks of the collector, the authority and the witnesses may be a little ahead.
    ...(values.fresh !== undefined && { freshSince: now - values.fresh * 1_000, freshUntil: now + 60_000_000 }),
    cosignatures: await witnessesOf(values, io.signal),
    removedBefore: values.retention === undefined ? undefined : now - values.retention * 1_000,
    signal: io.signal,
    onProgress: ({ lines, of }: { readonly lines: number; readonly of: number }) =>
      progress.show(lines / of, () => `verified ${grouped(lines)} of ${grouped(of)} lines`),
  };
  const report = await verifyArchive(store, verifiers, options, findings)
    .catch((thrown: unknown) => unreadable(place.name, thrown, findings))
    .finally(() => progress.end());
  const { since, 'timestamp-ca': roots, witness, format = values.json ? 'json' : 'text' } = values;
  if (format === 'json') printJson(io, reportJson(report));
  else if (format === 'html') {
    const [hasSince, hasTimeStamps, hasWitnesses] = [since.length > 0, roots !== undefined, witness.length > 0];
    await writeResult(io, verifyHtml(report, { ...period, hasSince, hasTimeStamps, hasWitnesses, keys: verifiers, now, version }));
  } else io.stdout.write(`${verifyText(report, values.since.length > 0, now).join('\n')}\n`);
  return exitCodes[report.result];
}

/** The report for an archive that could not be read to its end. */
function unreadable(name: string, thrown: unknown, findings: Findings): VerifyReport {
  const isStorage = codeOf(thrown) === 'sink_unavailable' || codeOf(thrown) === 'sink_blocked';
  if (!isStorage && !(thrown instanceof Error && 'syscall' in thrown)) throw thrown;
  findings.unproven(name, `cannot read the whole archive: ${messageOf(thrown)}`);
  const nothing = { checkpoints: 0, lines: 0, missing: 0, records: 0, keys: [], sources: [], confirmed: 0 };
  return { ...nothing, result: findings.result, findings: findings.all };
}

/** Mail and editors change line breaks and blanks around a text, and add a byte order mark: the signed lines do not depend on them. */
async function checkpointIn(file: string, signal: AbortSignal): Promise<Buffer> {
  // As bytes: what is not UTF-8 must stay wrong.
  const text = (await readAbortable(file, '--since', signal)).toString('latin1').replaceAll('\r\n', '\n');
  const note = Buffer.from(`${text.replace(/^\xef\xbb\xbf/, '').replace(/^[ \t-\r]+|[ \t-\r]+$/g, '')}\n`, 'latin1');
  if (!note.includes('\n\n\u2014 '))
    throw new WaybillError('usage', `cannot use --since "${file}": it is not a checkpoint with a signature`);
  return note;
}

async function timeStampsOf({ 'timestamp-ca': file }: Values, signal: AbortSignal): Promise<TimeStampOptions | undefined> {
  if (file === undefined) return undefined;
  const text = (await readAbortable(file, '--timestamp-ca', signal)).toString('utf8');
  const { certificatesIn } = await import('../../../archive/timestamp/token.ts');
  try {
    return { roots: certificatesIn(text), now: systemClock.now() * 1_000 };
  } catch (cause) {
    throw new WaybillError('usage', `cannot use --timestamp-ca "${file}": ${messageOf(cause)}`, { cause });
  }
}

/** A key under two names is one witness: its signature does not cover the name. */
async function witnessesOf({ witness: files, quorum }: Values, signal: AbortSignal): Promise<WitnessOptions | undefined> {
  if (files.length === 0 && quorum === undefined) return undefined;
  const witnesses = (await Promise.all(files.map((file) => keysIn(file, '--witness', signal, 4)))).flat();
  const keys = new Set(witnesses.map((key) => formatVerifier(key).split('+')[2]));
  if (keys.size < witnesses.length) throw new WaybillError('usage', 'cannot use --witness: two lines have the same key');
  const least = quorum ?? witnesses.length;
  if (least > witnesses.length)
    throw new WaybillError('usage', `cannot use --quorum ${least}: --witness names ${counted(witnesses.length, 'witness', 'witnesses')}`);
  return { witnesses, quorum: least };
}

function reportJson({ sources, timeStamps, cosignatures, archivedAt, within, ...report }: VerifyReport): object {
  return {
    ...report,
    cosignatures: cosignatures && { ...cosignatures, newest: rfc3339(cosignatures.newest) },
    archivedAt: archivedAt === undefined ? undefined : rfc3339(archivedAt),
    timeStamps: timeStamps && { ...timeStamps, newest: rfc3339(timeStamps.newest) },
    stampedWithin: within === undefined ? undefined : Math.round(within / 1e6),
    sources: sources.map((each) => ({ ...each, from: rfc3339(each.from), to: each.to === undefined ? undefined : rfc3339(each.to) })),
  };
}

async function verifyProofs(file: string, values: Values, io: Io): Promise<number> {
  const isGiven = ([name, value]: readonly [string, unknown]): boolean =>
    !['key', 'proof', 'print', 'json', 'timestamp-ca', 'witness', 'quorum'].includes(name) &&
    value !== undefined &&
    !(Array.isArray(value) && value.length === 0);
  const [given] = Object.entries(values).find(isGiven) ?? [];
  if (given !== undefined) throw new WaybillError('usage', `cannot use --${given} with --proof: a proof is checked without the archive`);
  const verifiers = await keysOf(values.key, io.signal);
  if (values.print && values.json) throw new WaybillError('usage', 'cannot use --json with --print: both need standard output');
  const verified: object[] = [];
  const onIntact = async ({ number, line, index, size, date }: VerifiedLine): Promise<void> => {
    const existed = date === undefined ? '' : `; it existed on ${rfc3339(date)}`;
    if (values.print) await writeResult(io, [line, '\n']);
    else if (values.json)
      verified.push({ proof: number, line: index + 1, of: size, statement: statementOf(line), existedOn: date && rfc3339(date) });
    else await writeResult(io, [`${printable(`proof ${number}: line ${index + 1} of ${size}: ${statementOf(line)}${existed}`)}\n`]);
  };
  const dates = { timeStamps: await timeStampsOf(values, io.signal), cosignatures: await witnessesOf(values, io.signal) };
  const proofs = await checkProofs(inputLines(file, '--proof', io.signal), verifiers, new Turns(io.signal), onIntact, dates);
  // An export may have millions of proofs.
  const failed = proofs.flatMap(({ result, message }, i) => (result === 'intact' ? [] : [{ number: i + 1, result, message }]));
  const result = worstOf(proofs);
  const out = values.print ? io.stderr : io.stdout;
  if (values.json) printJson(io, { result, proofs, verified });
  else if (proofs.length === 0) out.write(`UNPROVEN: "${file}" has no proof\n`);
  else {
    for (const { number, result, message } of failed) out.write(`${result} proof ${number}: ${message ?? ''}\n`);
    const count = counted(proofs.length - failed.length, 'line is', 'lines are');
    out.write(`${result.toUpperCase()}: ${count} in the signed archive, of ${counted(proofs.length, 'proof')}\n`);
  }
  return exitCodes[result];
}
