/** A journal between the file of one process and a shard. test/servers/fleet-move.test.ts moves it with a real PostgreSQL. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sinkContext } from '../../../src/daemon/open-sink.ts';
import { writeFile } from '../../../src/journal/move.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { ModelDatabase } from '../../support/journal/model-database.ts';
import { opened, pageOf, source, temporary } from '../../support/journal/opening.ts';
import { base, collected } from '../../support/records.ts';

test('a shard that becomes the state of one process keeps its place at the sinks, also when it comes back', async () => {
  const it = await opened();
  await it.journal.append(pageOf([collected(1, base)]));
  expect(it.journal.placeAtSinks()).toBeUndefined();
  const model = new ModelDatabase();
  model.loadsAll = true;
  model.replace(it.journal.db);
  const [alone, back] = [temporary(), temporary()];
  await writeFile(join(alone, 'waybill.db'), 3, model);
  const copy = await opened({ directory: alone });
  expect(await copy.journal.read(0, { records: 10, bytes: 1e6 })).toEqual(await it.journal.read(0, { records: 10, bytes: 1e6 }));
  expect(await copy.journal.append(pageOf([collected(1, base)]))).toMatchObject({ known: 1, appended: 0 });
  expect(copy.journal.hasSource(source)).toBe(true);
  expect(copy.journal.placeAtSinks()).toBe(3);
  model.replace(copy.journal.db);
  await writeFile(join(back, 'waybill.db'), 5, model);
  expect((await opened({ directory: back })).journal.placeAtSinks()).toBe(3);
  await expect(writeFile(join(temporary(), 'waybill.db'), 1, new ModelDatabase())).rejects.toMatchObject({ code: 'state_missing' });
});

test('a sink has the place that its journal keeps after a move, whoever runs it', () => {
  const sink = { id: 'lake', format: 'raw', ledger: true, sources: undefined, filter: undefined } as const;
  const alone = { tls: {}, proxy: undefined, fleet: undefined, sources: [] };
  const member = { ...alone, fleet: { database: 'postgres://w@db/audit', lease: 15_000 }, shard: 7 };
  const placeIn = (config: typeof alone | typeof member, place?: number | 'none') =>
    sinkContext(sink, config, { clock: systemClock }, place).fleet;
  expect([placeIn(alone), placeIn(member)]).toEqual([undefined, { shard: 7 }]);
  expect([placeIn(alone, 3), placeIn(member, 3)]).toEqual([{ shard: 3 }, { shard: 3 }]);
  expect([placeIn(alone, 'none'), placeIn(member, 'none')]).toEqual([{ shard: undefined }, { shard: undefined }]);
});
