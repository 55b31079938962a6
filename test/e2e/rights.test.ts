/**
 * Permissions that shrink and return, with the daemon as a program: fewer fields, fewer rows, none
 * at all. Each loss is detected, reported everywhere and in the ledger; no incomplete copy of a
 * record is stored, nothing is lost, and the daemon resumes by itself.
 */
import { zstdDecompressSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, readLedgerOf, sourceOf } from '../support/e2e-daemon.ts';
import { compare, delivered, exactlyOnce, linesOf, originalOf, Seconds } from '../support/e2e-oracle.ts';
import { inPlace, pause, until, patience } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';

const out = 'records.ndjson';

/** The suspensions in the journal, oldest first, read without the program. */
function suspensionsOf(place: Place): { state: string; reason: string }[] {
  const db = new Database(place.path('state/waybill.db'), { readonly: true });
  try {
    return (
      db
        .prepare<[], { kind: number; body: Buffer }>('SELECT kind, body FROM segments WHERE kind & 255 = 2 ORDER BY seq')
        .all()
        .map(({ kind, body }) => JSON.parse((kind >> 8 === 1 ? zstdDecompressSync(body) : body).toString()) as Record<string, string>)
        // Other windows that shrank have a separate entry, if there was time to count them.
        .filter(({ ledger, state, shrunk }) => ledger === 'suspension' && (state === 'active' || shrunk === undefined))
        .map(({ state = '', reason = '' }) => ({ state, reason }))
    );
  } finally {
    db.close();
  }
}

// promise: Rights are revoked to fewer fields, to fewer records and completely: the source is suspended, and resumes by itself.
test('fields, rows, and the permission itself: the source is suspended, reported, and resumes by itself', { timeout: 300_000 }, () =>
  inPlace('rights', async (place) => {
    const service = await Service.start(place, '--records', '1200', '--span', '45s', '--rate', '30');
    const start = ago(60_000);
    configure(
      place,
      [sourceOf(service, start, { recountAfter: ['1s', '2s', '3s', '5s', '7s', '9s', '11s'] })],
      [{ id: 'file', type: 'file', path: out }],
    );
    const daemon = new Daemon(place);
    await daemon.logged('window.first_proven');
    await daemon.ready(200);
    const metric = async (pattern: RegExp): Promise<string | undefined> => pattern.exec((await daemon.get('/metrics')).text)?.[1];

    for (const [permissions, reason] of [
      ['fields', 'fields'],
      ['rows', 'rows'],
      ['none', 'forbidden'],
    ] as const) {
      await service.set({ permissions });
      await daemon.ready(503, new RegExp(`production: suspended \\(${reason}\\)`));
      const { text } = await daemon.get('/status');
      expect(JSON.parse(text)).toMatchObject({
        summary: expect.stringContaining('COLLECTION SUSPENDED at production') as string,
        sources: [{ id: 'production', state: 'suspended' }],
      });
      expect(await metric(/^waybill_source_state\{[^}]*state="suspended"[^}]*\} (\d)$/m)).toBe('1');
      expect(await metric(new RegExp(`^waybill_source_suspensions_total\\{[^}]*reason="${reason}"[^}]*\\} (\\d+)$`, 'm'))).toBe('1');
      // No window is closed during a suspension.
      const reached = (await daemon.ledger()).sources[0]?.readUntil;
      await pause(500);
      expect((await daemon.ledger()).sources[0]?.readUntil).toBe(reached);
      await service.set({ permissions: 'full' });
      await daemon.ready(200);
    }

    await service.set({ rate: 0 });
    const end = Date.now();
    await delivered(service, [place.path(out)]);
    const seconds = new Seconds(await service.truth());
    let open: unknown;
    await until(
      () => `every window whole: ${JSON.stringify(open)}`,
      patience,
      async () => {
        const [source] = (await daemon.ledger()).sources;
        open = source?.windows.filter(
          ({ from, to, state, reason, records }) =>
            !['proven', 'final'].includes(state) ||
            reason !== null ||
            records !== seconds.between(Date.parse(from) / 1000, Date.parse(to) / 1000),
        );
        return Array.isArray(open) && open.length === 0 && Date.parse(source?.readUntil ?? '') > end - 15_000 ? true : undefined;
      },
    );
    expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    // Verbatim the records that the service shows with all permissions: no incomplete copy among
    // them.
    expect(compare(linesOf(place.path(out)), await service.truth(), originalOf)).toEqual(exactlyOnce);
    expect(suspensionsOf(place)).toEqual(
      ['fields', 'rows', 'forbidden'].flatMap((reason) => [
        { state: 'suspended', reason },
        { state: 'active', reason },
      ]),
    );
    expect(daemon.log.filter(({ event }) => event === 'source.suspended')).toMatchObject([
      { level: 'error', reason: 'fields', detail: expect.stringContaining('userNetwork') as string },
      { level: 'error', reason: 'rows' },
      { level: 'error', reason: 'forbidden', detail: expect.stringContaining('logs.read.all') as string },
    ]);
    expect(await readLedgerOf(place)).toMatchObject({ code: 0, ledger: { complete: true } });
    await service.stop();
  }),
);
