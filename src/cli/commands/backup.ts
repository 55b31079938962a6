/** `waybill backup`: a verified copy of the state, for a move to another machine. */
import { systemClock } from '../../time/clock.ts';
import { backUp } from '../../journal/backup.ts';
import { WaybillError } from '../../errors/errors.ts';
import { grouped } from '../../report/format-time.ts';
import { size } from '../../report/format-size.ts';
import { defineCommand } from '../command.ts';
import { printJson } from '../io.ts';
import { jsonOption, required, text } from '../option.ts';
import { Progress } from '../progress.ts';
import { settingsFor, stateOptions } from '../state-access.ts';

export const command = defineCommand({
  name: 'backup',
  summary: 'copies the state to a new directory, also while the daemon runs, and verifies the copy',
  description: `Copies the state to a new directory, for a move to another machine. The daemon may run and collect. Verifies the copy: integrity of the
database, hash chain and invariants of the journal, and its last entry. The copy has no configuration and no keys.`,
  notes: `The copy lacks everything that the daemon collects or delivers later. Stop that daemon before another starts from the copy;
docs/operations.md has the steps, "Move to another machine", and what each sink receives from an old copy, "Older state restored".`,
  options: { to: required(text('DIR', 'new directory for the copy')), ...jsonOption, ...stateOptions },
  examples: ['waybill backup --to /backup/waybill', 'waybill backup --data-dir /var/lib/waybill/state --to /mnt/new/state --json'],
  run: async (values, io) => {
    const { settings } = await settingsFor(values, io);
    if (settings.fleet)
      throw new WaybillError('usage', 'cannot back up a fleet: its state is in the database; use the backups of PostgreSQL');
    const progress = new Progress(io.stderr);
    const { journal, bytes, seq, chain } = await backUp(settings.dataDir, values.to, {
      clock: systemClock,
      copied: (share, total) => progress.show(share, (seconds) => copiedText(share, total, seconds)),
      verifying: () => progress.showStep('verifying the copy'),
      signal: io.signal,
    }).finally(() => progress.end());
    const copied = { directory: values.to, journal, bytes, head: seq, chain: chain.toString('hex') };
    if (values.json) printJson(io, copied);
    else
      io.stdout.write(
        `copied the state in "${settings.dataDir}" to "${values.to}": ${size(bytes)}, last entry ${grouped(seq)}; verified\n`,
      );
    return 0;
  },
});

function copiedText(share: number, bytes: number, seconds: number): string {
  return `copied ${Math.floor(share * 100)} % of ${size(bytes)}, ${size((bytes * share) / seconds)}/s`;
}
