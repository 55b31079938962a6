/** The sink `file`: the contract of every sink, on a real disk. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ResumePoint, Sink } from '../../../src/model/sink.ts';
import { file } from '../../../src/sink/file/index.ts';
import { temporary } from '../../support/model-journal.ts';
import { contextOf } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';

class FilePlace implements Place {
  readonly #directory = temporary();
  readonly #folder = join(this.#directory, 'logs');
  readonly #open: Sink[] = [];

  constructor() {
    mkdirSync(this.#folder);
  }

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    const sink = await file.open(
      { path: join(this.#folder, 'audit.log'), compression: 'none' },
      contextOf('under-test'),
      kept,
      new AbortController().signal,
    );
    this.#open.push(sink);
    return sink;
  };

  /** Abandons the objects without closing them; they write nothing any more. */
  async kill(): Promise<void> {}

  async received(): Promise<readonly string[]> {
    const text = readFileSync(join(this.#folder, 'audit.log'), 'utf8');
    return text.split('\n').slice(0, -1);
  }

  ruin(): void {
    rmSync(this.#folder, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sink of this.#open) await sink[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

sinkSuite({ name: 'file', formats: file.formats, twice: () => 0, secrets: [], start: async () => new FilePlace() });
