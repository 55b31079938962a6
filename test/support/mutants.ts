/**
 * Mutants: the program with one mechanism broken on purpose, as texts to be replaced in a copy of `src/`. Each names the suite that must fail
 * then; a suite that does not is no test of that mechanism. A text that is no longer found fails `test/tidy.test.ts`, so that the list follows
 * the code.
 */

export interface Edit {
  readonly file: string;
  /** Stands exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
}

export interface Mutant {
  readonly id: string;
  /** The mechanism that is broken. */
  readonly what: string;
  /** `simulation`, or the test file that must fail. */
  readonly suite: string;
  /** Suites that must fail besides, each for itself. */
  readonly also?: readonly string[];
  readonly edits: readonly Edit[];
}

const simulation = 'simulation';
const elasticsearch = 'test/contract/sinks/elasticsearch.test.ts';
const syslog = 'test/contract/sinks/syslog.test.ts';
const splunkHec = 'test/contract/sinks/splunk-hec.test.ts';
const kafka = 'test/contract/sinks/kafka.test.ts';
const collect = 'src/collect/';
const journal = 'src/journal/';

const noRecounts: Edit = {
  file: `${collect}windows.ts`,
  text: 'for (const age of ages) if (until + age > serverNow) return until + age;',
  replacement: 'void [until, ages, serverNow];',
};
const noProof: Edit = { file: `${collect}read-window.ts`, text: 'total = counted.total;', replacement: 'total = seen.size;' };
const provesItself: Edit = {
  file: `${collect}close.ts`,
  text: 'if (!verdict.proven || verdict.proof.total >= mostOf(window)) return verdict;',
  replacement: 'if (!verdict.proven || mostOf(window) >= 0) return verdict;',
};

