/** The definition of the sink `archive`: evidence that a third party can check (docs/evidence.md). */
import type { KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { DirectoryStore } from '../../archive/directory-store.ts';
import { openHead } from '../../archive/head.ts';
import { formatVerifier, signerOf } from '../../archive/signed-note.ts';
import { messageOf } from '../../errors.ts';
import { defineSink } from '../define.ts';
import type { Finding } from '../define.ts';
import { signingKeyOf } from './key.ts';
import { archiveSettings } from './settings.ts';
import { ArchiveSink } from './sink.ts';

export const archive = defineSink('archive', {
  summary: 'a signed archive in a local directory, with every record and the ledger',
  config: archiveSettings,
  formats: ['raw'],
  batch: { records: 10_000, bytes: 16 * 1024 * 1024, wait: 300_000 },
  alwaysLedger: true,
  resolvable: () => true,
  keepsPosition: () => true,
  takesOnce: true,
  deadline: 120_000,
  destination: ({ directory }) => resolve(directory),
  guarantee: () => ({ delivery: 'exactly once', duplicates: '0', losses: '0' }),
  async check({ directory, signingKey }, { id }) {
    const key = signingKeyOf(signingKey, `sinks.${id}.signingKey`);
    const faults = await directoryFaults(directory, `sinks.${id}.directory`);
    return faults.length > 0 ? faults : archiveFindings(directory, key, id);
  },
  open: async ({ directory, signingKey }, context, resumePoint) =>
    ArchiveSink.open(
      { name: directory, store: new DirectoryStore(directory), key: signingKeyOf(signingKey, `sinks.${context.id}.signingKey`) },
      context,
      resumePoint,
    ),
});

async function directoryFaults(directory: string, setting: string): Promise<readonly Finding[]> {
  const existing = await nearestExisting(resolve(directory));
  try {
    if (!(await stat(existing)).isDirectory()) throw new Error(`"${existing}" is not a directory`);
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch (cause) {
    return [{ level: 'error', message: `cannot write in "${directory}" (${setting}): ${messageOf(cause)}`, setting }];
  }
}

async function nearestExisting(path: string): Promise<string> {
  const found = await stat(path).catch((cause: unknown) => {
    if ((cause as { code?: unknown }).code === 'ENOENT') return undefined;
    throw cause;
  });
  return found ? path : nearestExisting(dirname(path));
}

/** Reads where the archive ends, as the sink does when it opens. */
async function archiveFindings(directory: string, key: KeyObject, id: string): Promise<readonly Finding[]> {
  const newOrigin = 'waybill/new';
  const { origin, number, log } = await openHead(new DirectoryStore(directory), key, () => newOrigin);
  if (number === 0) return [{ level: 'ok', message: `"${directory}" has no archive yet: the first segment begins one` }];
  return [
    {
      level: 'ok',
      message: `"${directory}" has ${log.size} lines and ${number} checkpoints, and sinks.${id}.signingKey signed the newest`,
    },
    { level: 'ok', message: `public key for auditors: ${formatVerifier(signerOf(origin, key))}` },
  ];
}
