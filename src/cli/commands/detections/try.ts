/** `waybill detections try`: how often each rule would have fired in a history. */
import { createReadStream } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { parseRecordLine, type LedgerFacts, type LineFacts } from '../../../archive/parse-line.ts';
import { Prover } from '../../../archive/prove.ts';
import { eventOf, fieldsOf } from '../../../detections/event.ts';
import type { DetectionEvent, Steps } from '../../../detections/evaluate.ts';
import { readRules } from '../../../detections/rule.ts';
import { parseLists, tryRule, type Trial } from '../../../detections/trial.ts';
import { packageFile } from '../../../disk/files.ts';
import { messageOf, WaybillError } from '../../../errors/errors.ts';
import { systemClock } from '../../../time/clock.ts';
import { subcommand } from '../../command.ts';
import { readInput, writeResult, type Io } from '../../io.ts';
import { linesOf } from '../../lines.ts';
import { byId } from '../../not-found.ts';
import { configOption, text, texts, type ValuesOf } from '../../option.ts';
import { Progress } from '../../progress.ts';
import { placeOf, shardOption } from '../archive/place.ts';
import { recordEncoder } from '../encode.ts';
import { trialText } from './trial-text.ts';

const options = {
  archive: text('DIR', 'directory of an archive: its records and its ledger'),
  sink: text('ID', 'archive sink of the configuration, in a directory or in S3, in place of --archive'),
  ...shardOption,
  file: text('FILE', 'events of the format ecs, one a line, in place of --archive; - is standard input'),
  rule: texts('ID', 'only this rule; may be repeated'),
  lists: text('FILE', 'exception lists, in YAML; default none: nothing is excepted'),
  ...configOption,
};

export const tryRules = subcommand({
  summary: 'prints how often each rule would have fired, by day, for whom, and with other thresholds',
  options,
  run: async (values: ValuesOf<typeof options>, io) => {
    const all = readRules(packageFile('content/rules/'));
    const rules = values.rule.length === 0 ? all : values.rule.map((id) => byId('rule', all, id));
    const lists = values.lists === undefined ? {} : parseLists(readInput(values.lists, '--lists').toString(), values.lists, all);
    const given = [values.archive, values.sink, values.file].filter((each) => each !== undefined);
    if (given.length !== 1)
      throw new WaybillError('usage', 'cannot find the history: pass one of --archive DIR, --sink ID and --file FILE');
    const history = new History(io, fieldsOf(all));
    const code = await (values.file === undefined ? archived(values, history, io) : inFile(values.file, history, io));
    const events = [...history.events.values()].sort((a, b) => a.at - b.at);
    const [first, last] = [events[0], events.at(-1)];
    if (!first || !last) throw new WaybillError('usage', 'cannot try the rules: the history has no event with a time and a dpas.uid');
    const trials: Trial[] = [];
    for (const rule of rules) {
      if (events.length >= shownEvery) history.progress.showLine(`rule ${rule.id} on ${String(events.length)} events`);
      trials.push(await finished(tryRule(rule, events, lists, last.at), io.signal));
    }
    history.progress.end();
    await writeResult(io, trialText(trials, events));
    return code;
  },
});

const turnMs = 100;

/** Takes the steps of a computation, and looks for a signal between them. */
async function finished<Result>(steps: Steps<Result>, signal: AbortSignal): Promise<Result> {
  for (let [step, turn] = [steps.next(), 0]; ; step = steps.next()) {
    if (step.done) return step.value;
    if (systemClock.now() - turn < turnMs) continue;
    await setImmediate();
    signal.throwIfAborted();
    turn = systemClock.now();
  }
}

/** Of how many events a line of progress tells. */
const shownEvery = 10_000;

/** The events of a history, each once. */
class History {
  readonly events = new Map<string, DetectionEvent>();
  readonly progress: Progress;
  readonly #fields: readonly string[];
  readonly #texts = new Map<string, string>();

  constructor({ stderr }: Io, fields: readonly string[]) {
    this.progress = new Progress(stderr);
    this.#fields = fields;
  }

  /** @returns whether the document is an event */
  addDocument(document: unknown): boolean {
    const event = eventOf(document, this.#fields, this.#texts);
    if (event) this.add(event);
    return event !== undefined;
  }

  add(event: DetectionEvent): void {
    this.events.set(event.uid, event);
    if (this.events.size % shownEvery === 0) this.progress.showLine(`${String(this.events.size)} events read`);
  }
}

/** @returns the exit code */
async function inFile(file: string, history: History, { stdin, stderr, signal }: Io): Promise<number> {
  let others = 0;
  try {
    for await (const line of linesOf(file === '-' ? stdin : createReadStream(file), signal)) {
      if (line.trim() !== '' && !history.addDocument(parsed(line))) others += 1;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new WaybillError('usage', `cannot read --file "${file}": ${messageOf(cause)}`, { cause });
  }
  if (others > 0) stderr.write(`warning: ${String(others)} of the lines are no events of the format ecs, and were left out\n`);
  return 0;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

/** By the state of a line of the ledger, `event.action` of its ledger event. */
const actions: Readonly<Record<LedgerFacts['state'], string>> = {
  proven: 'window-proven',
  gap: 'window-gap',
  accepted: 'window-accepted',
  suspended: 'suspension-started',
  resumed: 'suspension-ended',
};

/** The same, of a proven window that a later count contradicts, by its reason. */
const inDoubt: Readonly<Record<string, string>> = { shrunk: 'window-shrunk', reread: 'window-in-doubt' };

/** @returns the exit code */
async function archived(
  { archive, sink, shard, config }: Pick<ValuesOf<typeof options>, 'archive' | 'sink' | 'shard' | 'config'>,
  history: History,
  io: Io,
): Promise<number> {
  const { store: opened } = await placeOf({ directory: archive, sink, shard, config }, io);
  await using store = opened;
  const prover = await Prover.open(store);
  const encoders = new Map<string, (text: string) => string>();
  const leftOut = new Set<string>();
  const addEvent = (facts: LineFacts, line: Buffer): boolean => {
    io.signal.throwIfAborted();
    if (facts.kind === 'ledger') {
      const { source, to, state, seq, reason, at = to } = facts;
      const doubt = state === 'proven' ? inDoubt[reason ?? ''] : undefined;
      const named = { 'event.action': doubt ?? actions[state], 'dpas.ledger.source': source };
      // The event of the ledger has the time at which the entry was written.
      history.add({ at: at / 1_000, uid: `ledger ${String(seq)}`, fields: named });
    } else if (facts.kind === 'record') {
      const encode = encoders.get(facts.source) ?? recordEncoder('ecs', facts.source, systemClock);
      encoders.set(facts.source, encode);
      history.addDocument(JSON.parse(encode(parseRecordLine(line).record.toString())));
    }
    // No proof is needed.
    return false;
  };
  await Array.fromAsync(prover.lines(addEvent, ({ result }) => leftOut.add(result)));
  const isWhole = leftOut.size === 0 && !prover.newer;
  if (!isWhole) io.stderr.write('warning: lines of the archive are missing or cannot be proven: see "waybill archive verify"\n');
  return leftOut.has('altered') ? 1 : isWhole ? 0 : 3;
}
