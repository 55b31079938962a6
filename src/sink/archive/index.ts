/** The definition of the sink `archive`: an evidence that a third party can check (docs/evidence.md). */
import { createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { DirectoryStore } from '../../archive/directory-store.ts';
import { openHead } from '../../archive/head.ts';
import { formatVerifier, signerOf } from '../../archive/signed-note.ts';
import { WaybillError, messageOf } from '../../errors.ts';
import type { Secret } from '../../settings/secret.ts';
import { path, secret } from '../../settings/values.ts';
import { defineSink } from '../define.ts';
import type { Finding } from '../define.ts';
import { ArchiveSink } from './sink.ts';

const config = z.strictObject({
  directory: path().describe('Directory of the archive, on a local disk; created with mode 0700. Relative to the working directory'),
  signingKey: secret().describe('Ed25519 private key in PEM (PKCS #8) that signs the checkpoints, e.g. `${file:/run/secrets/archive-key}`'),
});

export const archive = defineSink('archive', {
  summary: 'a signed archive in a local directory, with every record and the ledger',
  config,
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
    const key = signingKeyOf(signingKey, id);
    const faults = await directoryFaults(directory, `sinks.${id}.directory`);
    return faults.length > 0 ? faults : archiveFindings(directory, key, id);
  },
  open: async ({ directory, signingKey }, context, resumePoint) =>
    ArchiveSink.open(
      { name: directory, store: new DirectoryStore(directory), key: signingKeyOf(signingKey, context.id) },
      context,
      resumePoint,
    ),
});

/** @throws WaybillError `sink_blocked` for anything but an Ed25519 private key */
function signingKeyOf(signingKey: Secret, id: string): KeyObject {
  const text = signingKey.read();
  const refused = (reason: string, cause?: unknown): WaybillError =>
    new WaybillError('sink_blocked', `cannot use sinks.${id}.signingKey: ${reason}; create one with "openssl genpkey -algorithm ed25519"`, {
      cause,
    });
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch (cause) {
    throw refused(`it is not a private key in PEM (${messageOf(cause)})`, cause);
  }
  if (key.asymmetricKeyType !== 'ed25519') throw refused(`its type is ${key.asymmetricKeyType ?? 'unknown'}, not Ed25519`);
  return key;
}

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