export const mutants: readonly Mutant[] = [
  {
    id: 'C1',
    what: 'the last timestamp as cursor: nothing is read a second time',
    suite: simulation,
    edits: [
      {
        file: `${collect}tip.ts`,
        text: 'Math.max(Math.min(live.reached, serverNow - settle), Math.min(mark, serverNow) - tipOverlap)',
        replacement: 'tip === 0 ? live.reached : tip',
      },
      {
        file: `${collect}read-window.ts`,
        text: `    await journal.append({
      source: reading.sourceId,`,
        replacement: `    void journal;
    void ({
      source: reading.sourceId,`,
      },
    ],
  },
  { id: 'C2', what: 'no recounts', suite: simulation, edits: [noRecounts] },
  { id: 'C3', what: 'no proof', suite: simulation, edits: [noProof] },
  { id: 'C4', what: 'neither proof nor recounts', suite: simulation, edits: [noRecounts, noProof] },
  {
    id: 'C5',
    what: 'a window is closed before what was read of it is stored',
    suite: simulation,
    edits: [
      {
        file: `${collect}read-window.ts`,
        text: `    await journal.append({
      source: reading.sourceId,`,
        replacement: `    void journal;
    ((reading as any).unstored ??= []).push({
      source: reading.sourceId,`,
      },
      {
        file: `${collect}close.ts`,
        text: 'await this.#record(read.window, read.verdict, 1, false);',
        replacement: `await this.#record(read.window, read.verdict, 1, false);
      for (const page of ((this.#parts.reading as any).unstored ?? []).splice(0)) await this.#parts.journal.append(page);`,
      },
    ],
  },
  {
    id: 'C6',
    what: 'the page size that was granted is ignored',
    suite: simulation,
    also: ['test/unit/collect/pass.test.ts'],
    edits: [
      {
        file: `${collect}pass.ts`,
        text: 'const isLess = answer.pageSize !== undefined && answer.pageSize < size && length === answer.pageSize && length > 0;',
        replacement: 'const isLess = false;',
      },
      {
        file: `${collect}pass.ts`,
        text: 'if (offset === 0 && length > 0 && length < size && total !== undefined && total > length) {',
        replacement: 'if (isLess) {',
      },
    ],
  },
  {
    id: 'C7',
    what: 'no padding around a window',
    suite: simulation,
    also: ['test/unit/collect/windows.test.ts'],
    edits: [
      {
        file: `${collect}windows.ts`,
        text: 'return { startTime: boundText(window.from - secondMicros), endTime: boundText(window.until + secondMicros) };',
        replacement: 'return { startTime: boundText(window.from), endTime: boundText(window.until) };',
      },
    ],
  },
  {
    id: 'C8',
    what: 'windows are planned on the local clock',
    suite: simulation,
    edits: [
      {
        file: 'src/source/server-clock.ts',
        text: 'Math.min(bound, Math.floor(this.#local() * 1000))',
        replacement: 'Math.floor(this.#local() * 1000)',
      },
    ],
  },
  {
    id: 'C9',
    what: 'no memory of what was appended',
    suite: simulation,
    edits: [
      {
        file: `${journal}judge.ts`,
        text: 'if (here.has(record.uid) || lastUids.has(record.uid)) {',
        replacement: 'void lastUids;\n      if (here.has(record.uid)) {',
      },
    ],
  },
  {
    id: 'C10',
    what: 'commits are not synced',
    suite: simulation,
    also: ['test/unit/journal/state.test.ts'],
    edits: [{ file: `${journal}state.ts`, text: "'synchronous = FULL',", replacement: "'synchronous = NORMAL'," }],
  },
  {
    id: 'C11',
    what: 'the total of the first page is believed',
    suite: simulation,
    edits: [
      {
        file: `${collect}read-window.ts`,
        text: 'let strangers = 0;',
        replacement: 'let strangers = 0;\n  let atFirst: number | undefined;',
      },
      {
        file: `${collect}read-window.ts`,
        text: 'first ??= answer.serverNow;',
        replacement: 'first ??= answer.serverNow;\n      if (isFirst) atFirst = answer.total;',
      },
      { file: `${collect}read-window.ts`, text: 'total = counted.total;', replacement: 'total = atFirst;' },
    ],
  },
  {
    id: 'C11b',
    what: 'the total of a cached answer is believed',
    suite: simulation,
    edits: [
      {
        file: `${collect}ask.ts`,
        text: "if (this.#serverClock.observe(page, newest) === 'accepted') return;",
        replacement: 'this.#serverClock.observe(page, newest);\n    if (newest !== Infinity) return;',
      },
    ],
  },
  {
    id: 'C12',
    what: 'items are counted, not identities',
    suite: simulation,
    edits: [
      { file: `${collect}read-window.ts`, text: 'let strangers = 0;', replacement: 'let strangers = 0;\n  let items = 0;' },
      {
        file: `${collect}read-window.ts`,
        text: 'for (const { uid, time } of answer.records) {',
        replacement: 'for (const { uid, time } of answer.records) {\n      items += 1;',
      },
      { file: `${collect}read-window.ts`, text: 'if (total === seen.size) {', replacement: 'if (total === items) {' },
    ],
  },
  {
    id: 'C14',
    what: 'a pass ends where the total says so',
    suite: simulation,
    edits: [
      {
        file: `${collect}pass.ts`,
        text: 'const isLast = isShort && !isCounted();',
        replacement: 'const isLast = (isShort && !isCounted()) || (total !== undefined && offset >= total);',
      },
    ],
  },
  {
    id: 'C15',
    what: 'identity and entry in two transactions',
    suite: simulation,
    edits: [
      {
        file: `${journal}journal.ts`,
        text: 'for (const [bucket, uids] of buckets) this.#seen.store(row.n, bucket, seq, uids);',
        replacement: 'void seq;',
      },
      {
        file: `${journal}journal.ts`,
        text: `      try {
        write();`,
        replacement: `      try {
        write();
        this.#store.transaction(() => {
          for (const [bucket, uids] of judged.buckets) this.#seen.store(source.row.n, bucket, undefined, uids);
        });`,
      },
    ],
  },
  {
    id: 'C16',
    what: 'padding is appended before the remembered mark',
    suite: simulation,
    also: ['test/unit/journal/remembered.test.ts'],
    edits: [
      {
        file: `${journal}judge.ts`,
        text: 'if (range === undefined || record.time < range.remembered) {',
        replacement: 'if (range === undefined) {',
      },
    ],
  },
  {
    id: 'C16b',
    what: 'padding is appended outside the ranges',
    suite: simulation,
    edits: [
      {
        file: `${journal}sources.ts`,
        text: 'for (const range of ranges) if (time >= range.from &&',
        replacement: 'for (const range of ranges) if (time >= range.from - 2_000_000 &&',
      },
      {
        file: `${journal}judge.ts`,
        text: 'if (range === undefined || record.time < range.remembered) {',
        replacement: 'if (range === undefined || (record.time < range.remembered && record.time >= range.from)) {',
      },
    ],
  },
  {
    id: 'C17',
    what: 'identities are forgotten before the last recount',
    suite: simulation,
    edits: [
      {
        file: `${journal}ledger.ts`,
        text: 'return Math.max(range.remembered, Math.min(reached - lastAge, first));',
        replacement: 'void [lastAge, first];\n    return Math.max(range.remembered, reached);',
      },
    ],
  },
  {
    id: 'C18',
    what: 'a recount asks another query',
    suite: simulation,
    edits: [
      {
        file: `${collect}recount.ts`,
        text: 'const { total } = await asker.count(window.query, paging.first, signal);',
        replacement:
          'const { total } = await asker.count({ ...window.query, startTime: microsToIso(window.from + 2_000_000).slice(0, 19) + ".00" }, paging.first, signal);',
      },
    ],
  },
  {
    id: 'C19',
    what: 'a total that fell is ignored',
    suite: simulation,
    also: ['test/unit/collect/close.test.ts'],
    edits: [
      {
        file: `${collect}recount.ts`,
        text: 'if (total !== undefined && total === window.total) {',
        replacement: 'if (total !== undefined && window.total !== undefined && total <= window.total) {',
      },
    ],
  },
  {
    id: 'C20b',
    what: 'a total that fell is read again and believed at once',
    suite: simulation,
    also: ['test/unit/collect/close.test.ts'],
    edits: [
      {
        file: `${collect}recount.ts`,
        text: 'await this.#fewer(window, total, signal);',
        replacement: 'await this.#parts.reread(window, signal);',
      },
      provesItself,
    ],
  },
  {
    id: 'C21',
    what: 'a poor page is appended in doubt',
    suite: simulation,
    edits: [
      {
        file: `${collect}gate.ts`,
        text: `      await holds.begin({ reason: 'fields', words, fields: gone });
      return false;`,
        replacement: `      return words !== '';`,
      },
    ],
  },
  {
    id: 'C22',
    what: 'the frontier moves over a gap',
    suite: simulation,
    edits: [
      {
        file: `${journal}ledger.ts`,
        text: "if (row.from_us !== frontier || row.state === 'gap') break;",
        replacement: 'if (row.from_us !== frontier) break;',
      },
    ],
  },
  {
    id: 'C23',
    what: 'a gap is never tried again',
    suite: simulation,
    edits: [
      {
        file: `${collect}close.ts`,
        text: 'nextRecount(window.until, ages, at) : nextTry(window.until, tries, ages, at);',
        replacement: 'nextRecount(window.until, ages, at) : nextTry(window.until, tries, ages, at) < 0 ? at : undefined;',
      },
    ],
  },
  {
    id: 'C24',
    what: 'a page is dropped on 401',
    suite: simulation,
    edits: [
      {
        file: `${collect}ask.ts`,
        text: "if (code === undefined || code === 'page_missing' || code === 'page_refused') throw thrown;",
        replacement:
          "if (code === undefined || code === 'page_missing' || code === 'page_refused' || code === 'source_unauthorized') throw thrown;",
      },
      {
        file: `${collect}pass.ts`,
        text: "if (code === 'page_missing' && offset > 0) return;",
        replacement: "if ((code === 'page_missing' && offset > 0) || code === 'source_unauthorized') return;",
      },
      {
        file: `${collect}ask.ts`,
        text: "if (code !== 'page_refused' && code !== 'page_missing') throw thrown;",
        replacement: "if (code !== 'page_refused' && code !== 'page_missing' && code !== 'source_unauthorized') throw thrown;",
      },
    ],
  },
  {
    id: 'C25',
    what: 'the wall clock decides what is late',
    suite: simulation,
    edits: [
      {
        file: `${journal}judge.ts`,
        text: "const isLate = owner !== undefined && owner.state !== 'gap';",
        replacement: 'const isLate = owner !== undefined && record.time < page.received - 900_000_000;',
      },
    ],
  },
  {
    id: 'C26',
    what: 'tip is bounded by now',
    suite: simulation,
    edits: [
      {
        file: `${collect}tip.ts`,
        text: 'const query = queryFrom(from);',
        replacement: 'const query = { ...queryFrom(from), endTime: queryFrom(serverNow).startTime };',
      },
    ],
  },
  {
    id: 'C27',
    what: 'pruning goes beyond the slowest sink',
    suite: simulation,
    edits: [
      {
        file: `${journal}journal.ts`,
        text: "const through = Math.min(this.head().seq, ...[...this.progress.sinks()].filter((s) => s.state !== 'retired').map((s) => s.acked));",
        replacement: 'const through = this.head().seq;',
      },
    ],
  },
  {
    id: 'C27b',
    what: 'pruning goes beyond a sink that is not configured at this moment',
    suite: simulation,
    edits: [
      { file: `${journal}journal.ts`, text: ".filter((s) => s.state !== 'retired')", replacement: ".filter((s) => s.state === 'active')" },
    ],
  },
  {
    id: 'C28',
    what: 'the position of a sink is not compared',
    suite: simulation,
    edits: [{ file: 'src/deliver/loop.ts', text: 'if (found) await this.#compare(found.position);', replacement: 'void this.#compare;' }],
  },
  {
    id: 'C38',
    what: 'the chain does not cover the body',
    suite: simulation,
    edits: [
      {
        file: `${journal}segment.ts`,
        text: "return createHash('sha256').update(head).update(content.body).digest();",
        replacement: "return createHash('sha256').update(head).digest();",
      },
    ],
  },
  {
    id: 'C44',
    what: 'the lock is not taken',
    suite: simulation,
    edits: [{ file: 'src/lock.ts', text: "lock.exec('BEGIN EXCLUSIVE');", replacement: "lock.exec('BEGIN');" }],
  },
  {
    id: 'C47',
    what: 'remembered passes a window with a recount ahead',
    suite: simulation,
    edits: [
      {
        file: `${journal}ledger.ts`,
        text: 'return Math.max(range.remembered, Math.min(reached - lastAge, first));',
        replacement: 'void first;\n    return Math.max(range.remembered, reached - lastAge);',
      },
    ],
  },
  {
    id: 'C48',
    what: 'the chain covers neither flags nor ends',
    suite: simulation,
    edits: [
      {
        file: `${journal}segment.ts`,
        text: 'const small = [source, content.flags, content.uids, content.ends];',
        replacement: 'const small = [source, content.uids];',
      },
    ],
  },
  {
    id: 'C49',
    what: 'the bucket of unreadable times is forgotten too early',
    suite: simulation,
    edits: [
      {
        file: `${journal}journal.ts`,
        text: '.filter((bucket) => endOfNegativeBucket(bucket) + 5 * 86_400_000_000 < remembered);',
        replacement: '.filter((bucket) => endOfNegativeBucket(bucket) - 86_400_000_000 < remembered);',
      },
    ],
  },
  {
    id: 'C50',
    what: 'the time of the service is the last Date',
    suite: simulation,
    also: ['test/unit/source/server-clock.test.ts'],
    edits: [
      {
        file: 'src/source/server-clock.ts',
        text: 'const least = this.#answers.reduce((least, { offset }) => Math.min(least, offset), Infinity);',
        replacement: 'const least = this.#answers.at(-1)?.offset ?? Infinity;',
      },
    ],
  },
  {
    id: 'C51',
    what: 'the mark of tip is the newest time read, unbounded',
    suite: simulation,
    edits: [{ file: `${collect}tip.ts`, text: 'Math.min(serverNow, newest ?? mark);', replacement: 'newest ?? mark;' }],
  },
  {
    id: 'C52',
    what: 'a total that may be a cap proves',
    suite: simulation,
    also: ['test/unit/collect/read-window.test.ts'],
    edits: [
      {
        file: `${collect}read-window.ts`,
        text: 'if (!(await mayBeCap(reading, query, total, signal))) {',
        replacement: 'if (total >= 0 || (await mayBeCap(reading, query, total, signal))) {',
      },
    ],
  },
  {
    id: 'W6',
    what: 'remembered passes what was closed since everything was last seen to be shown',
    suite: simulation,
    edits: [{ file: `${journal}ledger.ts`, text: ' OR closed_us >= ?)`,', replacement: ' OR 0 > ?)`,' }],
  },
  {
    id: 'W11',
    what: 'a range of history is cut off before what was collected of it',
    suite: simulation,
    also: ['test/unit/journal/history.test.ts'],
    edits: [
      {
        file: `${journal}history.ts`,
        text: 'Math.max(begun, least ?? range.reached)',
        replacement: '(void begun, least ?? range.reached)',
      },
    ],
  },
  {
    id: 'W12',
    what: 'a range of history is forgotten although a recount is ahead of it',
    suite: simulation,
    edits: [
      {
        file: `${journal}ledger.ts`,
        text: 'if (range.until !== null && reached >= range.until && first >= range.until) return range.until;',
        replacement: 'if (range.until !== null && reached >= range.until) return range.until;',
      },
    ],
  },
  {
    id: 'W15',
    what: 'no poll comes between two pages of a window',
    suite: simulation,
    edits: [
      {
        file: `${collect}collector.ts`,
        text: 'if (!this.#isRunning || this.#inTip || !this.#tipMayCutIn()) return;',
        replacement: 'return;',
      },
    ],
  },
  {
    id: 'W20',
    what: 'the rest of a batch that a sink wants again counts as taken',
    suite: simulation,
    also: ['test/unit/deliver/answers.test.ts'],
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'again === undefined || left.size === 0',
        replacement: 'again === undefined || left.size >= 0',
      },
    ],
  },
  {
    id: 'W21',
    what: 'a batch of which a sink wants some again is sent whole',
    suite: simulation,
    also: ['test/unit/deliver/answers.test.ts'],
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'batch.messages.filter(({ seq }) => left.has(seq)),',
        replacement: 'batch.messages.filter(({ seq }) => left.has(seq) || left.size > 0),',
      },
    ],
  },
  {
    id: 'W22',
    what: 'a source that is back is still said to be gone',
    suite: simulation,
    edits: [
      {
        file: `${journal}sources.ts`,
        text: "if (known.row.mode === 'orphaned' || known.row.mode === 'retired') this.setMode(",
        replacement: "if (known.row.mode === '') this.setMode(",
      },
    ],
  },
  {
    id: 'W249',
    what: 'syslog: a message behind one that was not taken counts as certain',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/session.ts',
        text: 'while (taken.delete(certain)) certain += 1;',
        replacement: 'certain = taken.size;',
      },
    ],
  },
  {
    id: 'W24',
    what: 'what is left in the journal of a source that is gone is stepped over',
    suite: simulation,
    edits: [
      {
        file: 'src/daemon/sink.ts',
        text: 'const gone = journal.sourceIds().filter((id) => !config.sources.some((source) => source.id === id));',
        replacement: 'const gone = journal.sourceIds().filter(() => config.sources.length < 0);',
      },
    ],
  },
  {
    id: 'W30',
    what: 'windows are planned on the clock of the service alone',
    suite: simulation,
    also: ['test/unit/collect/collector.test.ts'],
    edits: [
      {
        file: 'src/source/server-clock.ts',
        text: 'Math.min(bound, Math.floor(this.#local() * 1000))',
        replacement: 'bound',
      },
    ],
  },
  {
    id: 'D1',
    what: 'acknowledged before it is sent',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'const answer = await this.#send(sink, part, stop, abandon);',
        replacement: `await this.#acknowledge(entries, acked, undefined, [], stop);
      const answer = await this.#send(sink, part, stop, abandon);`,
      },
    ],
  },
  {
    id: 'D2',
    what: 'acknowledged past what has no answer yet',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/batches.ts',
        text: 'const through = last ? { seq: last.seq, chain: last.chain } : batch.through;',
        replacement: 'void last;\n  const through = batch.through;',
      },
    ],
  },
  {
    id: 'D3',
    what: 'the whole batch is dead when one message is refused',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'parts.unshift(...halve(part, entries));',
        replacement: `void halve;
        const all = part.messages.map(({ seq }) => ({ seq, code: 'refused', words: answer.refused }));
        await this.#acknowledge(entries, acked, undefined, all, stop);`,
      },
    ],
  },
  {
    id: 'D4',
    what: 'a dead letter without its own copy',
    suite: simulation,
    edits: [
      {
        file: `${journal}progress.ts`,
        text: "const body = Buffer.from(entry.text, 'utf8');",
        replacement: 'const body = Buffer.alloc(0);',
      },
    ],
  },
  {
    id: 'D5',
    what: 'an unknown outcome is taken for taken',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'return { rejections, unknown: { thrown }, rest: batch.messages.slice(certain) };',
        replacement: 'void certain;\n        return { rejections: [], rest: [] };',
      },
    ],
  },
  {
    id: 'D6',
    what: 'a sink is not opened anew after an unknown outcome',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'return { rejections, unknown: { thrown }, rest: batch.messages.slice(certain) };',
        replacement: 'void certain;\n        await this.#pause(thrown, stop);',
      },
    ],
  },
  {
    id: 'D8',
    what: 'entries that are not for a sink are never acknowledged',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'if (!passed) return;',
        replacement: 'if (!passed || passed.messages.length === 0) return;',
      },
    ],
  },
  {
    id: 'D9',
    what: 'trying again reorders',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: `          await this.#pause(thrown, until);
          crowded =`,
        replacement: `          await this.#pause(thrown, until);
          batch = { ...batch, messages: batch.messages.toReversed() };
          crowded =`,
      },
    ],
  },
  {
    // The same where the answer is read as well: only what is overwritten tells then.
    id: 'D13b',
    what: 'index in place of create, and its answer believed',
    suite: elasticsearch,
    edits: [
      { file: 'src/sink/elasticsearch/sink.ts', text: '`{"create":{"_index":', replacement: '`{"index":{"_index":' },
      {
        file: 'src/sink/elasticsearch/sink.ts',
        text: 'body.items.map((item) => membersOf(item).create)',
        replacement: 'body.items.map((item) => ({ ...(item as any).index, status: 201 }))',
      },
      {
        file: 'src/sink/elasticsearch/sink.ts',
        text: "filter_path: 'items.create._id,items.create.status,items.create.error,items.create.failure_store',",
        replacement: '',
      },
    ],
  },
  {
    id: 'D16',
    what: 'the client tries again by itself',
    suite: elasticsearch,
    edits: [{ file: 'src/sink/elasticsearch/client.ts', text: 'maxRetries: 0', replacement: 'maxRetries: 3' }],
  },
  {
    id: 'D18',
    what: 'the first batches after a start count as sure',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'this.#uncertain = this.#acked + uncertainMost;',
        replacement: 'this.#uncertain = this.#acked;',
      },
    ],
  },
  {
    id: 'D18b',
    what: 'what is uncertain is not found out by reading',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/sink.ts',
        text: 'if (!batch.uncertain && !messages.some(isOld)) continue;',
        replacement: 'if (!messages.some(isOld)) continue;',
      },
    ],
  },
  {
    id: 'D19',
    what: 'the result of a search in part is believed',
    suite: elasticsearch,
    edits: [
      { file: 'src/sink/elasticsearch/resolve.ts', text: "allow_partial_search_results: 'false', ", replacement: '' },
      {
        file: 'src/sink/elasticsearch/resolve.ts',
        text: 'timed_out !== false || _shards?.failed !== 0 || total === undefined',
        replacement: 'total === undefined',
      },
    ],
  },
  {
    id: 'D20',
    what: 'the position is kept only by us',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'if (found && found.position.seq > journal.sinkMarks(settings.id).acked) {',
        replacement: 'if (found && found.position.seq < 0) {',
      },
    ],
  },
  {
    id: 'D35',
    what: 'an acknowledgement that is not true yet is taken for a loss',
    suite: splunkHec,
    edits: [
      {
        file: 'src/sink/splunk-hec/acknowledge.ts',
        text: 'if (waiting.size === 0) return;',
        replacement: "if (waiting.size === 0) return;\n    if (answer.size === 0) throw new WaybillError('sink_unknown', 'lost');",
      },
    ],
  },
  {
    id: 'D36',
    what: 'an acknowledgement that was true is asked for again',
    suite: splunkHec,
    edits: [
      {
        file: 'src/sink/splunk-hec/acknowledge.ts',
        text: 'for (const ackId of answer) waiting.delete(ackId);',
        replacement: 'if (answer.size === waiting.size) waiting.clear();',
      },
    ],
  },
  {
    id: 'W256',
    what: 'a file sink writes beside another process',
    suite: 'test/contract/sinks/file-disk.test.ts',
    edits: [
      {
        file: 'src/sink/file/lock.ts',
        text: 'if (!lock) throw blockedAt(',
        replacement: 'if (!lock) return () => undefined;\n    if (lock.memory) throw blockedAt(',
      },
    ],
  },
  {
    id: 'W257',
    what: 'the lock of a file ends with the first life of its sink',
    suite: 'test/contract/sinks/file-disk.test.ts',
    edits: [{ file: 'src/sink/file/lock.ts', text: 'if (own.lives > 0) return;', replacement: '' }],
  },
  {
    id: 'D37',
    what: 'a file is not cut when it is opened',
    suite: 'test/contract/sinks/file-disk.test.ts',
    edits: [{ file: 'src/sink/file/sink.ts', text: 'await handle.truncate(ours.length);', replacement: '' }],
  },
  {
    id: 'D38',
    what: 'the position of a file is written before its lines',
    suite: 'test/contract/sinks/file-disk.test.ts',
    edits: [
      {
        file: 'src/sink/file/sink.ts',
        text: `      for (let written = 0; written < bytes.length;) {`,
        replacement: `      await this.#slots.write({ journal: this.#kept.journal, position: batch.through, file: this.#name, length: this.#length + bytes.length });
      for (let written = 0; written < bytes.length;) {`,
      },
    ],
  },
  {
    id: 'D39',
    what: 'the directory of a file is not synced',
    suite: 'test/contract/sinks/file-disk.test.ts',
    edits: [{ file: 'src/sink/file/sink.ts', text: 'await syncDirectory(dirname(this.#path));', replacement: 'void syncDirectory;' }],
  },
  {
    id: 'W50',
    what: 'a file is put aside before what it holds is acknowledged in the state',
    suite: 'test/contract/sinks/file-rotation.test.ts',
    edits: [
      {
        file: 'src/sink/file/sink.ts',
        text: '    await this.#kept.commitNote(this.#note());\n    await putAside(',
        replacement: '    await putAside(',
      },
    ],
  },
  {
    id: 'W51',
    what: 'the plain file goes before the name of the compressed one is on the disk',
    suite: 'test/contract/sinks/file-rotation.test.ts',
    edits: [{ file: 'src/sink/file/gzip.ts', text: 'await syncDirectory(dirname(plain));', replacement: 'void syncDirectory;' }],
  },
  {
    id: 'W52',
    what: 'what a kill left half compressed is taken for done',
    suite: 'test/contract/sinks/file-rotation.test.ts',
    edits: [{ file: 'src/sink/file/gzip.ts', text: 'const half = `${plain}.gz.part`;', replacement: 'const half = `${plain}.gz`;' }],
  },
  {
    id: 'D21',
    what: 'messages and position in two transactions',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: 'const last = [...(requests.pop() ?? []), this.#progressOf(batch)];',
        replacement: 'const last = requests.pop() ?? [];',
      },
      {
        file: 'src/sink/kafka/index.ts',
        text: 'this.#isUnknown = false;\n    this.#position = batch.through;',
        replacement: `this.#isUnknown = false;
    const second = await owner.begin();
    await second.send([this.#progressOf(batch)]);
    await second.commit();
    this.#position = batch.through;`,
      },
    ],
  },
  {
    id: 'D22',
    what: 'a producer is used again after an error',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: "this.#isUnknown ||= code !== 'sink_blocked' && code !== 'sink_again' && code !== 'sink_refused';\n      await this.#end();",
        replacement: 'void code;',
      },
    ],
  },
  {
    id: 'D23',
    what: 'two requests of a batch under way at once',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: 'for (const request of [...requests, last]) await transaction.send(request);',
        replacement: 'await Promise.all([...requests, last].map((request) => transaction.send(request)));',
      },
    ],
  },
  {
    id: 'D24',
    what: 'a transaction is aborted after an error',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/kafkajs.ts',
        text: 'first = undefined;\n        return {',
        replacement: 'first = undefined;\n        (this as any).current = transaction;\n        return {',
      },
      {
        file: 'src/sink/kafka/index.ts',
        text: `const cut = (): void => {
      client.cut();
    };`,
        replacement: `const cut = (): void => {
      const aborted = (client as any).current?.abort() ?? Promise.resolve();
      aborted.catch(() => undefined).finally(() => client.cut());
    };`,
      },
    ],
  },
  {
    id: 'D25',
    what: 'the position is read before the one before is fenced',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: 'const owner = exactlyOnce ?',
        replacement: `const unfenced: any = { begin: async () => ({ send: async (records: any) => (await client.send(records), 0n), commit: async () => {} }) };
        if (exactlyOnce) await then({ client, owner: unfenced, sent: 0 });
        const owner = exactlyOnce ?`,
      },
      { file: 'src/sink/kafka/index.ts', text: 'await then(life);', replacement: '' },
    ],
  },
  {
    id: 'D26',
    what: 'reading ends before our own "open" record',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: 'key === openKey(id) && value === mark;',
        replacement: 'key !== undefined || value === mark;',
      },
    ],
  },
  {
    id: 'W150',
    what: 'what the sink says of a dead letter that it took is not believed: it is sent again',
    suite: simulation,
    also: ['test/unit/deliver/besides.test.ts'],
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'if (found?.retried !== undefined) await this.besides.found(found.retried);',
        replacement: '',
      },
    ],
  },
  {
    id: 'W152',
    what: 'an adopted topic is not told whose it is',
    suite: kafka,
    edits: [{ file: 'src/sink/kafka/index.ts', text: 'await this.#adopt(owner);', replacement: 'this.#position = this.#kept.position;' }],
  },
  {
    id: 'W161',
    what: 'several requests at once before a cookie says which server has the channel',
    suite: splunkHec,
    edits: [
      {
        file: 'src/sink/splunk-hec/index.ts',
        text: 'this.#hasAnswered ? requestsMost(this.#settings) : 1',
        replacement: 'requestsMost(this.#settings)',
      },
    ],
  },
  {
    id: 'D27',
    what: 'an end of the receiver before ours is taken for a confirmation',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/stream.ts',
        text: "if (!isEnding) reject(new Error('the receiver closed the connection before it had everything'));",
        replacement: '',
      },
      {
        file: 'src/sink/syslog/stream.ts',
        text: "if (isEnding) resolve();\n        else reject(new Error('the receiver closed the connection before it had everything'));",
        replacement: 'resolve();',
      },
    ],
  },
  {
    id: 'D28',
    what: 'a reset behind our end is taken for a confirmation',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/stream.ts',
        text: "tcp.once('error', reject);",
        replacement: "tcp.once('error', (cause) => (isEnding ? resolve() : reject(cause)));",
      },
      {
        file: 'src/sink/syslog/stream.ts',
        text: "stream.once('error', reject);",
        replacement: "stream.once('error', (cause) => (isEnding ? resolve() : reject(cause)));",
      },
    ],
  },
  {
    id: 'D31',
    what: 'answers of RELP are matched by their order',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/session.ts',
        text: 'const waiting = this.#waiting.get(number);',
        replacement: 'number = this.#waiting.keys().next().value ?? number;\n    const waiting = this.#waiting.get(number);',
      },
    ],
  },
  {
    id: 'D33',
    what: 'RELP sends before its opening was answered',
    suite: syslog,
    edits: [{ file: 'src/sink/syslog/relp.ts', text: 'await session.open();', replacement: 'void session.open().catch(() => undefined);' }],
  },
  {
    id: 'W40',
    what: 'what is sent again moves the position of its sink back',
    suite: simulation,
    also: ['test/unit/deliver/besides.test.ts'],
    edits: [
      {
        file: 'src/deliver/replay.ts',
        text: 'batchOf({ messages, bytes }: Prepared, present',
        replacement: 'batchOf({ messages, bytes, through }: Prepared, present',
      },
      {
        file: 'src/deliver/replay.ts',
        text: 'through: present, uncertain: true',
        replacement: 'through: through ?? present, uncertain: true',
      },
    ],
  },
];
