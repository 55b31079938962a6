/** `waybill archive`: verifies an archive, and proves what it contains. */
import { defineCommand } from '../../command.ts';
import { compare } from './compare.ts';
import { hold, prune } from './keep.ts';
import { keys } from './keys.ts';
import { exportLines, prove } from './prove.ts';
import { verify } from './verify.ts';
import { witness } from './witness.ts';

export const command = defineCommand({
  name: 'archive',
  summary: 'verifies an archive; proves that it contains a record; exports a period with proofs; witnesses archives',
  description: `Checks an archive that the sink "archive" wrote. Needs no state, no running daemon and, with --directory and --key, no configuration.

verify recomputes every hash from the lines, up to the signed checkpoints, and compares the records with the counts and digests of the ledger.
It reports each problem and continues. content/archive/verify.py does the same without Waybill.`,
  notes: `verify exits with 0 when everything is as signed and every window is proven; with 1 when something contradicts a signature, a hash or a
proof, or is missing; with 3 when it finds no contradiction, but cannot prove everything: a gap, an unknown key, an unreadable file.

--key names a file with the public key of the archive. The operator prints the key with "waybill check" and publishes it elsewhere: a key from
the archive itself proves nothing. docs/evidence.md explains an audit.`,
  subcommands: { verify, prove, export: exportLines, compare, prune, hold, keys, witness },
  examples: [
    'waybill archive verify --directory ./archive --key archive.pub --since checkpoint-of-last-year',
    'waybill archive prove --sink archive --uid=Zx3kq0a7QkS1vX0ZkzO2Bw > proof.json',
    'waybill archive verify --proof proof.json --key archive.pub',
    'waybill archive export --directory ./archive --source production --from 2026-11-20 --to 2026-11-20 --out day.ndjson',
  ],
});
