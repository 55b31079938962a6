/** The definition of the sink `archive`: evidence that a third party can check (docs/evidence.md). */
import { randomBytes, type KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { openCheckpoint } from '../../archive/checkpoint.ts';
import { openHead } from '../../archive/head.ts';
import { formatVerifier, signerOf } from '../../archive/signed-note.ts';
import type { ArchiveStore } from '../../archive/store.ts';
import { messageOf, WaybillError } from '../../errors/errors.ts';
import { quote } from '../../errors/quote.ts';
import { defineSink, type Finding, type SinkContext } from '../define.ts';
import { setBackMessage, sizeOf } from './cosigner.ts';
import { signingKeysOf } from './key.ts';
import { openAuthority, openStore, openWitnesses } from './open.ts';
import { archiveFaults, archiveSettings, bucketTarget, placeOf, type ArchiveSettings, type TimestampSettings } from './settings.ts';
import { ArchiveSink } from './sink.ts';

export const archive = defineSink('archive', {
  summary: 'a signed archive in a local directory or in S3, with every record and the ledger',
  config: archiveSettings,
  formats: ['raw'],
  batch: { records: 10_000, bytes: 16 * 1024 * 1024, wait: 300_000 },
  alwaysLedger: true,
  resolvable: () => true,
  keepsPosition: () => true,
  takesOnce: true,
  deadline: 120_000,
  path: { setting: 'directory', kind: 'directory', kept: [] },
  faults: archiveFaults,
  refusedInFleet: ({ s3 }) =>
    s3 === undefined
      ? 'archive in a directory is not possible with "fleet": another process would not have the directory; use "s3"'
      : undefined,
  destination: (settings) => (settings.s3 === undefined ? resolve(placeOf(settings)) : placeOf(settings)),
  guarantees: [{ delivery: 'exactly once, in a signed log that a third party can verify', duplicates: '0', losses: '0' }],
  async check(settings, context, signal) {
    const stamps = settings.timestamp ? await authorityFindings(settings.timestamp, context, signal) : [];
    const place = await placeFindings(settings, context, signal);
    const isOpen = !place.some(({ level }) => level === 'error');
    return [...place, ...stamps, ...(isOpen ? await witnessFindings(settings, context, signal) : [])];
  },
  async open(settings, context, resumePoint, signal) {
    const [key, previousKey] = signingKeysOf(settings, context.id);
    const store = await openStore(settings, context, signal);
    const authority = settings.timestamp && (await openAuthority(settings.timestamp, context));
    const { formerCheckpoint } = settings;
    const former = formerCheckpoint === undefined ? undefined : () => formerAt(formerCheckpoint, `sinks.${context.id}.formerCheckpoint`);
    const witnesses = await openWitnesses(settings, context);
    return ArchiveSink.open({ name: placeOf(settings), store, key, previousKey, authority, former, witnesses }, context, resumePoint);
  },
});

/** @throws WaybillError `sink_blocked` for a file that is not a signed checkpoint */
async function formerAt(file: string, setting: string): Promise<string> {
  const refused = (reason: string, cause?: unknown): WaybillError =>
    new WaybillError('sink_blocked', `cannot begin an archive that continues the checkpoint "${file}" (${setting}): ${reason}`, { cause });
  const note = await readFile(file).catch((cause: unknown) => {
    throw refused(messageOf(cause), cause);
  });
  const opened = openCheckpoint(note, []);
  if (typeof opened === 'string') throw refused(opened);
  return note.toString();
}

async function placeFindings(settings: ArchiveSettings, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const { id } = context;
  const keys = signingKeysOf(settings, id);
  if (settings.s3 !== undefined) {
    const { BucketStore } = await import('../../archive/bucket/store.ts');
    const { checkBucket } = await import('../../archive/bucket/check.ts');
    const target = bucketTarget(settings.s3, context);
    await using store = new BucketStore(target, { ...context, setting: `sinks.${id}.s3` });
    const findings = await checkBucket(store, target, `sinks.${id}.s3`, signal);
    if (findings.some(({ level }) => level === 'error')) return findings;
    return [...findings, ...(await archiveFindings(store, store.name, keys, id))];
  }
  const { directory = '' } = settings;
  await using store = await openStore(settings, context);
  const faults = await directoryFaults(directory, `sinks.${id}.directory`);
  return faults.length > 0 ? faults : await archiveFindings(store, directory, keys, id);
}

/** Requests a time stamp of random bytes, and stores nothing. */
async function authorityFindings(settings: TimestampSettings, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const setting = `sinks.${context.id}.timestamp`;
  const unchecked: readonly Finding[] = settings.ca
    ? []
    : [{ level: 'warning', message: `without ${setting}.ca, Waybill accepts time stamps signed by any authority`, setting }];
  await using authority = await openAuthority(settings, context);
  try {
    const { signer } = await authority.stamp(randomBytes(32), signal);
    const [name = ''] = signer.subject.split('\n').slice(-1);
    const until = signer.validToDate.toISOString().slice(0, 10);
    return [{ level: 'ok', message: `"${settings.url}" grants time stamps, signed by '${quote(name, 100)}' until ${until}` }, ...unchecked];
  } catch (thrown) {
    signal.throwIfAborted();
    return [{ level: 'error', message: `${messageOf(thrown)} (${setting})`, setting }, ...unchecked];
  }
}

/** Has the newest checkpoint cosigned, and stores nothing. A witness that has cosigned this archive before tells how far. */
async function witnessFindings(settings: ArchiveSettings, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]> {
  await using store = await openStore(settings, context, signal);
  const note = await store.read('checkpoint');
  const findings: Finding[] = [];
  for (const [i, witness] of (await openWitnesses(settings, context)).entries()) {
    await using client = witness;
    const setting = `sinks.${context.id}.witnesses[${i}]`;
    const { name } = client.key;
    if (!note) findings.push({ level: 'warning', message: `witness "${name}" is not checked: there is no checkpoint yet`, setting });
    else
      try {
        const answer = await client.cosign(note, 0, [], signal);
        const size = sizeOf(note);
        if (typeof answer === 'number' && answer > size)
          throw new WaybillError('sink_unavailable', `cannot use the witness "${name}": ${setBackMessage(answer, size)}`);
        findings.push({
          level: 'ok',
          message: `witness "${name}" knows this archive${typeof answer === 'number' ? `: it has cosigned ${answer} lines` : ''}`,
        });
      } catch (thrown) {
        signal.throwIfAborted();
        findings.push({ level: 'error', message: `${messageOf(thrown)} (${setting})`, setting });
      }
  }
  return findings;
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

/** Reads the end of the archive, like the sink when it opens. */
async function archiveFindings(
  store: ArchiveStore,
  name: string,
  keys: readonly [KeyObject, ...KeyObject[]],
  id: string,
): Promise<readonly Finding[]> {
  const newOrigin = 'waybill/new';
  const { origin, number, log, isKeyKnown } = await openHead(store, keys, () => newOrigin);
  if (number === 0) return [{ level: 'ok', message: `"${name}" has no archive yet: the first segment creates it` }];
  return [
    {
      level: 'ok',
      message: `"${name}" has ${log.size} lines and ${number} checkpoints, and sinks.${id}.${isKeyKnown ? 'signingKey' : 'previousSigningKey'} signed the newest`,
    },
    { level: 'ok', message: `public key for auditors: ${formatVerifier(signerOf(origin, keys[0]))}` },
  ];
}
