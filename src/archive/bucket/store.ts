/**
 * Stores an archive in a bucket of S3, or of a server with conditional writes. Segments and numbered
 * checkpoints are never replaced (`If-None-Match: *`) and have Object Lock. Tiles, entries and the copy
 * of the newest checkpoint have no lock, because they can be computed again. Each request can be
 * repeated safely, and is repeated after a lost response or a transient error.
 */
import { createHash } from 'node:crypto';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectLegalHoldCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
} from '@aws-sdk/client-s3';
import type { PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { maxBytesOf, type WritableArchiveStore } from '../store.ts';
import { answeredBy, answeredWithin, answeredWithoutTag, BucketClient, ForeignAnswerError, LongAnswerError } from './client.ts';
import type { BucketContext, BucketTarget } from './client.ts';
import { failureOf, statusOf } from './failure.ts';

/** Pages with few or no objects. A server may send some while it passes over deleted objects. */
const maxSparsePages = 1_000;
/** Objects of a page that is not sparse. A page holds up to 1,000. */
const fullPage = 10;
/** An archive of ten years with a segment every minute has half as many in a folder. */
const maxListed = 10_000_000;
/** Pauses before the second and each further attempt, ms. */
const pauses = [200, 1_000, 3_000];

export class BucketStore implements WritableArchiveStore, AsyncDisposable {
  /** `s3://bucket/prefix/` */
  readonly name: string;
  readonly client: BucketClient;
  readonly #target: BucketTarget;
  readonly #setting: string;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #isConditional = false;

  constructor(target: BucketTarget, context: BucketContext) {
    this.name = `s3://${target.bucket}/${target.prefix}`;
    this.client = new BucketClient(target, context);
    this.#target = target;
    this.#setting = context.setting;
    this.#clock = context.clock;
    this.#signal = context.signal ?? new AbortController().signal;
  }

  async read(path: string): Promise<Buffer | undefined> {
    return this.#attempt('read', path, async (s3) => {
      try {
        const { Body, ETag, $metadata } = await s3.send(new GetObjectCommand(this.#object(path)), answeredWithin(maxBytesOf(path)));
        // A gateway to a folder has no ETag of a file that was copied there, but sends the request id of S3.
        if (ETag === undefined && $metadata.requestId === undefined) throw new ForeignAnswerError('it has no ETag');
        return Buffer.from((await Body?.transformToByteArray()) ?? []);
      } catch (thrown) {
        if (thrown instanceof LongAnswerError || (thrown instanceof Error && thrown.name === 'NoSuchKey')) return undefined;
        throw thrown;
      }
    });
  }

  async *list(folder: string): AsyncGenerator<string> {
    const { bucket, prefix } = this.#target;
    let earlier: string | undefined;
    let [pages, sparsePages, listed] = [0, 0, 0];
    for (let token: string | undefined, isLast = false; !isLast;) {
      const input = { Bucket: bucket, Prefix: `${prefix}${folder}`, ContinuationToken: token };
      const page = await this.#attempt('list', folder, async (s3) => {
        const answer = await s3.send(new ListObjectsV2Command(input));
        if (answer.IsTruncated === undefined) throw new ForeignAnswerError('it has no IsTruncated');
        if (answer.IsTruncated && !answer.NextContinuationToken) throw new ForeignAnswerError('it has no NextContinuationToken');
        return answer;
      });
      const refuse = (reason: string): never => {
        throw new WaybillError('sink_blocked', `cannot list "${this.name}${folder}" (${this.#setting}): the server ${reason}`);
      };
      const keys = page.Contents ?? [];
      for (const { Key = '' } of keys) {
        if (!Key.startsWith(input.Prefix)) refuse('lists objects outside this prefix');
        yield Key.slice(prefix.length);
      }
      token = page.NextContinuationToken;
      isLast = !page.IsTruncated;
      if (!isLast && token === earlier) refuse('repeats a continuation token, so the list would not end');
      if (keys.length < fullPage) sparsePages += 1;
      listed += keys.length;
      if (sparsePages > maxSparsePages) refuse(`sends pages with less than ${fullPage} objects, so the list would not end`);
      if (listed > maxListed) refuse(`lists more than ${maxListed} objects, so the list would not end`);
      // Compares with the tokens of pages 1, 2, 4, 8 and so on: that finds every cycle, and needs no memory for each page.
      pages += 1;
      if (Number.isInteger(Math.log2(pages))) earlier = token;
    }
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    const isNew = await this.createNew(path, bytes);
    if (isNew && !this.#isConditional) await this.#assertConditional(path, bytes);
    // The response to a request that created the object may have been lost.
    return isNew || (await this.read(path))?.equals(bytes) === true;
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    await this.#attempt('write', path, (s3) => put(s3, this.#content(path, bytes)));
  }

  async remove(path: string): Promise<void> {
    const object = this.#object(path);
    await this.#attempt('delete', path, async (s3) => {
      // Without the id of a version, the bucket would keep the object behind a delete marker.
      const { Versions = [], DeleteMarkers = [] } = await s3.send(
        new ListObjectVersionsCommand({ Bucket: object.Bucket, Prefix: object.Key }),
        answeredBy('ListVersionsResult'),
      );
      for (const { Key, VersionId } of [...Versions, ...DeleteMarkers])
        if (Key === object.Key) await s3.send(new DeleteObjectCommand({ ...object, VersionId }));
    });
  }

  /** Sets or ends the legal hold of an object (Object Lock), and reads it back. */
  async hold(path: string, isHeld: boolean): Promise<void> {
    const object = this.#object(path);
    const status = isHeld ? 'ON' : 'OFF';
    await this.#attempt('hold', path, async (s3) => {
      await s3.send(new PutObjectLegalHoldCommand({ ...object, LegalHold: { Status: status } }), answeredWithoutTag);
      const { LegalHold } = await s3.send(new GetObjectLegalHoldCommand(object), answeredBy('LegalHold'));
      if (LegalHold?.Status !== status) throw new ForeignAnswerError(`the legal hold is not ${status}`);
    });
  }

  /** @returns false when the object exists, with whatever content */
  createNew(path: string, bytes: Uint8Array): Promise<boolean> {
    return this.#attempt('write', path, async (s3) => {
      try {
        await put(s3, { ...this.#content(path, bytes), ...this.#lock(), IfNoneMatch: '*' });
        return true;
      } catch (thrown) {
        if (statusOf(thrown) === 412) return false;
        throw thrown;
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
  }

  /** A server that ignores the condition would let a second writer replace a checkpoint. */
  async #assertConditional(path: string, bytes: Uint8Array): Promise<void> {
    if (await this.createNew(path, bytes))
      throw new WaybillError(
        'sink_blocked',
        `cannot archive to "${this.name}" (${this.#setting}): the server ignores "If-None-Match: *" and replaces objects; use a server with conditional writes`,
      );
    this.#isConditional = true;
  }

  #object(path: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#target.bucket, Key: `${this.#target.prefix}${path}` };
  }

  /** The server compares the bytes with the checksum, and refuses others. */
  #content(path: string, bytes: Uint8Array): PutObjectCommandInput {
    return { ...this.#object(path), Body: bytes, ChecksumSHA256: createHash('sha256').update(bytes).digest('base64') };
  }

  #lock(): Pick<PutObjectCommandInput, 'ObjectLockMode' | 'ObjectLockRetainUntilDate'> {
    const { retention } = this.#target;
    return retention ? { ObjectLockMode: retention.mode, ObjectLockRetainUntilDate: new Date(this.client.now() + retention.ms) } : {};
  }

  async #attempt<Result>(verb: string, path: string, work: (s3: S3Client) => Promise<Result>): Promise<Result> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await work(this.client.s3);
      } catch (thrown) {
        this.#signal.throwIfAborted();
        const action = `cannot ${verb} "${this.name}${path}" (${this.#setting})`;
        const { error, isTransient } = failureOf(thrown, action, this.client.connection);
        const pause = pauses[attempt];
        if (!isTransient || pause === undefined) throw error;
        await this.#clock.sleep(pause, this.#signal);
      }
    }
  }
}

/** Some servers do not return the checksum of what they stored. */
async function put(s3: S3Client, content: PutObjectCommandInput): Promise<void> {
  const { ChecksumSHA256: stored = content.ChecksumSHA256 } = await s3.send(new PutObjectCommand(content));
  if (stored !== content.ChecksumSHA256) throw new ForeignAnswerError('it has another checksum');
}
