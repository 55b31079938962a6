/**
 * The checks of `waybill check` for a bucket: versioning, Object Lock, rights, conditional writes. They
 * store no new object: a write that tests a right has a wrong checksum, and the server must refuse it.
 */
import { DeleteObjectCommand, GetBucketVersioningCommand, GetObjectLockConfigurationCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { wayOf } from '../../connect/connection.ts';
import { messageOf } from '../../errors/errors.ts';
import { checkpointPath } from '../checkpoint.ts';
import { answeredBy, type BucketTarget } from './client.ts';
import { failureOf, statusOf } from './failure.ts';
import type { BucketStore } from './store.ts';

/** One line of `waybill check`. */
interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
  readonly setting?: string;
}

const dayMs = 86_400_000;

/** @param setting  `sinks.archive.s3` */
export async function checkBucket(
  store: BucketStore,
  target: BucketTarget,
  setting: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const check = new BucketCheck(store, target, setting);
  for (const step of ['versioning', 'lock', 'list', 'write', 'conditions', 'deletion'] as const) {
    signal.throwIfAborted();
    if (!(await check[step]())) break;
  }
  return check.findings;
}

/** A step returns false when nothing after it can succeed. */
class BucketCheck {
  readonly findings: Finding[] = [];
  readonly #store: BucketStore;
  readonly #target: BucketTarget;
  readonly #setting: string;

  constructor(store: BucketStore, target: BucketTarget, setting: string) {
    this.#store = store;
    this.#target = target;
    this.#setting = setting;
  }

