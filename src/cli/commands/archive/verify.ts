/** `waybill archive verify`: checks an archive, or proofs of single lines, against public keys. */
import { systemClock } from '../../../clock.ts';
import { checkProofs } from '../../../archive/proof-file.ts';
import { verifyArchive } from '../../../archive/verify/verify.ts';
import type { VerifyReport } from '../../../archive/verify/verify.ts';
import { WaybillError, codeOf, messageOf } from '../../../errors.ts';
import { counted, grouped, rfc3339 } from '../../../report/format-time.ts';
import { parseDuration } from '../../../settings/units.ts';
import { parseTime } from '../../../settings/period.ts';
import { subcommand } from '../../command.ts';
import type { Io } from '../../io.ts';
import { parsed, text } from '../../option.ts';
import type { ValuesOf } from '../../option.ts';
import { jsonOption, timeOptions } from '../../period-options.ts';
import { keyOption, keysOf, placeOf, placeOptions, readBytes, readText } from './place.ts';
import { Progress } from '../../progress.ts';
import { verifyText } from './verify-text.ts';

const options = {
  ...keyOption,
  ...placeOptions,
  ...timeOptions,
  since: text('FILE', 'a checkpoint that was stored elsewhere: the archive must contain it'),
  retention: parsed('D', 'segments older than this may be missing, e.g. 400d', 'a duration such as 400d', parseDuration),
  proof: text('FILE', 'check the proofs in this file, of "archive prove" or "archive export", without the archive'),
  ...jsonOption,
};

type Values = ValuesOf<typeof options>;

export const verify = subcommand({ summary: 'checks signatures, hashes, and the ledger against the records', options, run });

const exitCodes = { intact: 0, altered: 1, unproven: 3 } as const;

async function run(values: Values, io: Io): Promise<number> {
  if (values.proof !== undefined) return verifyProofs(values.proof, values, io);
  const place = await placeOf(values, io);
  await using store = place.store;
  const verifiers = await keysOf(values.key, place);
  const now = systemClock.now() * 1_000;
  const progress = new Progress(io.stderr);
  const report = await verifyArchive(store, verifiers, {
    from: values.from === undefined ? undefined : parseTime(values.from, '--from', now, false),
    to: values.to === undefined ? undefined : parseTime(values.to, '--to', now, true),
    since: values.since === undefined ? undefined : readBytes(values.since, '--since'),
    removedBefore: values.retention === undefined ? undefined : now - values.retention * 1_000,
    signal: io.signal,
    onProgress: ({ lines, of }) => progress.show(lines / of, () => `verified ${grouped(lines)} of ${grouped(of)} lines`),
  })
    .catch((thrown: unknown) => unreadable(place.name, thrown))
    .finally(() => progress.end());
  if (values.json) io.stdout.write(`${JSON.stringify(reportJson(report), null, 2)}\n`);
  else io.stdout.write(`${verifyText(report, values.since !== undefined).join('\n')}\n`);
  return exitCodes[report.result];
}

/** An archive that cannot be read to its end is not proven. */
function unreadable(name: string, thrown: unknown): VerifyReport {
  const isStorage = codeOf(thrown) === 'sink_unavailable' || codeOf(thrown) === 'sink_blocked';
  if (!isStorage && !(thrown instanceof Error && 'syscall' in thrown)) throw thrown;
  const findings = [{ severity: 'unproven', object: name, message: `cannot read it: ${messageOf(thrown)}` }] as const;
  return { result: 'unproven', origin: undefined, checkpoints: 0, lines: 0, records: 0, sources: [], findings, confirmed: 0 };
}

function reportJson({ sources, ...report }: VerifyReport): object {
  return { ...report, sources: sources.map((each) => ({ ...each, from: rfc3339(each.from), to: rfc3339(each.to) })) };
}

async function verifyProofs(file: string, values: Values, io: Io): Promise<number> {
  const given = (['directory', 'sink', 'from', 'to', 'since', 'retention'] as const).find((name) => values[name] !== undefined);
  if (given !== undefined) throw new WaybillError('usage', `cannot use --${given} with --proof: a proof is checked without the archive`);
  const verifiers = await keysOf(values.key);
  const proofs = checkProofs(readText(file, '--proof'), verifiers);
  const failed = proofs.map((proof, i) => ({ number: i + 1, ...proof })).filter((proof) => proof.result !== 'intact');
  const result = failed.some((proof) => proof.result === 'altered') ? 'altered' : failed.length > 0 ? 'unproven' : 'intact';
  if (values.json) io.stdout.write(`${JSON.stringify({ result, proofs }, null, 2)}\n`);
  else {
    for (const { number, message } of failed) io.stdout.write(`proof ${number}: ${message ?? ''}\n`);
    const count = counted(proofs.length - failed.length, 'line is', 'lines are');
    io.stdout.write(`${result.toUpperCase()}: ${count} in the signed archive, of ${counted(proofs.length, 'proof')}\n`);
  }
  return exitCodes[result];
}
