/**
 * What a person may change while the daemon runs, or while it does not: one function for both. The request comes from a command, through the
 * socket in the state directory or with the lock in hand; whatever it asks is checked here, against the state as it is.
 */
import { WaybillError } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Micros } from '../../model/time.ts';
import { actSchema } from './requests.ts';
import type { ActResult, ConfiguredSinks, Reading } from './requests.ts';
import { performOnSink } from './sink-acts.ts';

/** What the log says of a request that was done. */
export function operationOf(given: unknown): {
  action: string;
  source?: string;
  sink?: string;
  operator: string;
  reason: string | undefined;
} {
  const parsed = actSchema.parse(given);
  const { act: action, by: operator, why: reason } = parsed;
  return { action, ...('source' in parsed ? { source: parsed.source } : { sink: parsed.sink }), operator, reason };
}

/** Does what is asked, in one transaction. @throws WaybillError `usage` when it cannot be done, `journal_full` when it cannot be stored */
export async function perform(
  given: unknown,
  journal: Journal,
  now: Micros,
  reading: Reading,
  configured: ConfiguredSinks = () => undefined,
): Promise<ActResult> {
  const parsed = actSchema.safeParse(given);
  if (!parsed.success)
    throw new WaybillError('usage', `cannot read what is asked: ${parsed.error.issues.map(({ message }) => message).join(', ')}`);
  const asked = parsed.data;
  if (!('source' in asked)) return performOnSink(asked, journal, now, configured);
  const act = { who: asked.by, why: asked.why };
  const { history } = journal;
  switch (asked.act) {
    case 'backfill': {
      const { source, from, until, rate, sinks, expected } = asked;
      const known = [...journal.progress.sinks()].map((sink) => sink.id);
      const unknown = sinks?.filter((sink) => !known.includes(sink)) ?? [];
      if (unknown.length > 0)
        throw new WaybillError('usage', `cannot find the sink "${unknown.join('", "')}" in the state: there are ${known.join(', ')}`);
      return { added: history.add(source, { from, until }, { rate, sinks, expected }, act) };
    }
    case 'backfill pause':
    case 'backfill resume':
      history.pause(asked.source, asked.from, asked.act === 'backfill pause', act);
      return {};
    case 'backfill cancel':
      return { ends: history.cancel(asked.source, asked.from, reading(asked.source, asked.from)?.until, act) };
    case 'gaps retry':
    case 'gaps accept': {
      known(journal, asked.source);
      const gapAct = { at: now, who: asked.by, why: asked.why ?? '' };
      if (asked.act === 'gaps retry') await journal.retryGap(asked.source, asked.from, gapAct);
      else await journal.acceptGap(asked.source, asked.from, { ...gapAct, evidence: asked.evidence });
      return {};
    }
    case 'sources retire':
      history.retire(asked.source, act);
      return {};
  }
}

function known(journal: Journal, source: string): void {
  if (!journal.hasSource(source)) throw new WaybillError('usage', `cannot find the source "${source}" in the state`);
}