  async versioning(): Promise<boolean> {
    const { bucket } = this.#target;
    try {
      const { Status } = await this.#s3.send(new GetBucketVersioningCommand({ Bucket: bucket }), answeredBy('VersioningConfiguration'));
      this.#ok(wayOf(this.#store.client.connection.route()));
      if (Status === 'Enabled') this.#ok(`"${bucket}" has versioning`);
      else
        this.#add(
          this.#target.retention ? 'error' : 'warning',
          `"${bucket}" has no versioning: a write without a condition replaces evidence; enable it: aws s3api put-bucket-versioning`,
        );
      return true;
    } catch (thrown) {
      return this.#unreadable(thrown, 'versioning', 's3:GetBucketVersioning');
    }
  }

  async lock(): Promise<boolean> {
    const { bucket, retention } = this.#target;
    try {
      const command = new GetObjectLockConfigurationCommand({ Bucket: bucket });
      const { ObjectLockConfiguration } = await this.#s3.send(command, answeredBy('ObjectLockConfiguration'));
      const { Mode, Days, Years } = ObjectLockConfiguration?.Rule?.DefaultRetention ?? {};
      if (!retention) this.#add('warning', 'objectLock is none: the server lets a user with rights delete evidence');
      else if (ObjectLockConfiguration?.ObjectLockEnabled !== 'Enabled') return this.#withoutLock();
      else
        this.#ok(`"${bucket}" has Object Lock: each segment and checkpoint is locked for ${retention.ms / dayMs} days, ${retention.mode}`);
      const days = Days ?? (Years ?? 0) * 365;
      if (Mode !== undefined)
        this.#add(
          retention && days * dayMs > retention.ms ? 'warning' : 'ok',
          `the bucket locks every object by default for ${days} days, ${Mode}: old versions of replaced tiles cannot be deleted before that`,
        );
      return true;
    } catch (thrown) {
      if (thrown instanceof Error && thrown.name === 'ObjectLockConfigurationNotFoundError') return this.#withoutLock();
      return this.#unreadable(thrown, 'Object Lock', 's3:GetBucketObjectLockConfiguration');
    }
  }

  async list(): Promise<boolean> {
    try {
      await this.#store.list('checkpoints/').next();
      this.#ok(`the credentials may list "${this.#store.name}"`);
      return true;
    } catch (thrown) {
      return this.#add('error', messageOf(thrown));
    }
  }

  /** The server must refuse the bytes after it has checked the rights. */
  async write(): Promise<boolean> {
    const { retention, bucket, prefix } = this.#target;
    const lock = retention && { ObjectLockMode: retention.mode, ObjectLockRetainUntilDate: new Date(this.#store.client.now() + dayMs) };
    const wrong = Buffer.alloc(32).toString('base64');
    try {
      await this.#s3.send(
        new PutObjectCommand({
          Bucket: bucket,
          Key: `${prefix}.waybill-check`,
          Body: Buffer.from('check'),
          ChecksumSHA256: wrong,
          ...lock,
        }),
      );
      return this.#add(
        'error',
        `the server stored bytes whose x-amz-checksum-sha256 is wrong ("${prefix}.waybill-check"): it checks no checksum`,
      );
    } catch (thrown) {
      if (statusOf(thrown) !== 400) return this.#failed(thrown, 'write');
      this.#ok(`the credentials may write${retention ? ' and lock' : ''} objects, and the server checks their SHA-256`);
      return true;
    }
  }

  /** Writes the first checkpoint again with its own bytes. */
  async conditions(): Promise<boolean> {
    const path = checkpointPath(1);
    try {
      const bytes = await this.#store.read(path);
      if (!bytes) this.#ok('the sink checks conditional writes when it stores the first segment');
      else if (await this.#store.createNew(path, bytes))
        return this.#add('error', 'the server ignores "If-None-Match: *" and replaces objects: use a server with conditional writes');
      else this.#ok('the server refuses to replace a checkpoint (If-None-Match)');
      return true;
    } catch (thrown) {
      return this.#add('error', messageOf(thrown));
    }
  }

  /** Tries to delete a version that does not exist: the server refuses with 403 only if the right is missing. */
  async deletion(): Promise<boolean> {
    const { bucket, prefix } = this.#target;
    const absent = { Bucket: bucket, Key: `${prefix}.waybill-check`, VersionId: '00000000000000000000000000000000' };
    const thrown = await this.#s3.send(new DeleteObjectCommand(absent)).then(
      () => undefined,
      (each: unknown) => each,
    );
    if (statusOf(thrown) === 403) this.#ok('the credentials may not delete versions');
    else if (thrown !== undefined && statusOf(thrown) === undefined) return this.#failed(thrown, 'check the right to delete in');
    else this.#add('warning', 'the credentials may delete versions that are not locked: use a role without s3:DeleteObjectVersion');
    return true;
  }

  get #s3() {
    return this.#store.client.s3;
  }

  #withoutLock(): boolean {
    const { bucket, retention } = this.#target;
    if (!retention) return this.#add('warning', 'objectLock is none: users with the right to delete may remove evidence');
    const remedy = 'enable it: aws s3api put-object-lock-configuration, or set objectLock: none';
    return this.#add('error', `"${bucket}" has no Object Lock: segments and checkpoints cannot be locked; ${remedy}`);
  }

  /** A right that the sink does not need may be missing. */
  #unreadable(thrown: unknown, what: string, right: string): boolean {
    if (statusOf(thrown) === 501) this.#add('warning', `the server does not report ${what}`);
    else if (statusOf(thrown) === 403 && thrown instanceof Error && thrown.name === 'AccessDenied')
      this.#add('warning', `cannot check ${what} of "${this.#target.bucket}": the credentials lack ${right}`);
    else return this.#failed(thrown, `read ${what} of`);
    return true;
  }

  #failed(thrown: unknown, verb: string): boolean {
    const action = `cannot ${verb} "${this.#store.name}" (${this.#setting})`;
    return this.#add('error', failureOf(thrown, action, this.#store.client.connection).error.message);
  }

  #ok(message: string): void {
    this.findings.push({ level: 'ok', message });
  }

  #add(level: Finding['level'], message: string): boolean {
    this.findings.push({ level, message, setting: this.#setting });
    return level !== 'error';
  }
}
