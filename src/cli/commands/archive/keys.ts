/** `waybill archive keys`: the history of the keys of an archive, to be published. */
import { keyHistory } from '../../../archive/key-history.ts';
import { formatVerifier } from '../../../archive/signed-note.ts';
import { WaybillError } from '../../../errors/errors.ts';
import { subcommand } from '../../command.ts';
import { printJson } from '../../io.ts';
import { jsonOption, type ValuesOf } from '../../option.ts';
import { placeOf, placeOptions } from './place.ts';

const options = { ...placeOptions, ...jsonOption };

export const keys = subcommand({
  summary: 'prints each public key of an archive with the sizes at which it began and ended, to be published',
  options,
  run: async (values: ValuesOf<typeof options>, io) => {
    const { store: opened, name } = await placeOf(values, io);
    await using store = opened;
    const spans = await keyHistory(store);
    if (spans.length === 0) throw new WaybillError('archive_broken', `cannot tell the keys of the archive "${name}": it has no checkpoint`);
    if (values.json) printJson(io, { keys: spans.map(({ key, first, last = null }) => ({ key: formatVerifier(key), first, last })) });
    else io.stdout.write(spans.map(({ key, first, last }) => `${formatVerifier(key)} ${first} ${last ?? '-'}\n`).join(''));
    return 0;
  },
});
