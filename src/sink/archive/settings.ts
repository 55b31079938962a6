/** The settings of the sink `archive`. */
import { z } from 'zod';
import type { BucketTarget } from '../../archive/bucket/client.ts';
import { parseVerifier } from '../../archive/signed-note.ts';
import type { ProxySettings } from '../../connect/proxy.ts';
import { proxySettings, tlsSettings } from '../../connect/settings.ts';
import { isLoopback } from '../../settings/loopback.ts';
import { parseInstant } from '../../settings/units.ts';
import { duration, facts, httpsUrl, httpUrl, line, path, pemFiles, secret, text } from '../../settings/values.ts';
import type { SettingFault, SinkContext, WrittenSink } from '../define.ts';

const s3Settings = z
  .strictObject({
    bucket: text(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'the name of a bucket').describe('Bucket with versioning and Object Lock'),
    prefix: text(/^[^/\p{Cc}][^\p{Cc}]*$/u, 'a prefix such as audit/production')
      .optional()
      .describe(
        'Beginning of every key, for example `audit/production`; one archive has one prefix. In a fleet the archive of shard 3 is at `audit/production/shard-3`',
      ),
    region: text(/^[a-z0-9-]+$/, 'a region such as eu-central-1').describe('Region of the bucket'),
    endpoint: httpsUrl().optional().describe('Address of a server other than AWS; default `https://s3.{region}.amazonaws.com`'),
    pathStyle: z
      .boolean()
      .optional()
      .describe('Name the bucket in the path of a request, not in the host; default true with `endpoint`, else false'),
    objectLock: z
      .union([z.literal('none'), duration({ min: '1d' })])
      .describe(
        'Retention of each segment, checkpoint, time stamp and cosignature from its creation on: `365d`. Until then, nobody can delete it or shorten this time. `none` for a bucket without Object Lock',
      ),
    objectLockMode: z
      .enum(['compliance', 'governance'])
      .default('compliance')
      .describe('`governance`: users with s3:BypassGovernanceRetention may delete earlier'),
    accessKeyId: secret()
      .optional()
      .describe(
        'Access key; default the credentials of the environment, as the AWS SDK finds them: variables, files, web identity, instance',
      ),
    secretAccessKey: secret().optional().describe('Secret of `accessKeyId`'),
    sessionToken: secret().optional().describe('Session token of temporary credentials'),
    tls: tlsSettings.optional(),
    proxy: proxySettings.optional().describe('Proxy of this sink in place of the general one; `none` connects directly'),
  })
  .superRefine(({ accessKeyId, secretAccessKey, sessionToken }, context) => {
    const missing = (key: string, needs: string): void =>
      context.addIssue({ code: 'custom', path: [key], message: `is missing: ${needs} needs it` });
    if (accessKeyId !== undefined && secretAccessKey === undefined) missing('secretAccessKey', 'accessKeyId');
    if (accessKeyId === undefined && (secretAccessKey ?? sessionToken) !== undefined)
      missing('accessKeyId', secretAccessKey === undefined ? 'sessionToken' : 'secretAccessKey');
  })
  .describe('S3 bucket, or a bucket of an S3-compatible server, in place of `directory`');

const timestampSettings = z
  .strictObject({
    url: httpUrl('an address such as http://timestamp.example', 'set username and password').describe(
      'Address of a time-stamping authority (RFC 3161). `http:` is safe without a password: the token is signed',
    ),
    ca: pemFiles()
      .optional()
      .describe(
        'Root certificates of the authority, in PEM: the sink rejects a token that does not chain to one of them. Default: no check',
      ),
    policy: text(/^[0-2](\.(0|[1-9]\d*))+$/, 'an object identifier such as 1.3.6.1.4.1.13762.3')
      .optional()
      .describe('Policy of the authority; default its own choice'),
    username: line().optional().describe('User, for HTTP Basic'),
    password: secret().optional().describe('Password of `username`'),
    tls: tlsSettings.optional(),
    proxy: proxySettings.optional().describe('Proxy of these requests in place of the general one; `none` connects directly'),
  })
  .superRefine(({ url, username, password }, context) => {
    const fault = (key: string, message: string): void => context.addIssue({ code: 'custom', path: [key], message });
    if (username !== undefined && password === undefined) fault('password', 'is missing: username needs it');
    if (username === undefined && password !== undefined) fault('username', 'is missing: password needs it');
    const { protocol, hostname } = new URL(url);
    if (password !== undefined && protocol === 'http:' && !isLoopback(hostname))
      fault('url', 'must start with https: because password is set');
  })
  .describe('Time stamps: once a UTC day, an authority signs the time of the newest checkpoint (docs/evidence.md)');

const witnessSettings = z.strictObject({
  url: httpUrl('an address such as https://witness.example', 'a witness needs none').describe(
    'Address of the witness, before `/add-checkpoint`. `http:` is safe: the cosignature is signed',
  ),
  key: text(/^[^\s+]+\+[0-9a-f]{8}\+B[A-Za-z0-9+/]{43}$/, 'the public key of a witness, name+id+base64, as "archive witness" prints it')
    .refine((key) => parseVerifier(key, 4) !== undefined, 'is not the public key of a witness: its id does not fit')
    .register(facts, { expects: 'the public key of a witness, name+id+base64' })
    .describe('Public key of the witness, of type 4 (Ed25519): the sink accepts no other cosignature'),
  tls: tlsSettings.optional(),
  proxy: proxySettings.optional().describe('Proxy of these requests in place of the general one; `none` connects directly'),
});

