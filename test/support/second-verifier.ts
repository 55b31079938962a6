/**
 * Checks changed copies of an archive with content/archive/verify.py, which shares no code with
 * Waybill.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { VerifyOptions } from '../../src/archive/verify/verify.ts';

/** The new bytes of a file by its path; null: the file is deleted. `--since` is a checkpoint from elsewhere for this copy. */
export type Changes = Readonly<Record<string, Buffer | null>>;
/** The findings of a verifier. */
export type Judgement = readonly (readonly [severity: string, object: string])[];

export const verifyProgram = fileURLToPath(new URL('../../content/archive/verify.py', import.meta.url));
export const hasPython = [
  ['python3', '--version'],
  ['openssl', 'version'],
].every(([name = '', ...args]) => spawnSync(name, args).status === 0);
if (!hasPython) console.warn('skipped: python3 and openssl, for content/archive/verify.py, are not installed');

/** One process of verify-archives.py, which answers line by line until the tests end. */
class Driver {
  readonly #child = spawn('python3', [fileURLToPath(new URL('verify-archives.py', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  readonly #answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  #previous: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#child.unref();
    for (const stream of [this.#child.stdin, this.#child.stdout]) (stream as Socket).unref();
  }

  send(request: object): void {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
  }

  /** Sends all requests before it reads an answer: Python works while this process does. */
  async ask<Answer = Judgement>(requests: readonly object[]): Promise<readonly Answer[]> {
    for (const request of requests) this.send(request);
    const answers: Answer[] = [];
    while (answers.length < requests.length) {
      const { done, value } = await this.#answers.next();
      if (done === true) throw new Error('verify-archives.py ended before it answered');
      answers.push(JSON.parse(value) as Answer);
    }
    return answers;
  }

  /** One call after another: `send` sets the archive for the calls of `ask` that follow. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#previous.then(work);
    this.#previous = result.catch(() => undefined);
    return result;
  }
}
let driver: Driver | undefined;

export function secondVerifier(
  files: ReadonlyMap<string, Buffer>,
  /** `key` may have several lines. */
  options: {
    readonly key: string;
    readonly since?: Uint8Array | readonly Uint8Array[] | undefined;
    /** Certificates of time-stamping authorities in PEM. */
    readonly roots?: string | undefined;
    /** Wall clock in seconds; default: now. */
    readonly now?: number | undefined;
    readonly witnesses?: readonly string[];
    readonly quorum?: number;
    readonly formerFiles?: ReadonlyMap<string, Buffer> | undefined;
  } & Pick<VerifyOptions, 'removedBefore' | 'from' | 'to' | 'within' | 'keyUntil' | 'freshSince'>,
  copies: readonly Changes[] = [{}],
): Promise<readonly Judgement[]> {
  const since = [options.since ?? []].flat().map((note) => Buffer.from(note).toString('base64'));
  const python = (driver ??= new Driver());
  return python.inTurn(async () => {
    // JSON has no infinity.
    const removedBefore = options.removedBefore === Infinity ? Number.MAX_SAFE_INTEGER : options.removedBefore;
    python.send({ ...options, files: encoded(files), removedBefore, since, former: options.formerFiles && encoded(options.formerFiles) });
    return python.ask(copies.map((changes) => ({ changes: encoded(Object.entries(changes)) })));
  });
}

/** What verify.py finds in a directory with the first `begin` writes, and those up to `end` from its operation `at` on. */
export async function growingArchives(
  writes: readonly (readonly [path: string, bytes: Buffer])[],
  key: string,
  cases: readonly { readonly begin: number; readonly at: number; readonly end: number }[],
): Promise<readonly Judgement[]> {
  const python = (driver ??= new Driver());
  const texts = writes.map(([path, bytes]) => [path, bytes.toString('base64')]);
  return python.inTurn(() => python.ask(cases.map(({ begin, at, end }) => ({ writes: texts, key, begin, at, end }))));
}

/** What verify.py finds in a file of proofs. */
export async function secondProofCheck(proof: string, key: string): Promise<Judgement> {
  const python = (driver ??= new Driver());
  const [judgement = []] = await python.inTurn(() => python.ask([{ proof, key }]));
  return judgement;
}

/** Runs verify.py as an auditor does. */
export function verifyWithPython(...args: readonly string[]): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('python3', [verifyProgram, ...args], { encoding: 'utf8' });
  return { code: status, text: stdout + stderr };
}

/** The same in the process of many tests: a start takes longer than the work. */
export async function secondVerify(...args: readonly string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const python = (driver ??= new Driver());
  const [answer] = await python.inTurn(() => python.ask<readonly [code: number, text: string]>([{ arguments: args }]));
  if (!answer) throw new Error('verify-archives.py gave no answer');
  return { code: answer[0], text: answer[1] };
}

export function resultOf(judgement: Judgement): string {
  return ['altered', 'unproven'].find((severity) => judgement.some(([each]) => each === severity)) ?? 'intact';
}

function encoded(files: Iterable<readonly [string, Buffer | null]>): object {
  return Object.fromEntries([...files].map(([path, bytes]) => [path, bytes?.toString('base64') ?? null]));
}
