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
    // What vanishes while it is read is not drawn in the simulation: without that a pass from nothing ends as one that goes on.
    id: 'C13',
    what: 'what was received is kept when it exceeds the total',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [{ file: `${collect}read-window.ts`, text: 'seen.clear();', replacement: '' }],
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
    // As C13: here a total falls for good only where the service deletes.
    id: 'C20',
    what: 'the stored total is lowered in silence',
    suite: 'test/unit/journal/ledger.test.ts',
    edits: [
      {
        file: `${journal}ledger.ts`,
        text: "const vanished = before?.reason === 'vanished' || Math.max(before?.seen ?? 0, before?.total ?? 0) > proof.total;",
        replacement: 'const vanished = false as boolean;',
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
    // A try of a gap must fall into the time in which rows are hidden and nobody has noticed: seed 16567.
    id: 'C20c',
    what: 'of a gap what is shown while rows are hidden proves itself',
    suite: 'test/unit/collect/close.test.ts',
    edits: [provesItself],
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
    id: 'C29',
    what: 'identity from logId alone',
    suite: 'test/unit/record/identity.test.ts',
    edits: [{ file: 'src/record/identity.ts', text: 'parts.add(timeOf(record.logTimestamp));', replacement: 'void timeOf;' }],
  },
  {
    id: 'C30',
    what: 'identity with the network',
    suite: 'test/unit/record/identity.test.ts',
    edits: [
      {
        file: 'src/record/identity.ts',
        text: 'parts.add(partOf(record.resultReason));',
        replacement: 'parts.add(partOf(record.resultReason));\n      parts.add(partOf(record.userNetwork));',
      },
    ],
  },
  {
    id: 'C31',
    what: 'logId as a number',
    suite: 'test/unit/record/json.test.ts',
    edits: [
      {
        file: 'src/record/json.ts',
        text: 'return json.parse(text, keepDigits) as JsonValue;',
        replacement: 'void keepDigits;\n      return value;',
      },
    ],
  },
  {
    id: 'C32',
    what: 'new Date(logTimestamp)',
    suite: 'test/unit/record/timestamp.test.ts',
    edits: [
      {
        file: 'src/record/timestamp.ts',
        text: "return typeof value === 'string' ? scan(value)?.us : undefined;",
        replacement: "return typeof value === 'string' && scan(value) !== undefined ? new Date(value).getTime() * 1000 : undefined;",
      },
    ],
  },
  {
    id: 'C33',
    what: 'the fraction is cut to milliseconds in the identity',
    suite: 'test/unit/record/identity.test.ts',
    edits: [
      {
        file: 'src/record/timestamp.ts',
        text: 'let end = digits.length;',
        replacement: 'let end = Math.min(3, digits.length);',
      },
    ],
  },
  {
    id: 'C34',
    what: 'a window owns both of its ends',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [
      {
        file: `${collect}windows.ts`,
        text: 'return window.from <= time && time < window.until;',
        replacement: 'return window.from <= time && time <= window.until;',
      },
    ],
  },
  {
    id: 'C34b',
    what: 'a window owns neither of its ends',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [
      {
        file: `${collect}windows.ts`,
        text: 'return window.from <= time && time < window.until;',
        replacement: 'return window.from < time && time < window.until;',
      },
    ],
  },
  {
    id: 'C35',
    what: 'a half is lost when a window is split',
    suite: 'test/unit/collect/close.test.ts',
    edits: [
      {
        file: `${collect}close.ts`,
        text: 'await this.#record(read.window, read.verdict, 1, false);',
        replacement: 'await this.#record(window, read.verdict, 1, false);',
      },
    ],
  },
  {
    id: 'C36',
    what: 'Retry-After as a date is ignored',
    suite: 'test/unit/source/headers.test.ts',
    edits: [
      {
        file: 'src/source/headers.ts',
        text: 'date === undefined ? undefined : date - now;',
        replacement: 'date === undefined || date > 0 ? undefined : date - now;',
      },
    ],
  },
  {
    id: 'C37',
    what: '403 with Retry-After is taken for a lost right',
    suite: 'test/contract/source.test.ts',
    edits: [
      {
        file: 'src/source/client.ts',
        text: "if (status === 403 && headers['retry-after'] === undefined) {",
        replacement: 'if (status === 403) {',
      },
    ],
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
    id: 'C39',
    what: 'the epoch of the owner is not checked',
    suite: 'test/unit/journal/state.test.ts',
    edits: [{ file: `${journal}store.ts`, text: 'if (owner !== this.epoch) {', replacement: 'if (owner === undefined) {' }],
  },
  {
    id: 'C40',
    what: 'a bare + in sort',
    suite: 'test/contract/source.test.ts',
    edits: [
      {
        file: 'src/source/client.ts',
        text: "return `${baseUrl.replace(/\\/+$/, '')}/logs/${endpoint}?${text.join('&')}`;",
        replacement: "return `${baseUrl.replace(/\\/+$/, '')}/logs/${endpoint}?${text.join('&').replace('%2B', '+')}`;",
      },
    ],
  },
  {
    id: 'C41',
    what: 'a filter by result',
    suite: 'test/contract/source.test.ts',
    edits: [
      {
        file: 'src/source/client.ts',
        text: "['sort', '+logTimestamp'],",
        replacement: "['result', 'AccessGranted'],\n      ['sort', '+logTimestamp'],",
      },
    ],
  },
  {
    id: 'C42',
    what: 'HTML with 200 is an empty page',
    suite: 'test/contract/source.test.ts',
    edits: [
      {
        file: 'src/source/scan.ts',
        text: 'if (!(thrown instanceof Flaw)) throw thrown;',
        replacement:
          'if (!(thrown instanceof Flaw)) throw thrown;\n    if (/html/.test(type)) return { items: [], pagination: undefined };',
      },
    ],
  },
  {
    id: 'C43',
    what: 'the quota is not enforced',
    suite: 'test/unit/journal/state.test.ts',
    edits: [
      {
        file: `${journal}state.ts`,
        text: '`max_page_count = ${room.filePages}`,',
        replacement: '`max_page_count = ${Math.max(1e9, quota)}`,',
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
    // An append fails only at the quota or on a full disk, and runs of the simulation are too short for either.
    id: 'C45',
    what: 'an identity joins its set before COMMIT',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [
      {
        file: `${journal}journal.ts`,
        text: `      try {
        write();`,
        replacement: `      try {
        this.#seen.committed(source.row.n, judged.buckets);
        write();`,
      },
    ],
  },
  {
    // Sets hold a million uids: no run of the simulation comes near that.
    id: 'C46',
    what: 'a bucket is evicted within a page',
    suite: 'test/unit/journal/seen.test.ts',
    edits: [
      {
        file: `${journal}seen.ts`,
        text: 'if (of === source && added.has(bucket ?? NaN)) continue;',
        replacement: 'void [of, bucket, source];',
      },
    ],
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
    id: 'C53',
    what: 'what is remembered follows the live range alone',
    suite: 'test/unit/journal/remembered.test.ts',
    edits: [
      {
        file: `${journal}remembered.ts`,
        text: '.filter(({ until, remembered }) => until === null || remembered < until)',
        replacement: '.filter(({ until }) => until === null)',
      },
    ],
  },
  // Not of the design's list: what was added beside it.
  {
    id: 'W1',
    what: 'a hand count that always agrees',
    suite: 'test/unit/collect/hand-count.test.ts',
    edits: [{ file: 'src/collect/hand-count.ts', text: 'agrees: total === uids.size', replacement: 'agrees: true' }],
  },
  {
    id: 'W2',
    what: 'history is read before what is due',
    suite: 'test/unit/collect/right-of-way.test.ts',
    edits: [
      {
        file: 'src/collect/collector.ts',
        text: 'if (await this.#closer.again(serverNow, signal)) return true;',
        replacement: 'if ((await this.backfiller.turn(serverNow, signal)) || (await this.#closer.again(serverNow, signal))) return true;',
      },
    ],
  },
  {
    id: 'W3',
    what: 'gaps of reason filter in a row are forgotten by a restart',
    suite: 'test/unit/collect/collector.test.ts',
    edits: [{ file: 'src/collect/collector.ts', text: 'this.#closer.lookBack();', replacement: 'void this.#closer;' }],
  },
  {
    id: 'W4',
    what: 'dead letters are not held against the journal',
    suite: 'test/unit/journal/audit.test.ts',
    edits: [{ file: 'src/journal/audit.ts', text: 'this.#lookAtLetters(row, body);', replacement: 'void [body, this.#lookAtLetters];' }],
  },
  {
    id: 'W5',
    what: 'the answers that confirm a restored clock are left to polls',
    suite: 'test/unit/source/server-clock.test.ts',
    edits: [{ file: 'src/source/server-clock.ts', text: 'this.#restored === undefined ? 0 : agreeing - this.#count', replacement: '0' }],
  },
  {
    id: 'W6',
    what: 'remembered passes what was closed since everything was last seen to be shown',
    suite: simulation,
    edits: [{ file: `${journal}ledger.ts`, text: ' OR closed_us >= ?)`,', replacement: ' OR 0 > ?)`,' }],
  },
  {
    id: 'W7',
    what: 'a page without usual fields is taken for poor by itself after one look at its witness',
    suite: 'test/unit/collect/gate.test.ts',
    edits: [
      {
        file: `${collect}gate.ts`,
        text: 'if (!(await this.#isPoorByItself(answer, missing, signal))) return false;',
        replacement: 'for (const { uid } of answer.records) this.#acquitted.add(uid);',
      },
    ],
  },
  {
    id: 'W8',
    what: 'what a page leaves of the quota is used by the next page',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [{ file: `${journal}journal.ts`, text: 'fresh.length > 0 ? pauseAbove : undefined', replacement: 'undefined' }],
  },
  {
    id: 'W9',
    what: 'dead letters of a sink that is ahead take the last of the quota',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [
      {
        file: `${journal}progress.ts`,
        text: 'deadLetters.length === 0 || this.#isLast(id) ? undefined : lettersBelow',
        replacement: 'undefined',
      },
    ],
  },
  {
    id: 'W10',
    what: 'the first witness of a field waits for the next minute',
    suite: 'test/unit/collect/gate.test.ts',
    edits: [{ file: `${collect}gate.ts`, text: 'if (isFirst) await this.#parts.learned?.();', replacement: 'void isFirst;' }],
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
    id: 'W13',
    what: 'how far a range of history was collected is not kept',
    suite: 'test/unit/journal/history.test.ts',
    edits: [{ file: `${journal}sources.ts`, text: 'this.#setCollected.run(time, source.row.n, range.from);', replacement: '' }],
  },
  {
    id: 'W14',
    what: 'polls that take longer than they are apart leave a window one page each',
    suite: 'test/unit/collect/right-of-way.test.ts',
    edits: [{ file: `${collect}collector.ts`, text: 'Math.min(ended - began, cutInMostMs)', replacement: '0 * cutInMostMs' }],
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
    // In the simulation seed 816 is the first whose source is gone while it is on hold.
    id: 'W23',
    what: 'a source that is back has forgotten its hold',
    suite: 'test/unit/journal/state.test.ts',
    edits: [{ file: `${journal}sources.ts`, text: "known.row.hold === undefined ? 'normal' : 'hold'", replacement: "'normal'" }],
  },
  {
    id: 'W240',
    what: 'a shortened record is written once more for each of its texts',
    suite: 'test/unit/encode/shorten.test.ts',
    edits: [{ file: 'src/encode/shorten.ts', text: 'const middle = Math.floor((low + high) / 2);', replacement: 'const middle = low;' }],
  },
  {
    id: 'W241',
    what: 'digits that a number kept are cut like a text',
    suite: 'test/unit/encode/shorten.test.ts',
    edits: [
      { file: 'src/encode/shorten.ts', text: ' || isRawNumber(value as JsonValue)) return found;', replacement: ') return found;' },
      {
        file: 'src/encode/shorten.ts',
        text: "import { isRawNumber, parseRecord } from '../record/json.ts';",
        replacement: "import { parseRecord } from '../record/json.ts';",
      },
    ],
  },
  {
    id: 'W242',
    what: 'a receiver that takes nothing makes dead letters of what is sent to it',
    suite: 'test/unit/deliver/answers.test.ts',
    edits: [{ file: 'src/deliver/loop.ts', text: 'const blamed = new Set(amid);', replacement: 'const blamed = new Set(amid && seqs);' }],
  },
  {
    id: 'W243',
    what: 'syslog: every message that a receiver of RELP does not take is to blame',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/relp.ts',
        text: 'const amid = seqs.filter((seq) => seq < lastTaken);',
        replacement: 'const amid = seqs.filter((seq) => seq < lastTaken || seq > 0);',
      },
    ],
  },
  {
    id: 'W244',
    what: 'a batch of which nothing was taken counts as taken',
    suite: 'test/unit/deliver/answers.test.ts',
    edits: [{ file: 'src/deliver/loop.ts', text: 'if (taken === 0) {', replacement: 'if (taken < 0) {' }],
  },
  {
    id: 'W245',
    what: 'a receiver that was too slow for a batch gets as much again',
    suite: 'test/unit/deliver/slow.test.ts',
    edits: [
      {
        file: 'src/deliver/batch-limit.ts',
        text: 'if (this.records > 1) this.#share *=',
        replacement: 'if (this.records < 1) this.#share *=',
      },
    ],
  },
  {
    id: 'W246',
    what: 'a batch grows again though the receiver is slow',
    suite: 'test/unit/deliver/slow.test.ts',
    edits: [{ file: 'src/deliver/batch-limit.ts', text: '<= this.#deadline / 2)', replacement: '<= this.#deadline * 100)' }],
  },
  {
    id: 'W247',
    what: 'an answer gives a batch no more time',
    suite: 'test/unit/deliver/slow.test.ts',
    edits: [{ file: 'src/deliver/deadline.ts', text: '    since = clock.monotonic();\n  };', replacement: '    void clock;\n  };' }],
  },
  {
    id: 'W248',
    what: 'what the receiver said to have before a break is sent again',
    suite: 'test/unit/deliver/slow.test.ts',
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'rest: batch.messages.slice(certain) };',
        replacement: 'rest: batch.messages.slice(0 * certain) };',
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
    id: 'W250',
    what: 'plain text where TLS is expected is told in the words of OpenSSL',
    suite: syslog,
    also: [splunkHec, elasticsearch],
    edits: [{ file: 'src/connect/plain-port.ts', text: 'if (openSsl < 0 ||', replacement: 'if (openSsl > -2 ||' }],
  },
  {
    id: 'W251',
    what: 'syslog: a name that does not resolve counts as connected by UDP',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/datagram.ts',
        text: '(cause ? reject(cause) : resolve())',
        replacement: '(cause && cause.message === "" ? reject(cause) : resolve())',
      },
    ],
  },
  {
    id: 'W252',
    what: 'syslog: the longest header is that of a small number',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/message.ts',
        text: 'new Header(settings, sequenceMost - 1)',
        replacement: 'new Header(settings, sequenceMost)',
      },
    ],
  },
  {
    id: 'W253',
    what: 'syslog: check ends a connection before the receiver can end it by itself',
    suite: syslog,
    edits: [{ file: 'src/sink/syslog/socket.ts', text: 'export const quietMs = 250;', replacement: 'export const quietMs = 0;' }],
  },
  {
    id: 'W254',
    what: 'syslog: nobody is told that a slow receiver reads',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/socket.ts',
        text: '    reads();\n    [piece, bytes] = [[], 0];',
        replacement: '    [piece, bytes] = [[], 0];',
      },
      { file: 'src/sink/syslog/socket.ts', text: 'if (queue < before) reads();', replacement: 'void [before, reads];' },
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
    // Both clocks are ahead at once: the simulation does not draw that.
    id: 'W31',
    what: 'what was closed by clocks that were ahead is not looked at again',
    suite: 'test/unit/collect/collector.test.ts',
    edits: [
      {
        file: `${collect}collector.ts`,
        text: 'await this.#closer.recounter.closedAhead(serverNow);',
        replacement: 'this.#latest = serverNow;',
      },
    ],
  },
  {
    id: 'W32',
    what: 'a hold ends before what else shrank is accepted',
    suite: 'test/unit/collect/close.test.ts',
    edits: [{ file: `${collect}recount.ts`, text: 'return shrunk !== undefined || listed.length === 0;', replacement: 'return true;' }],
  },
  {
    id: 'W90',
    what: 'what a hold found to hold fewer besides is not counted again when it ends',
    suite: 'test/unit/collect/close.test.ts',
    edits: [{ file: `${collect}recount.ts`, text: '[...windows, ...shrunk]', replacement: 'windows' }],
  },
  {
    id: 'W91',
    what: 'what a hold listed is said to be proven as soon as the hold has ended',
    suite: 'test/unit/collect/close.test.ts',
    edits: [
      {
        file: `${collect}recount.ts`,
        text: "{ reason: 'reread', words: releasedWords,",
        replacement: '{ reason: undefined, words: undefined,',
      },
    ],
  },
  {
    id: 'W92',
    what: 'a page that cannot be read ends the pass where smaller ones are refused',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [
      {
        file: `${collect}pass.ts`,
        text: 'if (larger) {',
        replacement: 'if (larger && size === granted) {',
      },
    ],
  },
  {
    id: 'W93',
    what: 'twins between which a page ends are not named',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [{ file: `${collect}read-window.ts`, text: 'usual.isRepeated && size > 2', replacement: 'usual.isRepeated && size < 2' }],
  },
  {
    id: 'W130',
    what: 'pages that bring nothing new, in another order each time, never end a pass',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [{ file: `${collect}pass.ts`, text: 'vain = isVain && length > 0 ? vain + 1 : 0;', replacement: 'vain = 0;' }],
  },
  {
    id: 'W131',
    what: 'a pass goes on as long as now and then a page brings something new',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [{ file: `${collect}pass.ts`, text: 'pages < options.pagesMax && !isExhausted()', replacement: 'pages < options.pagesMax' }],
  },
  {
    id: 'W132',
    what: 'a page that says another number than was asked for is thrown away',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [{ file: `${collect}pass.ts`, text: 'if (isVain && answer.page !== undefined', replacement: 'if (answer.page !== undefined' }],
  },
  {
    id: 'W192',
    what: 'a page with the wrong number that brings nothing ends the pass before the end that is counted',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [{ file: `${collect}pass.ts`, text: ' && (isPast || repeats > 0)) return;', replacement: ') return;' }],
  },
  {
    id: 'W133',
    what: 'a window of which the query is refused for its width is never split',
    suite: 'test/unit/collect/too-wide.test.ts',
    edits: [{ file: `${collect}read-window.ts`, text: 'refused.isDeep || (await', replacement: 'refused.isDeep && (await' }],
  },
  {
    id: 'W134',
    what: 'a window of which no query is answered is split to seconds',
    suite: 'test/unit/collect/too-wide.test.ts',
    edits: [
      {
        file: `${collect}read-window.ts`,
        text: 'const [earliest, latest] = endsOf(window);',
        replacement: 'const [earliest, latest] = endsOf(window);\n  if (pageSize > 0) return true;',
      },
    ],
  },
  {
    id: 'W135',
    what: 'a gap is divided though the service counts less than it has shown',
    suite: 'test/unit/collect/too-wide.test.ts',
    edits: [
      { file: `${collect}close.ts`, text: 'return total !== undefined && total >= mostOf(window);', replacement: 'return true || total;' },
    ],
  },
  {
    id: 'W136',
    what: 'the upper part of a gap that is divided is left out',
    suite: 'test/unit/collect/too-wide.test.ts',
    edits: [
      { file: `${collect}close.ts`, text: '[lower, upperHalf(window, lower)].map', replacement: '[lower].map' },
      {
        file: `${journal}ledger.ts`,
        text: 'before.until_us !== gap.until || !isTiled',
        replacement: 'before.until_us !== gap.until || (isTiled && false)',
      },
    ],
  },
  {
    id: 'W137',
    what: 'a width that was refused is wished for again at once',
    suite: 'test/unit/collect/widths.test.ts',
    edits: [
      {
        file: `${collect}widths.ts`,
        text: 'value >= this.least && this.#left > 0',
        replacement: 'value >= this.least && this.#left < 0',
      },
    ],
  },
  {
    id: 'W190',
    what: 'a window that was once too crowded keeps all behind it narrow for ever',
    suite: 'test/unit/collect/widths.test.ts',
    edits: [{ file: `${collect}widths.ts`, text: 'value >= this.least && this.#left > 0', replacement: 'value >= this.least' }],
  },
  {
    id: 'W191',
    what: 'a total is believed although one answer holds an identity twice',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [
      {
        file: `${collect}read-window.ts`,
        text: 'total === seen.size && shared.size > 0',
        replacement: 'total === seen.size && shared.size < 0',
      },
    ],
  },
  {
    id: 'W138',
    what: 'a poll that is not answered in time is asked for ever',
    suite: 'test/unit/collect/too-wide.test.ts',
    edits: [
      {
        file: `${collect}ask.ts`,
        text: '(isEnough() || (await this.#isPlainAnswered(request, failures, signal)))',
        replacement: '(isEnough() || (failures > 200 && (await this.#isPlainAnswered(request, failures, signal))))',
      },
    ],
  },
  {
    id: 'W33',
    what: 'a window in doubt is said to be final',
    suite: 'test/unit/collect/close.test.ts',
    edits: [
      {
        file: `${journal}queries/ledger.ts`,
        text: "row.next_us === null && row.reason !== 'reread'",
        replacement: 'row.next_us === null',
      },
    ],
  },
  {
    id: 'W80',
    what: 'a configured source that has never answered does not count for the report',
    suite: 'test/unit/journal/ledger-report.test.ts',
    edits: [
      {
        file: 'src/journal/queries/ledger.ts',
        text: 'return [...known, ...unbegun]',
        replacement: 'return [...known, ...unbegun.slice(0, 0)]',
      },
    ],
  },
  {
    id: 'W81',
    what: 'what a hold lists counts as proven',
    suite: 'test/unit/journal/ledger-report.test.ts',
    edits: [
      {
        file: 'src/journal/queries/ledger.ts',
        text: 'held.has(row.from_us) ? inDoubt(row) : row',
        replacement: 'held.has(-1) ? inDoubt(row) : row',
      },
    ],
  },
  {
    id: 'W100',
    what: 'the windows of a report are read as they are now, not as they were when its sums were made',
    suite: 'test/unit/daemon/reports.test.ts',
    edits: [
      {
        file: 'src/journal/queries/window-copy.ts',
        text: 'FROM temp.report_windows WHERE rowid > ? AND rowid <= ? ORDER BY rowid',
        replacement: 'FROM (SELECT *, row_number() OVER (ORDER BY from_us) AS n FROM main.windows) WHERE n > ? AND n <= ?',
      },
    ],
  },
  {
    id: 'W101',
    what: 'a reader of a report that takes nothing any more keeps the next one waiting',
    suite: 'test/unit/daemon/reports.test.ts',
    edits: [{ file: 'src/daemon/admin/report-maker.ts', text: '.then(giveUp, () => undefined)', replacement: '.catch(() => giveUp.name)' }],
  },
  {
    id: 'W102',
    what: 'what is not for a sink waits ten seconds at rest before the ledger knows that it is passed over',
    suite: 'test/unit/deliver/acknowledge.test.ts',
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'this.#flushAt ??= clock.monotonic() + groupedMs',
        replacement: 'this.#flushAt ??= clock.monotonic() + 10 * groupedMs',
      },
    ],
  },
  {
    id: 'W82',
    what: 'a gap names no record that the service has twice',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [{ file: `${collect}read-window.ts`, text: 'here.add(uid);', replacement: 'void here;' }],
  },
  {
    id: 'W83',
    what: 'the end of a hold is written as before the act that caused it',
    suite: 'test/unit/collect/close.test.ts',
    edits: [
      { file: 'src/journal/journal.ts', text: 'Math.max(now, this.#operations.last(sourceId, row.hold.since) ?? 0)', replacement: 'now' },
    ],
  },
  {
    id: 'W84',
    what: 'a record that moved between two pages is named as one that the service has twice',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [
      { file: `${collect}read-window.ts`, text: '    const here = new Set<string>();\n', replacement: '' },
      {
        file: `${collect}read-window.ts`,
        text: 'const twins = new Set<string>();',
        replacement: 'const twins = new Set<string>();\n  const here = new Set<string>();',
      },
    ],
  },
  {
    id: 'W60',
    what: 'what was rightly forgotten is missed when an older range is added',
    suite: 'test/unit/journal/audit.test.ts',
    edits: [
      {
        file: `${journal}remembered.ts`,
        text: 'return ranges.some(({ from, until, remembered }) => {',
        replacement: 'const least = leastRemembered(ranges);\n  return ranges.some(({ from, until }) => {\n    const remembered = least;',
      },
    ],
  },
  {
    id: 'W61',
    what: 'what a poll or a neighbour brings of a range of history is collected before that is read',
    suite: 'test/unit/journal/history.test.ts',
    edits: [
      {
        file: `${journal}judge.ts`,
        text: 'return until !== null && time >= reached &&',
        replacement: 'return until === 0 && time >= reached &&',
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
    id: 'D7',
    what: 'one sink after another: a slow one delays the others',
    suite: 'test/unit/deliver/answers.test.ts',
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'const groupedMs = 1_000;',
        replacement: 'const groupedMs = 1_000;\nlet turn: Promise<unknown> = Promise.resolve();',
      },
      {
        file: 'src/deliver/loop.ts',
        text: 'return sink.send(batch, signal, heard);',
        replacement: `const mine = turn.then(() => sink.send(batch, signal, heard));
          turn = mine.catch(() => undefined);
          return mine;`,
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
    id: 'D10',
    what: 'an orphaned sink no longer holds back pruning',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [
      { file: `${journal}journal.ts`, text: "filter((s) => s.state !== 'retired')", replacement: "filter((s) => s.state === 'active')" },
    ],
  },
  {
    id: 'D11',
    what: 'another destination under the same id is accepted',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [
      {
        file: `${journal}progress.ts`,
        text: 'known.type === type && known.destination === destination',
        replacement: "known.type === type && destination !== ''",
      },
    ],
  },
  {
    id: 'D12',
    what: 'how long a sink asks to wait is ignored',
    suite: 'test/unit/deliver/answers.test.ts',
    edits: [
      {
        file: 'src/deliver/patience.ts',
        text: 'const asked = thrown instanceof WaybillError ? thrown.retryAfterMs : undefined;',
        replacement: 'const asked = undefined as number | undefined;',
      },
    ],
  },
  {
    id: 'D13',
    what: 'index in place of create',
    suite: elasticsearch,
    edits: [{ file: 'src/sink/elasticsearch/sink.ts', text: '`{"create":{"_index":', replacement: '`{"index":{"_index":' }],
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
    id: 'D14',
    what: 'a uid that is there already is taken for a failure',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/items.ts',
        text: "if (status === 409 && error?.type === 'version_conflict_engine_exception') return 'there';",
        replacement: "if (status === 409) return 'refused';",
      },
    ],
  },
  {
    id: 'D15',
    what: 'HTTP 200 is taken for all items',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/items.ts',
        text: "if (status === undefined) return 'strange';",
        replacement: "if (status !== -1) return 'taken';",
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
    id: 'D17',
    what: 'an index is named from now',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/settings.ts',
        text: 'new Date(time / 1000).toISOString()',
        replacement: 'new Date().toISOString()',
      },
    ],
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
    id: 'D19b',
    what: 'only the answer of a search tells that it is a part, and is believed',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/resolve.ts',
        text: 'timed_out !== false || _shards?.failed !== 0 || total === undefined',
        replacement: 'total === undefined',
      },
    ],
  },
  {
    id: 'W34',
    what: 'records of a lost state are not looked for in a stream that was there before',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/sink.ts',
        text: 'mark !== null && (undated === true || Math.floor(time / 1000) <= mark)',
        replacement: 'mark !== null && undated === true',
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
    id: 'D34',
    what: 'a 200 of Splunk with the code of something else is taken for a success',
    suite: splunkHec,
    also: ['test/unit/sink/splunk-hec-reply.test.ts'],
    edits: [
      {
        file: 'src/sink/splunk-hec/reply.ts',
        text: "return isSuccess ? meaning : 'unknown';",
        replacement: "return isSuccess ? meaning : 'taken';",
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
    id: 'W255',
    what: 'only an item that was taken is held against its document',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/sink.ts',
        text: 'const isOther = item._id !== uid &&',
        replacement: "const isOther = verdict === 'taken' && item._id !== uid &&",
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
    id: 'W258',
    what: 'words of the server are shown with what we sent it',
    suite: elasticsearch,
    edits: [{ file: 'src/sink/elasticsearch/items.ts', text: '{ reason: quote(reason, 1_000) }', replacement: '{ reason }' }],
  },
  {
    id: 'W259',
    what: 'an answer of Elasticsearch in an odd form is an error of the program',
    suite: elasticsearch,
    edits: [
      {
        file: 'src/sink/elasticsearch/client.ts',
        text: 'if (cause instanceof WaybillError) throw cause;',
        replacement: 'if (code !== undefined) throw cause;',
      },
    ],
  },
  {
    id: 'W261',
    what: 'standard output is written to behind what its reader has not taken',
    suite: 'test/contract/sinks/stdout.test.ts',
    edits: [{ file: 'src/sink/stdout.ts', text: 'await untilTaken(id, signal);', replacement: 'void untilTaken;' }],
  },
  {
    id: 'W262',
    what: 'an answer of a broker may be of any length',
    suite: kafka,
    edits: [
      { file: 'src/sink/kafka/answers.ts', text: 'if (this.#left > answerMost) return', replacement: 'if (this.#left > 2 ** 32) return' },
    ],
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
    id: 'W53',
    what: 'the first line is glued to what somebody else did not end',
    suite: 'test/contract/sinks/file-rotation.test.ts',
    edits: [{ file: 'src/sink/file/disk.ts', text: 'return last[0] !== 0x0a;', replacement: 'return false;' }],
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
    id: 'W193',
    what: 'a sink that has everything stays in trouble until the next record',
    suite: 'test/unit/deliver/views.test.ts',
    edits: [{ file: 'src/deliver/loop.ts', text: "if (this.#patience.state !== 'active') this.#patience.recovered();", replacement: '' }],
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
    id: 'W151',
    what: 'a dead letter that is sent again leaves no word in the progress record',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/index.ts',
        text: "besides === 'retry' ? messages[0]?.seq : undefined",
        replacement: 'void [besides, messages]',
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
    id: 'W153',
    what: 'an adopting record is one like any other: what stood before it still counts',
    suite: kafka,
    edits: [
      {
        file: 'src/sink/kafka/progress.ts',
        text: 'progress.adopted === true && progress.journal === journal',
        replacement: 'progress.adopted === true && progress.journal === `not ${journal}`',
      },
    ],
  },
  {
    id: 'W154',
    what: 'what is left of a batch taken in part is given up when the daemon is to stop',
    suite: 'test/unit/deliver/acknowledge.test.ts',
    edits: [{ file: 'src/deliver/loop.ts', text: 'if (left.size < batch.messages.length) until = abandon;', replacement: '' }],
  },
  {
    id: 'W155',
    what: 'tries of single messages are not counted: one that is never taken is wanted for ever',
    suite: 'test/unit/deliver/answers.test.ts',
    edits: [
      { file: 'src/deliver/loop.ts', text: 'if (count < tries) return [];', replacement: 'if (count < tries || tries > 0) return [];' },
    ],
  },
  {
    id: 'W156',
    what: 'another type of sink under the same id goes on where the one before was',
    suite: 'test/unit/cli/check-state.test.ts',
    edits: [
      {
        file: 'src/journal/progress.ts',
        text: 'known.type === type && known.destination === destination',
        replacement: 'known.destination === destination',
      },
    ],
  },
  {
    id: 'W157',
    what: 'a key of another certificate is for OpenSSL to complain of',
    suite: 'test/contract/sinks/certificates.test.ts',
    edits: [{ file: 'src/connect/trust.ts', text: 'if (isPair) return;', replacement: 'if (isPair || chain) return;' }],
  },
  {
    id: 'W158',
    what: 'nobody is told which certificate the server of a sink shows',
    suite: 'test/contract/sinks/certificates.test.ts',
    edits: [{ file: 'src/connect/connection.ts', text: 'this.#settings.shown?.(this.#target.host, found);', replacement: '' }],
  },
  {
    id: 'W159',
    what: 'two sinks of kafka may name one progress topic',
    suite: 'test/unit/config/sink-targets.test.ts',
    edits: [{ file: 'src/config/sink-targets.ts', text: 'other.name === name &&', replacement: 'other.name !== name &&' }],
  },
  {
    id: 'W160',
    what: 'what is full among several requests at once counts as taken',
    suite: splunkHec,
    edits: [
      {
        file: 'src/sink/splunk-hec/index.ts',
        text: 'return { rejections, again: { ...first, code, seqs: again.flatMap(({ seqs }) => seqs), retryAfterMs, isAtOnce } };',
        replacement: 'return code && isAtOnce && retryAfterMs !== undefined ? { rejections, again: first } : { rejections };',
      },
    ],
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
    id: 'D29',
    what: 'messages are parted by line breaks where their length should say it',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/stream.ts',
        text: 'messages.map((message) => frame(framing, this.#header.of(message), message.bytes))',
        replacement:
          "messages.map((message) => frame(framing === 'datagram' ? framing : 'newline', this.#header.of(message), message.bytes))",
      },
    ],
  },
  {
    id: 'D30',
    what: 'lengths of RELP count characters',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/session.ts',
        text: '${number} ${name} ${data.length}',
        replacement: "${number} ${name} ${Buffer.from(data).toString('utf8').length}",
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
    id: 'D32',
    what: 'numbers of RELP go on behind 999,999,999',
    suite: syslog,
    edits: [
      {
        file: 'src/sink/syslog/session.ts',
        text: 'this.#number = number === numberMost ? 1 : number + 1;',
        replacement: 'void numberMost;\n    this.#number = number + 1;',
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
    // No run of the simulation has 10,000 entries.
    id: 'D40',
    what: 'a batch is sent beyond what is committed and 10,000',
    suite: 'test/unit/deliver/acknowledge.test.ts',
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: 'if (part.through.seq > journal.sinkMarks(settings.id).acked + uncertainMost) await this.#flush(stop);',
        replacement: '',
      },
    ],
  },
  {
    id: 'D41',
    what: 'a rejection is acknowledged within a second, and the next batch sent before',
    suite: simulation,
    edits: [
      {
        file: 'src/deliver/loop.ts',
        text: '#flushAt: number | undefined;',
        replacement: '#flushAt: number | undefined;\n  #owed: any;',
      },
      {
        file: 'src/deliver/loop.ts',
        text: 'if (rejections.length === 0 && settings.resolvable) {',
        replacement: `if (settings.resolvable && (this.#owed || letters.length > 0)) {
      const [before, taken] = [this.#owed?.letters ?? [], acknowledgement.taken ?? this.#owed?.taken];
      this.#owed = { acked: acknowledgement.acked, taken, letters: [...before, ...letters] };
      this.#flushAt = Math.min(this.#flushAt ?? Infinity, clock.monotonic() + groupedMs);
      return;
    }
    if (settings.resolvable) {`,
      },
      {
        file: 'src/deliver/loop.ts',
        text: 'await this.#commit(() => this.#parts.journal.flush(), stop);',
        replacement: `const owed = this.#owed;
    const write = () => (owed ? this.#parts.journal.acknowledge(this.#parts.settings.id, owed, owed.letters) : this.#parts.journal.flush());
    await this.#commit(write, stop);
    this.#owed = undefined;`,
      },
      {
        file: 'src/deliver/loop.ts',
        text: 'journal.acknowledgeLater(settings.id, { acked: passed.through.seq, taken: undefined });',
        replacement: `if (this.#owed) this.#owed.acked = passed.through.seq;
    else journal.acknowledgeLater(settings.id, { acked: passed.through.seq, taken: undefined });`,
      },
      {
        file: 'src/deliver/loop.ts',
        text: 'if (found) await this.#compare(found.position);',
        replacement: 'this.#owed = undefined;\n    if (found) await this.#compare(found.position);',
      },
    ],
  },
  {
    id: 'D42',
    what: 'what is replayed counts as sure',
    suite: 'test/unit/deliver/besides.test.ts',
    edits: [
      {
        file: 'src/deliver/replay.ts',
        text: "return { messages, bytes, through: present, uncertain: true, besides: 'replay' };",
        replacement: "return { messages, bytes, through: present, uncertain: false, besides: 'replay' };",
      },
    ],
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
  {
    id: 'W41',
    what: 'a dead letter that is refused again is gone',
    suite: 'test/unit/deliver/besides.test.ts',
    edits: [{ file: `${journal}letters.ts`, text: 'if (fate.taken) return this.#remove', replacement: 'return this.#remove' }],
  },
  {
    id: 'W42',
    what: 'a retired sink that is put back goes on from where it was, though that is pruned',
    suite: 'test/unit/journal/progress.test.ts',
    edits: [
      { file: `${journal}progress.ts`, text: "if (known?.state === 'retired') this.#begin(known, from, fromTime);", replacement: '' },
    ],
  },
  {
    id: 'W70',
    what: 'a short first page is thrown away when the page size is guessed from it',
    suite: 'test/unit/collect/pass.test.ts',
    also: ['test/unit/collect/read-window.test.ts'],
    edits: [
      {
        file: `${collect}pass.ts`,
        text: 'guessedFrom = size;',
        replacement: 'restart(length);\n        continue;',
      },
    ],
  },
  {
    id: 'W71',
    what: 'a short page ends a pass though the service counts more behind it',
    suite: 'test/unit/collect/pass.test.ts',
    edits: [{ file: `${collect}pass.ts`, text: 'const isLast = isShort && !isCounted();', replacement: 'const isLast = isShort;' }],
  },
  {
    id: 'W72',
    what: 'a page that is refused for its depth makes all pages smaller',
    suite: 'test/unit/collect/read-window.test.ts',
    also: ['test/unit/collect/pass.test.ts'],
    edits: [
      {
        file: `${collect}pass.ts`,
        text: "const isTooDeep = code === 'page_refused' && offset > 0 && !larger;",
        replacement: 'const isTooDeep = offset < 0;',
      },
    ],
  },
  {
    id: 'W73',
    what: 'a query that alone is refused is waited for',
    suite: 'test/unit/collect/read-window.test.ts',
    also: ['test/unit/collect/pass.test.ts'],
    edits: [{ file: `${collect}pass.ts`, text: 'if (refusals >= refusalsMost && (await', replacement: 'if (refusals < 0 && (await' }],
  },
  {
    id: 'W74',
    what: 'a service that refuses pages of one record is never counted',
    suite: 'test/unit/collect/read-window.test.ts',
    edits: [
      {
        file: `${collect}ask.ts`,
        text: 'const leastSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];',
        replacement: 'const leastSizes = [1];',
      },
    ],
  },
  {
    id: 'W75',
    what: 'tip stays before a second that the service does not page through',
    suite: 'test/unit/collect/tip.test.ts',
    edits: [
      {
        file: `${collect}tip.ts`,
        text: 'if (newest === undefined || (pages < pagesMost && unreadable.length === 0)) return undefined;',
        replacement: 'if (newest === undefined || pages < pagesMost) return undefined;',
      },
    ],
  },
  {
    id: 'W120',
    what: 'the items of a page are not counted: each of millions is made into an object',
    suite: 'test/unit/source/scan.test.ts',
    edits: [{ file: 'src/source/scan.ts', text: 'if (items.length === itemsMax) throw', replacement: 'if (items.length < 0) throw' }],
  },
  {
    id: 'W121',
    what: 'the values within items are not counted: one record of millions is parsed',
    suite: 'test/unit/source/scan.test.ts',
    edits: [{ file: 'src/source/scan.ts', text: '          this.#values = values;\n', replacement: '' }],
  },
  {
    id: 'W122',
    what: 'a field of a million characters is put together one by one',
    suite: 'test/unit/record/glance.test.ts',
    edits: [{ file: 'src/record/glance.ts', text: ' || this.#at - from > textMax', replacement: '' }],
  },
  {
    id: 'W110',
    what: 'a weekly calibration is waited for',
    suite: 'test/unit/daemon/source.test.ts',
    also: ['test/unit/daemon/profile.test.ts'],
    edits: [
      {
        file: 'src/daemon/source/calibration.ts',
        text: 'this.#use(await this.#parts.askOnce(signal))',
        replacement: 'this.#use(await this.#parts.ask(signal))',
      },
    ],
  },
  {
    id: 'W111',
    what: 'a service that refuses the question without times is asked it for ever',
    suite: 'test/unit/daemon/source.test.ts',
    also: ['test/unit/source/everything.test.ts'],
    edits: [
      {
        file: 'src/source/everything.ts',
        text: "if (code === 'page_refused') return true;",
        replacement: "if (code === 'page_refused') return false;",
      },
    ],
  },
  {
    id: 'W112',
    what: 'the first record of the last day is taken for the earliest of all',
    suite: 'test/unit/daemon/source.test.ts',
    edits: [{ file: 'src/daemon/source/start.ts', text: 'if (everything.isWhole) return;', replacement: 'if (againMs > 0) return;' }],
  },
  {
    id: 'W113',
    what: 'without a Date the bound is not kept over a restart',
    suite: 'test/unit/daemon/source.test.ts',
    also: ['test/unit/source/server-clock.test.ts'],
    edits: [
      {
        file: 'src/source/server-clock.ts',
        text: 'if (profile?.dated === false && profile.bound !== undefined)',
        replacement: 'if (profile?.dated === true && profile.bound !== undefined)',
      },
    ],
  },
  {
    id: 'W114',
    what: 'a bound that was kept before a kill stands although windows were closed later',
    suite: 'test/unit/daemon/source.test.ts',
    edits: [{ file: 'src/daemon/source/source.ts', text: 'Math.max(latest, closed)', replacement: 'Math.min(latest, closed)' }],
  },
  {
    id: 'W115',
    what: 'start: now trusts one Date that is far behind',
    suite: 'test/unit/daemon/source.test.ts',
    edits: [
      {
        file: 'src/daemon/source/start.ts',
        text: 'Math.abs(now() - clock.now() * 1000) > apartMost',
        replacement: 'now() - clock.now() * 1000 > apartMost',
      },
    ],
  },
  {
    id: 'W116',
    what: 'closing a state that failed for good throws once more',
    suite: 'test/unit/journal/state.test.ts',
    edits: [
      { file: `${journal}journal.ts`, text: 'if (!this.#store.isBroken) this.progress.flush();', replacement: 'this.progress.flush();' },
    ],
  },
  {
    id: 'W701',
    what: 'a window that was read before the clock of the service was known is closed without a count',
    suite: 'test/unit/collect/early.test.ts',
    edits: [{ file: `${collect}close.ts`, text: 'if (total !== proof.total) {', replacement: 'if (total === undefined) {' }],
  },
  {
    id: 'W702',
    what: 'windows are read before the clock of the service is known although one of the clocks may not have reached them',
    suite: 'test/unit/collect/early.test.ts',
    edits: [{ file: `${collect}collector.ts`, text: 'agreed - Math.min(earlyMost', replacement: 'agreed + Math.min(earlyMost' }],
  },
  {
    id: 'W703',
    what: 'windows end where they happen to',
    suite: 'test/unit/collect/windows.test.ts',
    edits: [{ file: `${collect}windows.ts`, text: 'return (Math.floor(from / width) + 1) * width;', replacement: 'return from + width;' }],
  },
  {
    id: 'W704',
    what: 'a local clock that is set back has the service taken to be ahead',
    suite: 'test/unit/source/server-clock.test.ts',
    also: ['test/unit/collect/collector.test.ts'],
    edits: [
      {
        file: 'src/source/server-clock.ts',
        text: 'bound / 1000 - this.#local() > aheadMs',
        replacement: 'bound / 1000 - this.#clock.now() > aheadMs',
      },
    ],
  },
  {
    id: 'W705',
    what: 'a token that is refused is fetched again for each request',
    suite: 'test/contract/source.test.ts',
    edits: [{ file: 'src/source/token.ts', text: ' || now < this.#replaceAt) return false;', replacement: ') return false;' }],
  },
  {
    id: 'W706',
    what: 'what a hand count reads is thrown away',
    suite: 'test/unit/collect/hand-count.test.ts',
    edits: [{ file: `${collect}hand-count.ts`, text: '    await store(answer, signal);', replacement: '    void store;' }],
  },
  {
    id: 'W707',
    what: 'history counts as late',
    suite: 'test/unit/collect/collector.test.ts',
    edits: [
      {
        file: `${collect}collector.ts`,
        text: 'time !== undefined && time >= polledFrom',
        replacement: 'time !== undefined && polledFrom > 0',
      },
    ],
  },
  {
    id: 'W601',
    what: 'text of the other side is read in no encoding but its own',
    suite: 'test/unit/connect/secrets.test.ts',
    edits: [{ file: 'src/secrets.ts', text: 'layer < layersMax &&', replacement: 'layer < 0 &&' }],
  },
  {
    id: 'W602',
    what: 'a secret in base64 is found only where nothing precedes it',
    suite: 'test/unit/connect/secrets.test.ts',
    edits: [{ file: 'src/secrets.ts', text: 'return [0, 1, 2].map((before)', replacement: 'return [0].map((before)' }],
  },
  {
    id: 'W603',
    what: 'a part of a secret is shown',
    suite: 'test/unit/connect/secrets.test.ts',
    edits: [{ file: 'src/secrets.ts', text: 'if (length >= partMin) return true;', replacement: 'if (length >= partMin) return false;' }],
  },
  {
    id: 'W604',
    what: 'ordinary words that are a secret are removed from the middle of others',
    suite: 'test/unit/connect/secrets.test.ts',
    edits: [{ file: 'src/secrets.ts', text: "if (!/[a-z0-9]/.test(folded[at - 1] ?? ' ') && ", replacement: 'if (' }],
  },
  {
    id: 'W605',
    what: 'a token that was renewed is forgotten at once',
    suite: 'test/unit/connect/secrets.test.ts',
    edits: [{ file: 'src/secrets.ts', text: 'const valuesPerOwner = 8;', replacement: 'const valuesPerOwner = 1;' }],
  },
  {
    id: 'W606',
    what: 'text of the other side is quoted with the secrets in it',
    suite: 'test/contract/canary.test.ts',
    edits: [{ file: 'src/quote.ts', text: 'withoutSecrets(text.slice(0, readMax), true)', replacement: 'text.slice(0, readMax)' }],
  },
  {
    id: 'W607',
    what: 'the access token is not known as a secret',
    suite: 'test/contract/canary.test.ts',
    edits: [{ file: 'src/source/token.ts', text: '      remember(this, token);\n', replacement: '' }],
  },
  {
    id: 'W608',
    what: 'a secret that stays text is not known',
    suite: 'test/contract/canary.test.ts',
    edits: [
      {
        file: 'src/config/load.ts',
        text: 'if (isSecretAt(schema, path, document.value)) remember({}, value);',
        replacement: 'void schema;',
      },
    ],
  },
  {
    id: 'W301',
    what: 'complete although there is a gap',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `gaps + accepted + inDoubt === 0`, replacement: `accepted + inDoubt === 0` }],
  },
  {
    id: 'W302',
    what: 'complete although a gap was accepted',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `gaps + accepted + inDoubt === 0`, replacement: `gaps + inDoubt === 0` }],
  },
  {
    id: 'W303',
    what: 'complete although a window is in doubt',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `gaps + accepted + inDoubt === 0`, replacement: `gaps + accepted === 0` }],
  },
  {
    id: 'W304',
    what: 'complete although nothing is proven',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `complete: windows > 0 &&`, replacement: `complete: windows >= 0 &&` }],
  },
  {
    id: 'W305',
    what: 'complete although time is not covered',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `=== 0 && uncovered.length === 0 && unknown.length === 0`,
        replacement: `=== 0 && uncovered.length >= 0 && unknown.length === 0`,
      },
    ],
  },
  {
    id: 'W306',
    what: 'complete although nothing is known of a source',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `uncovered.length === 0 && unknown.length === 0`,
        replacement: `uncovered.length === 0 && unknown.length >= 0`,
      },
    ],
  },
  {
    id: 'W307',
    what: 'so far is never said',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const soFar = parts.some(({ isPending }) => isPending);`,
        replacement: `const soFar = parts.length < 0 && parts.some(({ isPending }) => isPending);`,
      },
    ],
  },
  {
    id: 'W308',
    what: 'delivered although a sink lacks windows',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      { file: 'src/report/verdict.ts', text: `delivered: shortfalls.length === 0,`, replacement: `delivered: shortfalls.length >= 0,` },
    ],
  },
  {
    id: 'W309',
    what: 'a sink that lacks one window has all',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `.filter(({ lacking, undated = 0, waits = false }) => lacking > 0 || undated > 0 || waits)`,
        replacement: `.filter(({ lacking, undated = 0, waits = false }) => lacking > 1 || undated > 0 || waits)`,
      },
    ],
  },
  {
    id: 'W310',
    what: 'of several sources only the first counts for a sink',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `lacking: lacking + part.lacking,`, replacement: `lacking: lacking || part.lacking,` }],
  },
  {
    id: 'W311',
    what: 'due after one close delay and a window',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `return 2 * closeDelaySeconds +`, replacement: `return closeDelaySeconds +` }],
  },
  {
    id: 'W312',
    what: 'due before a window has passed',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `return 2 * closeDelaySeconds + widthSeconds(closeDelaySeconds);`,
        replacement: `return 2 * closeDelaySeconds;`,
      },
    ],
  },
  {
    id: 'W313',
    what: 'a window has no least width',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `Math.max(10, closeDelaySeconds)`, replacement: `Math.max(0, closeDelaySeconds)` }],
  },
  {
    id: 'W314',
    what: 'a window has no greatest width',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `return Math.min(3_600, Math.max(10,`,
        replacement: `return Math.min(Infinity, Math.max(10,`,
      },
    ],
  },
  {
    id: 'W315',
    what: 'the clock that is ahead counts',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const reached = Math.min(facts.now, source.serverNow ?? facts.now);`,
        replacement: `const reached = Math.max(facts.now, source.serverNow ?? facts.now);`,
      },
    ],
  },
  {
    id: 'W316',
    what: 'the clock of the service is not asked',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const reached = Math.min(facts.now, source.serverNow ?? facts.now);`,
        replacement: `const reached = facts.now;`,
      },
    ],
  },
  {
    id: 'W317',
    what: 'the period begins where the ledger does',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const begin = facts.from ?? coverage.startsAt;`,
        replacement: `const begin = coverage.startsAt ?? facts.from;`,
      },
    ],
  },
  {
    id: 'W318',
    what: 'without --to the period ends where it was read',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const asked = facts.to ?? facts.now;`,
        replacement: `const asked = facts.to ?? coverage.read.at(-1)?.until ?? facts.now;`,
      },
    ],
  },
  {
    id: 'W319',
    what: 'the second behind what is read counts as read',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `from <= part.from && part.from < until)`,
        replacement: `from <= part.from && part.from <= until)`,
      },
    ],
  },
  {
    id: 'W320',
    what: 'what becomes due this second is not missed, nor what is due',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (part.from >= due) {`,
        replacement: `if (part.until >= due) {`,
      },
    ],
  },
  {
    id: 'W321',
    what: 'time is not cut where it becomes due',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      { file: 'src/report/verdict.ts', text: `const edges = [due, coverage.startsAt`, replacement: `const edges = [coverage.startsAt` },
    ],
  },
  {
    id: 'W322',
    what: 'time is not cut where the ledger begins',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `coverage.startsAt ?? begin, ...[...read, ...coverage.history]`,
        replacement: `begin, ...[...read, ...coverage.history]`,
      },
    ],
  },
  {
    id: 'W323',
    what: 'time is not cut where requested history ends',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `...[...read, ...coverage.history].flatMap`, replacement: `...read.flatMap` }],
  },
  {
    id: 'W324',
    what: 'holes beside each other stay apart',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (last?.to === hole.from && last.reason === hole.reason)`,
        replacement: `if (last?.to === hole.to && last.reason === hole.reason)`,
      },
    ],
  },
  {
    id: 'W325',
    what: 'holes of two reasons become one',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (last?.to === hole.from && last.reason === hole.reason)`,
        replacement: `if (last?.to === hole.from)`,
      },
    ],
  },
  {
    id: 'W326',
    what: 'holes apart from each other become one',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (last?.to === hole.from && last.reason === hole.reason)`,
        replacement: `if (last?.reason === hole.reason)`,
      },
    ],
  },
  {
    id: 'W327',
    what: 'before the ledger is called history',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (startsAt !== undefined && at < startsAt) return`,
        replacement: `if (startsAt !== undefined && at < -startsAt) return`,
      },
    ],
  },
  {
    id: 'W328',
    what: 'history is called late',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (liveFrom !== undefined && at < liveFrom) {`,
        replacement: `if (liveFrom !== undefined && at > liveFrom) {`,
      },
    ],
  },
  {
    id: 'W329',
    what: 'history that nobody requested is said to be read',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (!range) return { reason: 'not_requested'`,
        replacement: `if (range) return { reason: 'not_requested'`,
      },
    ],
  },
  {
    id: 'W330',
    what: 'a backfill that is paused is said to go on',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `message: range.paused ? 'the backfill is paused' : 'the backfill is not finished'`,
        replacement: `message: range.paused ? 'the backfill is not finished' : 'the backfill is paused'`,
      },
    ],
  },
  {
    id: 'W331',
    what: 'a retired source is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `if (mode === 'retired') return`, replacement: `if (mode === 'gone') return` }],
  },
  {
    id: 'W332',
    what: 'a source that is gone is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `if (mode === 'orphaned') return {`, replacement: `if (mode === 'gone') return {` }],
  },
  {
    id: 'W333',
    what: 'a daemon that stopped is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `if (stopped) return {`, replacement: `if (!at && stopped) return {` }],
  },
  {
    id: 'W334',
    what: 'a full journal is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `if (paused !== undefined) return {`, replacement: `if (paused === '') return {` }],
  },
  {
    id: 'W335',
    what: 'a suspension is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (held) return { reason: 'suspended'`,
        replacement: `if (!at && held) return { reason: 'suspended'`,
      },
    ],
  },
  {
    id: 'W336',
    what: 'the trouble of a source is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (trouble !== undefined) return { reason: 'source_failing'`,
        replacement: `if (trouble === '') return { reason: 'source_failing'`,
      },
    ],
  },
  {
    id: 'W337',
    what: 'a source that begins after the period takes part',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `(coverage.startsAt === undefined || coverage.startsAt < end)`,
        replacement: `(coverage.startsAt === undefined || coverage.startsAt <= end)`,
      },
    ],
  },
  {
    id: 'W338',
    what: 'a source that began in the period takes no part',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `(coverage.startsAt === undefined || coverage.startsAt < end)`,
        replacement: `(coverage.startsAt === undefined || coverage.startsAt <= (begin ?? end))`,
      },
    ],
  },
  {
    id: 'W339',
    what: 'a source of which nothing is known takes no part',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `!isOver && (coverage.startsAt === undefined ||`,
        replacement: `!isOver && (coverage.startsAt !== undefined &&`,
      },
    ],
  },
  {
    id: 'W340',
    what: 'a source retired before the period takes part',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const isOver = retiredAt !== undefined &&`,
        replacement: `const isOver = retiredAt === undefined &&`,
      },
    ],
  },
  {
    id: 'W341',
    what: 'a source retired in the period takes no part',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `begin !== undefined && retiredAt <= begin;`,
        replacement: `begin !== undefined && retiredAt <= end;`,
      },
    ],
  },
  {
    id: 'W342',
    what: 'where no source takes part, nothing is asked of any',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      { file: 'src/report/verdict.ts', text: `const parts = taking.length > 0 ? taking : all;`, replacement: `const parts = taking;` },
    ],
  },
  {
    id: 'W343',
    what: 'final although a window is not',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `count.all > 0 && count.final === count.all`,
        replacement: `count.all > 0 && count.final <= count.all`,
      },
    ],
  },
  {
    id: 'W344',
    what: 'final without a window',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      { file: 'src/report/verdict.ts', text: `count.all > 0 && count.final === count.all`, replacement: `count.final === count.all` },
    ],
  },
  {
    id: 'W345',
    what: 'final although a part is not covered',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `      uncovered.length === 0 &&
      // An end`,
        replacement: `      uncovered.length >= 0 &&
      // An end`,
      },
    ],
  },
  {
    id: 'W346',
    what: 'final although a part of what was asked for is to come',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      { file: 'src/report/verdict.ts', text: `(facts.to === undefined || !soFar)`, replacement: `(facts.to !== undefined || !soFar)` },
    ],
  },
  {
    id: 'W347',
    what: 'the last error of a sink is not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `lastError: sinks.find(({ id }) => id === sum.id)?.lastError`,
        replacement: `lastError: undefined`,
      },
    ],
  },
  {
    id: 'W348',
    what: 'dead letters are not told',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `deadLetters === 0 ? [] : [counted(deadLetters, 'dead letter')];`,
        replacement: `deadLetters >= 0 ? [] : [counted(deadLetters, 'dead letter')];`,
      },
    ],
  },
  {
    id: 'W349',
    what: 'the words say complete of what is not',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (!found.complete) return \`INCOMPLETE: `,
        replacement: `if (!found.complete && found.windows < 0) return \`INCOMPLETE: `,
      },
    ],
  },
  {
    id: 'W350',
    what: 'the words say delivered of what is not',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `if (found.delivered) return \`\${head} AND DELIVERED\`;`,
        replacement: `if (found.delivered || found.complete) return \`\${head} AND DELIVERED\`;`,
      },
    ],
  },
  {
    id: 'W351',
    what: 'the words leave out that it is so far',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const head = found.soFar ? 'COMPLETE SO FAR' : 'COMPLETE';`,
        replacement: `const head = 'COMPLETE';`,
      },
    ],
  },
  {
    id: 'W352',
    what: 'a hole does not name its source',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `\${isOfSeveral ? \`\${source} \` : ''}`,
        replacement: `\${isOfSeveral ? '' : \`\${source} \`}`,
      },
    ],
  },
  {
    id: 'W353',
    what: 'more than three holes are all named',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `const namedMost = 3;`, replacement: `const namedMost = 9;` }],
  },
  {
    id: 'W354',
    what: 'status leaves out sources that were retired',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [
      {
        file: 'src/report/verdict.ts',
        text: `const { sources } = snapshot;
  if`,
        replacement: `const sources = snapshot.sources.filter(({ mode }) => mode !== 'retired');
  if`,
      },
    ],
  },
  {
    id: 'W355',
    what: 'a sink that fails three times in a row is healthy',
    suite: 'test/unit/report/sink-health.test.ts',
    edits: [{ file: 'src/report/sink-health.ts', text: `const failedMost = 3;`, replacement: `const failedMost = 4;` }],
  },
  {
    id: 'W356',
    what: 'a sink that never delivered is healthy',
    suite: 'test/unit/report/sink-health.test.ts',
    edits: [
      {
        file: 'src/report/sink-health.ts',
        text: `return tries > 0 || lagSeconds >= firstDeliverySeconds;`,
        replacement: `return tries > 9;`,
      },
    ],
  },
  {
    id: 'W357',
    what: 'a dead letter is delivered',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `const lacked = new Set([...waiting.map((row) => row.from_us), ...lostBegins, ...letters.map(({ from }) => from)]);`,
        replacement: `const lacked = new Set([...waiting.map((row) => row.from_us), ...lostBegins]);`,
      },
    ],
  },
  {
    id: 'W358',
    what: 'what a sink has not acknowledged is delivered',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `const lacked = new Set([...waiting.map((row) => row.from_us), ...lostBegins, ...letters.map(({ from }) => from)]);`,
        replacement: `const lacked = new Set([...lostBegins, ...letters.map(({ from }) => (void waiting, from))]);`,
      },
    ],
  },
  {
    id: 'W359',
    what: 'a sink owes what lies before its start',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [{ file: 'src/journal/queries/coverage.ts', text: `let at = sink.begun_us;`, replacement: `let at = 0;` }],
  },
  {
    id: 'W360',
    what: 'a sink with a filter owes its dead letters',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `const letters = isFiltered ? [] : lettersOf(db, source, sink.id);`,
        replacement: `const letters = isFiltered || !isFiltered ? lettersOf(db, source, sink.id) : [];`,
      },
    ],
  },
  {
    id: 'W361',
    what: 'the window that spans the begin of the period does not count',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `spanning && spanning.until_us > from ? spanning.from_us : from`,
        replacement: `spanning && spanning.until_us < from ? spanning.from_us : from`,
      },
    ],
  },
  {
    id: 'W362',
    what: 'a window that a suspension lists is not in doubt',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      { file: 'src/journal/queries/coverage.ts', text: `inDoubt: sum(reread) + listed.length,`, replacement: `inDoubt: sum(reread),` },
    ],
  },
  {
    id: 'W363',
    what: 'a window that was reread is not in doubt',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      { file: 'src/journal/queries/coverage.ts', text: `inDoubt: sum(reread) + listed.length,`, replacement: `inDoubt: listed.length,` },
    ],
  },
  {
    id: 'W364',
    what: 'the page in which a sink stands is acknowledged whole',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `.all(acked + 1, acked, source);`,
        replacement: `.all(acked + 1, acked + 1, source);`,
      },
    ],
  },
  {
    id: 'W365',
    what: 'history for other sinks is owed',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `if (getsHistory(sink, order)) owed.push({ from, until });`,
        replacement: `owed.push({ from, until });`,
      },
    ],
  },
  {
    id: 'W366',
    what: 'what a sink lost is delivered, to verdict and status',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [{ file: 'src/journal/queries/coverage.ts', text: ` ...lostBegins, ...letters`, replacement: ` ...letters` }],
  },
  {
    id: 'W367',
    what: 'a sink that begins at an instant owes history from before it',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [{ file: 'src/journal/queries/coverage.ts', text: `return least === null ? all`, replacement: `return least !== 0 ? all` }],
  },
  {
    id: 'W368',
    what: 'what a sink lost is complete in the report',
    suite: 'test/unit/journal/losses.test.ts',
    edits: [
      {
        file: 'src/journal/queries/ledger.ts',
        text: `const complete = !isWaiting(row, id) && !isLost;`,
        replacement: `const complete = !isWaiting(row, id);`,
      },
    ],
  },
  {
    id: 'W369',
    what: 'the verdict does not say what was lost',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `const reasons = [...losses, `, replacement: `const reasons = [...losses.slice(1), ` }],
  },
  {
    id: 'W370',
    what: 'every sink lost what a sink lost',
    suite: 'test/unit/journal/losses.test.ts',
    edits: [
      {
        file: 'src/journal/losses.ts',
        text: `.filter((row) => row.sink === sink && row.source === source)`,
        replacement: `.filter((row) => (row.sink === sink || row.sink !== '') && row.source === source)`,
      },
    ],
  },
  {
    id: 'W371',
    what: 'what a sink lost of another source is not counted',
    suite: 'test/unit/report/completeness.test.ts',
    edits: [{ file: 'src/report/verdict.ts', text: `lost: lost + part.lost`, replacement: `lost: lost || part.lost` }],
  },
  {
    id: 'W372',
    what: 'the loss that the verdict names is outside of the period',
    suite: 'test/unit/journal/coverage.test.ts',
    edits: [
      {
        file: 'src/journal/queries/coverage.ts',
        text: `losing.findLast(({ begins: some }) => some.some((at) => lost.has(at)))`,
        replacement: `losing.findLast(({ begins: some }) => lost.size > 0 && some.length > 0)`,
      },
    ],
  },
  {
    id: 'W373',
    what: 'a lost window is said to be under way',
    suite: 'test/unit/report/ledger-html.test.ts',
    edits: [
      {
        file: 'src/report/ledger/words.ts',
        text: `const missing = sink.windows - sink.complete - sink.lost;`,
        replacement: `const missing = sink.windows - sink.complete;`,
      },
    ],
  },
];

/** A mutant whose mechanism this release does not have. */
export interface Absent {
  readonly ids: readonly string[];
  /** What is not there yet, in words. */
  readonly what: string;
  /** The file or folder that will hold it: once it is there the mutants belong into the list above. */
  readonly until: string;
}

export const absent: readonly Absent[] = [{ ids: idsOf('A', 1, 18), what: 'the archive', until: 'src/archive' }];

/** Every mutant that the design names. */
export const designed: readonly string[] = [...idsOf('C', 1, 53), ...idsOf('D', 1, 42), ...idsOf('A', 1, 18)];

function idsOf(letter: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, i) => `${letter}${first + i}`);
}
