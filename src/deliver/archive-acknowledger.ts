/**
 * Acknowledges for a replay from an archive. Logs a rejected record instead of dead-lettering it: the
 * archive keeps the record, and its line number is no entry of the journal.
 */
import type { Log } from '../model/telemetry.ts';
import type { Acknowledging } from './acknowledger.ts';

export class ArchiveAcknowledger implements Acknowledging {
  readonly #id: string;
  readonly #acknowledger: Acknowledging;
  readonly #log: Log;

  constructor(id: string, acknowledger: Acknowledging, log: Log) {
    this.#id = id;
    this.#acknowledger = acknowledger;
    this.#log = log;
  }

  get acknowledged(): number {
    return this.#acknowledger.acknowledged;
  }

  async acknowledge(...given: Parameters<Acknowledging['acknowledge']>): Promise<void> {
    const [entries, acknowledged, delivered, rejections, stop] = given;
    await this.#acknowledger.acknowledge(entries, acknowledged, delivered, [], stop);
    for (const { seq, code } of rejections)
      this.#log.write('sink.archive_record_rejected', { sink: this.#id, uid: entries.get(seq)?.uid, code });
  }

  flush(stop: AbortSignal): Promise<void> {
    return this.#acknowledger.flush(stop);
  }
}
