/** `waybill archive prove` and `waybill archive export`: proofs that lines are in an archive. */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../../../clock.ts';
import { formatProof } from '../../../archive/proof-file.ts';
import { Prover } from '../../../archive/prove.ts';
import type { ArchiveStore } from '../../../archive/store.ts';
import type { LineFacts } from '../../../archive/parse-line.ts';
import { WaybillError, messageOf } from '../../../errors.ts';
import type { Micros } from '../../../model/time.ts';
import { counted } from '../../../report/format-time.ts';
import { assertForward, parsePeriod } from '../../../settings/period.ts';
import { subcommand } from '../../command.ts';
import { writeResult, type Io } from '../../io.ts';
import { parsed, required, text, timeOptions, type ValuesOf } from '../../option.ts';
import { placeOf, placeOptions } from './place.ts';

const proveOptions = {
  uid: required(
    parsed('UID', 'the uid of the record: dpas.uid of its event', 'the uid of a record: 22 characters', (given) =>
      /^[\w-]{21}[AQgw]$/.test(given) ? given : undefined,
    ),
  ),
  ...placeOptions,
};

export const prove = subcommand({
  summary: 'prints one record with a proof that the archive contains it, and no other record',
  options: proveOptions,
  run: async (values: ValuesOf<typeof proveOptions>, io) => {
    const { store: opened, name } = await placeOf(values, io);
    await using store = opened;
    const prover = await proverOf(store, io);
    const proof = await prover.record(values.uid, () => io.stderr.write('the index cannot locate the record: reading every line\n'));
    if (!proof) throw new WaybillError('archive_broken', `cannot prove "${values.uid}": the archive "${name}" has no such record`);
    io.stdout.write(formatProof(proof));
    return 0;
  },
});

async function proverOf(store: ArchiveStore, io: Pick<Io, 'stderr'>): Promise<Prover> {
  const prover = await Prover.open(store);
  if (prover.newer !== undefined)
    io.stderr.write(
      `warning: the lines of "${prover.newer}" are left out, because tiles of it are missing; see "waybill archive verify"\n`,
    );
  return prover;
}

const exportOptions = {
  source: text('ID', 'only lines of this source; default all, and the operations'),
  ...timeOptions,
  out: text('FILE', 'write to this new file instead of standard output'),
  ...placeOptions,
};

export const exportLines = subcommand({
  summary: 'prints the lines of a period, each with a proof that the archive contains it, one a line',
  options: exportOptions,
  run: async (values: ValuesOf<typeof exportOptions>, io) => {
    await using store = (await placeOf(values, io)).store;
    const now = systemClock.now() * 1_000;
    const { from = -Infinity, to = Infinity } = parsePeriod(values, now);
    assertForward('export', from, to, values);
    const prover = await proverOf(store, io);
    let count = 0;
    async function* chunks(): AsyncGenerator<string> {
      for await (const proof of prover.lines((facts) => isWanted(facts, values.source, from, to))) {
        io.signal.throwIfAborted();
        count += 1;
        yield formatProof(proof);
      }
    }
    if (values.out === undefined) for await (const chunk of chunks()) await writeResult(io, [chunk]);
    else await writeNew(values.out, chunks(), io);
    io.stderr.write(`exported ${counted(count, 'line')}\n`);
    return 0;
  },
});

/** True for a record or an operation whose time is in the period, and for a window that overlaps it. */
function isWanted(facts: LineFacts, source: string | undefined, from: Micros, to: Micros): boolean {
  if (facts.kind === 'position') return false;
  if (facts.kind === 'operation') return source === undefined && from <= facts.at && facts.at < to;
  if (source !== undefined && facts.source !== source) return false;
  // A suspension and its end have no duration: `from` equals `to`.
  if (facts.kind === 'ledger') return facts.from < to && (facts.to > from || facts.from >= from);
  return facts.time === undefined ? from === -Infinity && to === Infinity : from <= facts.time && facts.time < to;
}

async function writeNew(file: string, chunks: AsyncIterable<string>, { signal }: Io): Promise<void> {
  try {
    await pipeline(chunks, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
  } catch (cause) {
    if (cause instanceof WaybillError) throw cause;
    signal.throwIfAborted();
    throw new WaybillError('usage', `cannot write to "${file}": ${messageOf(cause)}`, { cause });
  }
}