export const archiveSettings = z.strictObject({
  directory: path()
    .optional()
    .describe('Directory of the archive, on a local disk; created with mode 0700. Relative to the working directory'),
  s3: s3Settings.optional(),
  signingKey: secret().describe('Ed25519 private key in PEM (PKCS #8) that signs the checkpoints, e.g. `${file:/run/secrets/archive-key}`'),
  previousSigningKey: secret()
    .optional()
    .describe(
      'The key that `signingKey` replaces: both sign the next checkpoint. Needed as long as the archive is read from this configuration',
    ),
  formerCheckpoint: path()
    .optional()
    .describe('The last `checkpoint` of an archive whose key was lost: the first line of this new archive holds it (docs/evidence.md)'),
  timestamp: timestampSettings.optional(),
  witnesses: z
    .array(witnessSettings)
    .max(10)
    .superRefine((witnesses, context) => {
      const ids = witnesses.map(({ key }) => key.split('+')[1]);
      if (new Set(ids).size < ids.length) context.addIssue({ code: 'custom', message: 'names a witness twice' });
    })
    .optional()
    .describe('Witnesses (C2SP tlog-witness): each cosigns the newest checkpoint, at most once a minute (docs/evidence.md)'),
});

type S3Settings = z.output<typeof s3Settings>;
export type TimestampSettings = z.output<typeof timestampSettings>;
export type ArchiveSettings = z.output<typeof archiveSettings>;

/** @param own  the proxy setting of these requests. @returns undefined: none */
export function proxyOf(own: S3Settings['proxy'], { proxy }: Pick<SinkContext, 'proxy'>): ProxySettings | undefined {
  return own === 'none' ? undefined : (own ?? proxy);
}

/** In a fleet each shard has its own archive, below `prefix`. */
export function bucketTarget(settings: S3Settings, context: Pick<SinkContext, 'proxy' | 'fleet'>): BucketTarget {
  const { bucket, prefix, region, endpoint, pathStyle, objectLock, objectLockMode, accessKeyId, secretAccessKey, sessionToken, tls } =
    settings;
  return {
    bucket,
    prefix: `${prefix === undefined ? '' : `${prefix.replace(/\/+$/, '')}/`}${context.fleet?.shard === undefined ? '' : `shard-${context.fleet.shard}/`}`,
    region,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    pathStyle: pathStyle ?? endpoint !== undefined,
    credentials: accessKeyId && secretAccessKey && { accessKeyId, secretAccessKey, sessionToken },
    retention: objectLock === 'none' ? undefined : { mode: objectLockMode === 'compliance' ? 'COMPLIANCE' : 'GOVERNANCE', ms: objectLock },
    tls,
    proxy: proxyOf(settings.proxy, context),
  };
}

/** The directory or bucket of an archive, for messages and for the identity of the sink. */
export function placeOf({ directory = '', s3 }: Pick<ArchiveSettings, 'directory' | 's3'>): string {
  return s3 === undefined ? directory : `s3://${s3.bucket}/${s3.prefix ?? ''}`;
}

/** An archive has one place, and proves windows: it needs the ledger and all records of each. `start: archive:ID` must name one. */
export function archiveFaults(own: readonly WrittenSink[], all: readonly WrittenSink[]): readonly SettingFault[] {
  const ids = new Set(own.map(({ settings }) => settings['id']));
  return [...own.flatMap(ownFaults), ...all.flatMap((sink) => startFaults(sink, ids))];
}

function ownFaults(sink: WrittenSink): readonly SettingFault[] {
  const { directory, s3, ledger, start } = sink.settings;
  const isOther = typeof start === 'string' && (parseInstant(start) !== undefined || start.startsWith('archive:'));
  return [
    ...(directory === undefined && s3 === undefined
      ? [{ sink, setting: 'directory', message: 'is missing: expected a directory, or "s3"' }]
      : []),
    ...(directory !== undefined && s3 !== undefined ? [{ sink, setting: 's3', message: 'has no effect: "directory" is set' }] : []),
    ...(ledger === false ? [{ sink, setting: 'ledger', message: 'must be true: an archive contains the ledger' }] : []),
    ...(isOther ? [{ sink, setting: 'start', message: 'must be journal or now: an archive contains only whole windows' }] : []),
  ];
}

function startFaults(sink: WrittenSink, archives: ReadonlySet<unknown>): readonly SettingFault[] {
  const { start } = sink.settings;
  const [, archive] = typeof start === 'string' ? (/^archive:(.*)$/.exec(start) ?? []) : [];
  if (archive === undefined || archives.has(archive)) return [];
  return [{ sink, setting: 'start', message: `names "${archive}", which is not a sink of type archive` }];
}
