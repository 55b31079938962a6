/**
 * Mutants: the program with one mechanism broken at hooks in `src/` (`hooks.ts` describes hooks and changes). A mutant belongs here when only the
 * simulation or a contract suite can prove the mechanism; Stryker mutates what unit tests cover (`npm run test:mutation`).
 */

export interface Mutant {
  readonly name: string;
  readonly what: string;
  /** `simulation`, `simulation of a shard`, or the test file that must fail. */
  readonly suite: string;
  /** The replacement of the node at each hook. All hooks are in `src/`. */
  readonly changes: Readonly<Record<string, string>>;
}

const simulation = 'simulation';
const shard = 'simulation of a shard';
const replica = 'test/unit/journal/replica.test.ts';
const elasticsearch = 'test/contract/sinks/elasticsearch.test.ts';
const syslog = 'test/contract/sinks/syslog.test.ts';
const suspects = 'test/unit/deliver/suspects.test.ts';
const splunkHec = 'test/contract/sinks/splunk-hec.test.ts';
const kafka = 'test/contract/sinks/kafka.test.ts';
const file = 'test/contract/sinks/file-disk.test.ts';
const rotation = 'test/contract/sinks/file-rotation.test.ts';

const archive = 'test/contract/sinks/archive.test.ts';
const positions = 'test/unit/journal/sink-positions.test.ts';
const moved = 'test/unit/journal/moved-sources.test.ts';
const held = 'test/unit/daemon/source.test.ts';
const calibration = 'test/unit/collect/calibrate.test.ts';
const contradictions = 'test/unit/collect/contradictions.test.ts';
const losses = 'test/unit/journal/losses.test.ts';
const powerCut = 'test/contract/sinks/archive-power-cut.test.ts';

const remove = ';';
const removeProperty = '...{}';

export const mutants: readonly Mutant[] = [
  {
    name: 'fence-without-number',
    what: 'a late commit of the owner overwrites later ones',
    suite: shard,
    changes: { fence: '({ $(properties[0]) }) as never' },
  },
  {
    name: 'fence-without-lease',
    what: 'a commit of a former owner is carried out',
    suite: replica,
    changes: { fence: '({ $(properties[1]) }) as never' },
  },
  {
    name: 'refused-is-committed',
    what: 'a refused commit counts, whatever the database has',
    suite: replica,
    changes: { 'refused-commit': '$(expression.expression).at(-1)' },
  },
  {
    name: 'repair-of-half-a-transaction',
    what: 'the repair of lost commits has rows of a transaction whose other rows wait',
    suite: replica,
    changes: { 'repair-waiting': remove },
  },
  {
    name: 'repair-without-values',
    what: 'the copy empties bodies that the database may lose',
    suite: replica,
    changes: { 'repair-values': remove },
  },
  {
    name: 'repair-without-lease',
    what: 'a repair of a former owner is carried out',
    suite: replica,
    changes: { 'repair-fence': '({ $(properties[1]) }) as never' },
  },
  {
    name: 'repair-skips-a-row',
    what: 'the repair of lost commits leaves out one row',
    suite: replica,
    changes: { 'repair-rows': '$().slice(1)' },
  },
  {
    name: 'commit-sent-with-more',
    what: 'a commit that is sent again has the changes that were made meanwhile',
    suite: shard,
    changes: {
      'next-commit': remove,
      'sent-content': '({ ...$(), changes: [...$(next-commit#expression.left).values()] })',
      'committed-transactions':
        '{ $(expression.expression)($(sent-transactions#declarationList.declarations[0].initializer)); $(next-commit#expression.left).clear(); }',
    },
  },
  {
    name: 'take-over-at-once',
    what: 'a member takes shards whose leases have not ended',
    suite: 'test/servers/postgres.test.ts',
    changes: { 'free-shards': "$().replace('expires < clock_timestamp()', 'true')" },
  },
  {
    name: 'ungated-append',
    what: 'a page counts as stored before its commit',
    suite: replica,
    changes: { ungated: "($() || $(left) === 'append')" },
  },
  {
    name: 'ungated-read',
    what: 'entries are read for delivery before their commit',
    suite: shard,
    changes: { ungated: "($() || $(left) === 'read')" },
  },
  {
    name: 'ungated-change',
    what: 'a sink is woken before the commit of the entries that it waits for',
    suite: replica,
    changes: { ungated: "($() || $(left) === 'changed')" },
  },
  {
    name: 'unsettled-source',
    what: 'the first request to a service precedes the commit of its source',
    suite: shard,
    changes: { 'settled-source': remove },
  },
  {
    name: 'unsettled-status',
    what: 'a status shows what the database may never have',
    suite: shard,
    changes: { 'settled-status': remove },
  },
  {
    name: 'no-gate',
    what: 'promises of the journal of a shard resolve before the commit',
    suite: shard,
    changes: { gate: remove },
  },
  {
    name: 'unsettled-operation',
    what: 'an operator is answered before the commit',
    suite: shard,
    changes: { 'settled-operation': remove },
  },
  {
    name: 'unfetched-uids',
    what: 'a new owner does not fetch the uids of the last one',
    suite: replica,
    changes: { 'fetch-seen': remove },
  },
  {
    name: 'unowned-request',
    what: 'a sink receives requests of a process whose lease has ended',
    suite: 'test/unit/fleet/lease.test.ts',
    changes: { 'owned-call': remove },
  },
  {
    name: 'uncaptured-updates',
    what: 'updated rows are not sent to the database',
    suite: shard,
    changes: { 'capture-updates': remove },
  },
  {
    name: 'uncaptured-table',
    what: 'changes of one table are not sent to the database',
    suite: shard,
    changes: { 'captured-tables': "$().filter(({ name }) => name !== 'dead_letters')" },
  },
  {
    name: 'uncaptured-column',
    what: 'one column is not sent to the database',
    suite: shard,
    changes: { 'captured-row': "((row) => (row && 'next_us' in row ? { ...row, next_us: null } : row))($())" },
  },
  {
    name: 'timestamp-cursor',
    what: 'the live poll starts at the last timestamp, and windows store nothing',
    suite: simulation,
    changes: { 'poll-overlap': '$(arguments[1].left.arguments[0])', 'store-page': remove },
  },
  {
    name: 'no-recount',
    what: 'no window is counted again',
    suite: simulation,
    changes: { 'recount-ages': remove },
  },
  {
    name: 'no-proof',
    what: 'a window counts as proven without its total',
    suite: simulation,
    changes: { proof: '($(left) = $(right), true)' },
  },
  {
    name: 'stored-again',
    what: 'what several sources have stored in one transaction is stored once more',
    suite: simulation,
    changes: { 'stored-together': remove },
  },
  {
    name: 'closed-before-stored',
    what: 'a window is closed before its pages are stored',
    suite: simulation,
    changes: {
      'store-page': '((globalThis as any).mutantPages ??= []).push(async () => $(expression.expression));',
      'record-window': '$() for (const store of ((globalThis as any).mutantPages ?? []).splice(0)) await store();',
    },
  },
  {
    name: 'granted-size-ignored',
    what: 'the page size that the service grants is ignored',
    suite: simulation,
    changes: { 'granted-size': 'false', 'short-first-page': remove },
  },
  {
    name: 'no-padding',
    what: 'the query of a window has no padding',
    suite: simulation,
    changes: { 'padding-before': '$(left)', 'padding-after': '$(left)' },
  },
  {
    name: 'local-clock',
    what: 'windows are planned by the local clock alone',
    suite: simulation,
    changes: { 'agreed-time': '$(arguments[1])' },
  },
  {
    name: 'service-clock',
    what: 'windows are planned by the clock of the service alone',
    suite: simulation,
    changes: { 'agreed-time': '$(arguments[0])' },
  },
  {
    name: 'no-deduplication',
    what: 'uids of earlier pages are not recognized',
    suite: simulation,
    changes: { 'known-uid': '$(left)' },
  },
  {
    name: 'unsynced-commit',
    what: 'commits are not synced',
    suite: simulation,
    changes: { synchronous: "'synchronous = NORMAL'" },
  },
  {
    name: 'first-total',
    what: 'the total of the first page proves a window',
    suite: simulation,
    changes: {
      'window-count': 'mutantTotal: number | undefined; $()',
      'page-total': '$() this.mutantTotal ??= $(expression.right);',
      'window-total': '$(expression.left) = this.mutantTotal;',
    },
  },
  {
    name: 'cached-total',
    what: 'the total of a cached answer is accepted',
    suite: simulation,
    changes: { 'cached-answer': '$(expression.left); if ($(expression.left.arguments[1]) !== Infinity) return;' },
  },
  {
    name: 'items-counted',
    what: 'items are counted in place of identities',
    suite: simulation,
    changes: {
      'window-count': 'mutantItems = 0; $()',
      'count-record': 'this.mutantItems += 1; $()',
      proof: '$(left) === this.mutantItems',
    },
  },
  {
    name: 'pass-ends-at-total',
    what: 'a pass ends at the record whose number is the total',
    suite: simulation,
    changes: {
      'counted-end':
        '$() const mutantEnd = (): boolean => $(declarationList.declarations[0].initializer.body.left.left) && !($(declarationList.declarations[0].initializer.body.left.right));',
      'last-page': '($()) || mutantEnd()',
    },
  },
  {
    name: 'uids-in-second-transaction',
    what: 'entries and their uids are stored in two transactions',
    suite: simulation,
    changes: {
      'store-uids': '(globalThis as any).mutantUids = () => { $() };',
      append:
        '$() const mutantUids = (globalThis as any).mutantUids; (globalThis as any).mutantUids = undefined; if (mutantUids) $(append-transaction#declarationList.declarations[0].initializer.body.expression)(mutantUids);',
    },
  },
  {
    name: 'padding-before-retention',
    what: 'padding is stored although its uids are forgotten',
    suite: simulation,
    changes: { 'uid-retention': '$(left)' },
  },
  {
    name: 'uids-forgotten-early',
    what: 'uids are forgotten before the last recount',
    suite: simulation,
    changes: { 'uids-kept': '$(expression)($(arguments[0]), $(arguments[1].arguments[0].left))' },
  },
  {
    name: 'uids-forgotten-by-age',
    what: 'uids of a window with a pending recount are forgotten',
    suite: simulation,
    changes: { 'uids-kept': '$(expression)($(arguments[0]), $(arguments[1].arguments[0]))' },
  },
  {
    name: 'other-recount-query',
    what: 'a recount sends another query than the proof',
    suite: simulation,
    changes: {
      'recount-query': "{ ...$(), startTime: new Date(Date.parse(`${$().startTime}Z`) + 3_000).toISOString().slice(0, 19) + '.00' }",
    },
  },
  {
    name: 'fewer-ignored',
    what: 'a recount that gives fewer confirms the window',
    suite: simulation,
    changes: { 'recount-agrees': '$(left.left) && $(left.right.right) !== undefined && $(left.right.left) <= $(left.right.right)' },
  },
  {
    name: 'fewer-accepted',
    what: 'a recount that gives fewer is read again and accepted at once',
    suite: simulation,
    changes: { 'recount-fewer': remove, 'proof-of-fewer': '$(thenStatement)' },
  },
  {
    name: 'poor-page-stored',
    what: 'a page without fields that it showed before is stored',
    suite: simulation,
    changes: { 'suspend-source': 'return true;' },
  },
  {
    name: 'time-filter-believed',
    what: 'a source is not suspended although the service does not find records by their times',
    suite: 'test/unit/collect/contradictions.test.ts',
    changes: { 'filter-suspension': remove },
  },
  {
    name: 'totals-not-compared',
    what: 'records that are counted without times and found by no times are not told',
    suite: 'test/unit/collect/contradictions.test.ts',
    changes: { 'totals-not-compared': 'return [];' },
  },
  {
    name: 'shown-and-not-held',
    what: 'a record of a closed window that an unbounded query shows is ignored',
    suite: 'test/unit/collect/contradictions.test.ts',
    changes: { 'shown-and-lacking': remove, 'more-than-counted': 'false' },
  },
  {
    name: 'recount-by-number-alone',
    what: 'a recount confirms a window although its answer shows a record that the journal lacks',
    suite: 'test/unit/collect/contradictions.test.ts',
    changes: { 'recount-uids': 'const counted = { total, isNew: false };' },
  },
  {
    name: 'records-in-hand-forgotten',
    what: 'a window is proven although another query showed a record of it that its own query does not',
    suite: 'test/unit/collect/contradictions.test.ts',
    changes: { 'in-hand': 'undefined' },
  },
  {
    name: 'frontier-over-gap',
    what: 'the frontier moves over a gap',
    suite: simulation,
    changes: { frontier: '$(left)' },
  },
  {
    name: 'gap-not-retried',
    what: 'a gap is never read again',
    suite: simulation,
    changes: { 'next-try': '$(condition) ? $(whenTrue) : undefined' },
  },
  {
    name: 'page-dropped',
    what: 'a page is dropped on 401',
    suite: simulation,
    changes: {
      'final-failure': "if ($(expression.left) === 'source_unauthorized') throw $(thenStatement.expression); $()",
      'page-missing': "if ($(expression.left.left) === 'source_unauthorized') return 'end'; $()",
      'count-failure': "if ($(expression.operand.arguments[0]) !== 'source_unauthorized') $()",
    },
  },
  {
    name: 'failures-not-compared',
    what: 'a request that fails is not compared with others',
    suite: 'test/unit/collect/scheduler.test.ts',
    changes: { 'all-fail': "'this'" },
  },
  {
    name: 'no-pace',
    what: 'a restart forgets how far a window was read',
    suite: 'test/unit/collect/early.test.ts',
    changes: { pace: remove },
  },
  {
    name: 'late-by-wall-clock',
    what: 'the wall clock decides which record is late',
    suite: simulation,
    changes: { late: '$(left) && $(late-record#thenStatement.expression.arguments[2].arguments[1]) > 900_000_000' },
  },
  {
    name: 'bounded-poll',
    what: 'the query of the live poll ends now',
    suite: simulation,
    changes: {
      'poll-query':
        '{ ...$(), endTime: $(expression)($(poll-begin#declarationList.declarations[0].initializer.right.arguments[1])).startTime }',
    },
  },
  {
    name: 'unbounded-poll-progress',
    what: 'the live poll starts at a time in the future',
    suite: simulation,
    changes: { 'poll-progress': '$(arguments[1])' },
  },
  {
    name: 'prune-beyond-sink',
    what: 'pruning deletes entries that the slowest sink has not acknowledged',
    suite: simulation,
    changes: { 'prune-limit': '$(arguments[0])' },
  },
  {
    name: 'prune-unconfigured-sink',
    what: 'pruning deletes entries that an unconfigured sink has not acknowledged',
    suite: simulation,
    changes: { 'prune-sinks': "$(left) === 'active'" },
  },
  {
    name: 'position-not-compared',
    what: 'the position of a sink is not compared',
    suite: simulation,
    changes: { 'compare-position': remove },
  },
  {
    name: 'chain-without-body',
    what: 'the chain does not cover the body',
    suite: simulation,
    changes: { 'chain-body': '$(expression.expression.expression.expression).digest()' },
  },
  {
    name: 'chain-without-ends',
    what: 'the chain covers neither flags nor ends',
    suite: simulation,
    changes: { 'chain-parts': '[$(elements[0]), $(elements[2])]' },
  },
  {
    name: 'no-state-lock',
    what: 'the state is not locked',
    suite: simulation,
    changes: { 'state-lock': "'BEGIN'" },
  },
  {
    name: 'unreadable-forgotten-early',
    what: 'uids of unreadable times are forgotten too early',
    suite: simulation,
    changes: { 'forget-unreadable': '$(left.left) - 86_400_000_000 < $(right)' },
  },
  {
    name: 'last-date',
    what: 'the last Date is the time of the service',
    suite: simulation,
    changes: { 'least-offset': '$(arguments[1])' },
  },
  {
    name: 'capped-total',
    what: 'a total that may be a cap proves a window',
    suite: simulation,
    changes: { cap: 'true' },
  },
  {
    name: 'suspect-window-forgotten',
    what: 'uids of windows closed since the last whole count are forgotten',
    suite: simulation,
    changes: { 'sound-since': 'Number.MAX_SAFE_INTEGER' },
  },
  {
    name: 'cancelled-history',
    what: 'a cancelled backfill ends before what it collected',
    suite: simulation,
    changes: { 'cancelled-history': '$(arguments[1])' },
  },
  {
    name: 'history-forgotten-early',
    what: 'a backfill with a pending recount is forgotten',
    suite: simulation,
    changes: { 'history-settled': '$(left)' },
  },
  {
    name: 'no-poll-between-pages',
    what: 'no live poll is sent between two pages of a window',
    suite: simulation,
    changes: { 'poll-between-pages': '$(thenStatement)' },
  },
  {
    name: 'retry-dropped',
    what: 'messages that a sink requests again count as delivered',
    suite: simulation,
    changes: { 'nothing-to-retry': 'true' },
  },
  {
    name: 'retry-whole-batch',
    what: 'a batch is sent whole when a sink requests a part of it again',
    suite: simulation,
    changes: { 'messages-to-retry': '$(expression.expression)' },
  },
  {
    name: 'source-stays-unconfigured',
    what: 'a source that is configured again stays unconfigured',
    suite: simulation,
    changes: { 'source-returns': remove },
  },
  {
    name: 'unconfigured-source-skipped',
    what: 'entries of an unconfigured source are skipped',
    suite: simulation,
    changes: { 'unconfigured-source': 'false' },
  },
  {
    name: 'acknowledge-before-send',
    what: 'a batch is acknowledged before it is sent',
    suite: simulation,
    changes: {
      'send-batch':
        'await $(acknowledge-dead-letters#expression.expression.expression)($(acknowledge-dead-letters#expression.expression.arguments[0]), undefined, [], $(acknowledge-dead-letters#expression.expression.arguments[3])); $()',
    },
  },
  {
    name: 'acknowledge-beyond-half',
    what: 'the lower half of a batch acknowledges the whole',
    suite: simulation,
    changes: { 'lower-half': '$(whenFalse)' },
  },
  {
    name: 'batch-dead-lettered',
    what: 'a batch with one rejected message is dead-lettered whole',
    suite: simulation,
    changes: {
      'halve-batch':
        'await $(acknowledge-dead-letters#expression.expression.expression)($(acknowledge-dead-letters#expression.expression.arguments[0]), undefined, $(rejected-batch#expression.right.arguments[1]).map((mutantMessage) => ({ ...$(dead-letters#declarationList.declarations[0].initializer.elements[1]), $(dead-letters#declarationList.declarations[0].initializer.elements[1].properties[0].name): mutantMessage.$(dead-letters#declarationList.declarations[0].initializer.elements[1].properties[0].initializer.name) })), $(acknowledge-dead-letters#expression.expression.arguments[3]));',
    },
  },
  {
    name: 'dead-letter-without-copy',
    what: 'a dead letter has no copy of its record',
    suite: simulation,
    changes: { 'dead-letter-copy': 'Buffer.alloc(0)' },
  },
  {
    name: 'ledger-entry-skipped',
    what: 'a sink with ledger: true steps over ledger entries',
    suite: simulation,
    changes: { 'ledger-entry': 'undefined' },
  },
  {
    name: 'ledger-dead-letter-as-record',
    what: 'a dead letter of a ledger entry is sent as a record',
    suite: simulation,
    changes: { 'dead-letter-kind': "'record'" },
  },
  {
    name: 'unknown-as-delivered',
    what: 'a batch with an unknown result counts as delivered',
    suite: simulation,
    changes: { 'unknown-result': 'return { $(expression.properties[0]), $(expression.properties[2].name): [] };' },
  },
  {
    name: 'unknown-sink-kept',
    what: 'a sink stays open after an unknown result',
    suite: simulation,
    changes: { 'unknown-result': '$(retry-pause#)' },
  },
  {
    name: 'others-not-acknowledged',
    what: 'entries for other sinks are never acknowledged',
    suite: simulation,
    changes: { 'pass-over': '$(thenStatement)' },
  },
  {
    name: 'retry-reorders',
    what: 'a retry reorders a batch',
    suite: simulation,
    changes: {
      'retry-batch':
        '$(expression.right.left.expression.expression) = { ...$(expression.right.left.expression.expression), $(expression.right.left.expression.name): $(expression.right.left.expression).toReversed() }; $()',
    },
  },
  {
    name: 'certain-after-start',
    what: 'batches after a start count as never sent',
    suite: simulation,
    changes: { 'uncertain-after-start': '$(left)' },
  },
  {
    name: 'sink-position-ignored',
    what: 'the position that a sink stores is ignored',
    suite: simulation,
    changes: { 'sink-position': 'false' },
  },
  {
    name: 'other-host-unnoticed',
    what: 'another host under the id of a source is no move',
    suite: moved,
    changes: { 'follow-host': remove },
  },
  {
    name: 'moved-windows-stay-proven',
    what: 'the windows of a moved source are not counted once more',
    suite: simulation,
    changes: { 'doubt-moved': remove },
  },
  {
    name: 'moved-source-not-suspended',
    what: 'a source with another path is not held',
    suite: held,
    changes: { 'while-moved': remove },
  },
  {
    name: 'moved-sink-ends-daemon',
    what: 'a sink with another destination ends the start of the daemon',
    suite: 'test/unit/daemon/running.test.ts',
    changes: { 'hold-moved-sink': remove },
  },
  {
    name: 'foreign-position-claimed',
    what: 'a sink claims what another sink wrote to its file',
    suite: positions,
    changes: { 'foreign-position': 'false' },
  },
  {
    name: 'unknown-selection-claimed',
    what: 'a sink claims what it got with another filter while the state did not know it',
    suite: positions,
    changes: { 'unknown-selection': 'false' },
  },
  {
    name: 'file-of-another-sink',
    what: 'a file that another sink wrote is continued without a question',
    suite: file,
    changes: { 'position-names-sink': remove },
  },
  {
    name: 'archive-of-another-sink',
    what: 'an archive that another sink wrote is continued without a question',
    suite: archive,
    changes: { 'position-line-names-sink': remove },
  },
  {
    name: 'archive-ahead-continued',
    what: 'an archive with entries that a restored state does not know counts as known',
    suite: archive,
    changes: { 'archive-ahead': 'return;' },
  },
  {
    name: 'archived-twice',
    what: 'an adopted archive receives the records that it has',
    suite: archive,
    changes: { 'archived-twice': 'return messages;' },
  },
  {
    name: 'replaced-archive-continued',
    what: 'an archive is continued after its directory was replaced by an older copy',
    suite: archive,
    changes: { 'replaced-archive': 'return;' },
  },
  {
    name: 'narrowed-replay-shrinks',
    what: 'a replay that a filter narrowed ends the loss of records that it did not send',
    suite: losses,
    changes: { 'narrowed-replay': 'sentFrom' },
  },
  {
    name: 'loss-after-replay-forgotten',
    what: 'a replay of the first entries of a loss ends the whole loss',
    suite: losses,
    changes: { 'loss-after-replay': '{ first: 1, last: 0 }' },
  },
  {
    name: 'dead-letter-sent-again',
    what: 'a delivered dead letter is sent again',
    suite: simulation,
    changes: { 'delivered-dead-letter': 'return;' },
  },
  {
    name: 'replay-repeats-batch',
    what: 'a replay repeats a batch whose answer was lost, although the sink reports that it has it',
    suite: simulation,
    changes: { 'found-replay': 'return;' },
  },
  {
    name: 'replay-not-stored',
    what: 'the state does not store the progress of a replay',
    suite: simulation,
    changes: { 'store-replay': 'undefined' },
  },
  {
    name: 'replay-reselected',
    what: 'a replay that continues with another selection clears the loss of what it sent before',
    suite: losses,
    changes: { 'replay-reselected': remove },
  },
  {
    name: 'replay-moves-position',
    what: 'a replay moves the position of its sink back',
    suite: simulation,
    changes: { 'replay-position': '$(name): arguments[0].$(name) ?? $(initializer)' },
  },
  {
    name: 'bulk-index',
    what: 'a document is replaced, and the answer accepted',
    suite: elasticsearch,
    changes: {
      'bulk-action': "$().replace('create', 'index')",
      'bulk-item': '({ ...$(expression).index, status: 201 })',
      'bulk-filter': removeProperty,
    },
  },
  {
    name: 'client-retries',
    what: 'the Elasticsearch client retries in addition to the delivery loop',
    suite: elasticsearch,
    changes: { 'client-retries': '3' },
  },
  {
    name: 'uncertain-not-searched',
    what: 'uncertain messages are sent without a search',
    suite: elasticsearch,
    changes: { 'search-uncertain': '$(right)' },
  },
  {
    name: 'partial-search',
    what: 'the result of a partial search is accepted',
    suite: elasticsearch,
    changes: { 'partial-search': removeProperty, 'partial-result': '$(right)' },
  },
  {
    name: 'pending-as-lost',
    what: 'a pending acknowledgement of Splunk counts as lost',
    suite: splunkHec,
    changes: { 'all-acknowledged': "$() if ($(acknowledged-requests#expression).size === 0) throw new Error('lost');" },
  },
  {
    name: 'acknowledged-asked-again',
    what: 'the acknowledgement of an acknowledged request is queried again',
    suite: splunkHec,
    changes: {
      'acknowledged-requests':
        'if ($(expression).size === $(statement.expression.expression.expression).size) $(statement.expression.expression.expression).clear();',
    },
  },
  {
    name: 'requests-before-cookie',
    what: 'several requests are sent before a cookie names the server',
    suite: splunkHec,
    changes: { 'first-request-alone': '$(expression.whenTrue)' },
  },
  {
    name: 'archive-without-position',
    what: 'an archive sink does not report the position that its archive has',
    suite: simulation,
    changes: { 'archived-position': 'true' },
  },
  {
    name: 'archived-before-checkpoint',
    what: 'a batch counts as archived before its checkpoint is durable',
    suite: simulation,
    changes: { 'archive-append': 'void append;' },
  },
  {
    name: 'archive-file-not-synced',
    what: 'the bytes of an archive file are not synced before it gets its name',
    suite: powerCut,
    changes: { 'sync-archive-file': remove },
  },
  {
    name: 'archive-file-name-not-synced',
    what: 'the name of an archive file is not synced in its folder',
    suite: powerCut,
    changes: { 'sync-archive-name-in-folder': 'undefined' },
  },
  {
    name: 'archive-folder-not-synced',
    what: 'the names of the folders of an archive are not synced',
    suite: powerCut,
    changes: { 'sync-archive-folder': remove },
  },
  {
    name: 'archive-without-ledger',
    what: 'an archive lacks the ledger entries',
    suite: simulation,
    changes: { 'archived-entries': 'messages.filter(({ isLedger }) => !isLedger).map(entryLine)' },
  },
  {
    name: 'no-file-lock',
    what: 'a file sink writes while another process does',
    suite: file,
    changes: { 'file-lock': 'if ($(expression)) return () => undefined;' },
  },
  {
    name: 'file-lock-released',
    what: 'the first close of a sink releases the lock of its file',
    suite: file,
    changes: { 'release-file-lock': remove },
  },
  {
    name: 'file-not-truncated',
    what: 'a file is not truncated when it is opened',
    suite: file,
    changes: { 'truncate-file': remove },
  },
  {
    name: 'position-before-lines',
    what: 'the position of a file is written before its lines',
    suite: file,
    changes: { 'write-lines': '$(file-position#) $(write-position#) $()' },
  },
  {
    name: 'directory-not-synced',
    what: 'the directory of a new file is not synced',
    suite: file,
    changes: { 'sync-directory': remove },
  },
  {
    name: 'rotated-before-commit',
    what: 'a file is rotated before the state has its position',
    suite: rotation,
    changes: { 'commit-before-rotation': remove },
  },
  {
    name: 'archive-name-not-synced',
    what: 'the plain file is deleted before the name of the archive is synced',
    suite: rotation,
    changes: { 'sync-archive-name': remove },
  },
  {
    name: 'partial-archive',
    what: 'an archive that a kill left unfinished counts as complete',
    suite: rotation,
    changes: { 'unfinished-archive': '$().slice(0, -5)' },
  },
  {
    name: 'two-transactions',
    what: 'messages and position are sent in two transactions',
    suite: kafka,
    changes: {
      'position-in-transaction': '[$(elements[0])]',
      'commit-transaction':
        '$() const mutantSecond = $(begin-transaction#declarationList.declarations[0].initializer); await mutantSecond.$(send-in-order#statement.expression.expression.expression.name)([$(position-in-transaction#elements[1])]); await mutantSecond.$(expression.expression.expression.name)();',
    },
  },
  {
    name: 'producer-kept',
    what: 'a producer is used again after an error',
    suite: kafka,
    changes: { 'unknown-after-error': remove },
  },
  {
    name: 'parallel-requests',
    what: 'two requests of a batch are sent at once',
    suite: kafka,
    changes: {
      'send-in-order': 'await Promise.all($(expression).map(($(initializer.declarations[0].name)) => $(statement.expression.expression)));',
    },
  },
  {
    name: 'abort-after-error',
    what: 'a transaction is aborted after an error',
    suite: kafka,
    changes: {
      'open-transaction': '$() (globalThis as any).mutantOpen = $(declarationList.declarations[0].name);',
      'cut-client': '((globalThis as any).mutantOpen?.abort() ?? Promise.resolve()).catch(() => undefined).finally(() => $(expression));',
    },
  },
  {
    name: 'other-opening-record',
    what: 'the reader stops before the open record of this sink',
    suite: kafka,
    changes: { 'opening-record': '$(left.left) !== undefined || $(right)' },
  },
  {
    name: 'own-look-up',
    what: 'each connection looks its name up itself',
    suite: 'test/unit/connect/names.test.ts',
    changes: { 'shared-look-up': 'false' },
  },
  {
    name: 'failed-names-everywhere',
    what: 'names that no server answers for may use every slot',
    suite: 'test/unit/connect/names.test.ts',
    changes: { 'failed-names-share': '1' },
  },
  {
    name: 'refused-connection-stays',
    what: 'a connection that only refuses is kept',
    suite: 'test/contract/connect/connection.test.ts',
    changes: { 'refusals-end-connection': 'false' },
  },
  {
    name: 'early-token-replaced',
    what: 'a token that is not valid yet is replaced at each refusal',
    suite: 'test/contract/source.test.ts',
    changes: { 'early-token': 'false' },
  },
  {
    name: 'expired-token-kept',
    what: 'an accepted token is replaced after 401 only',
    suite: 'test/contract/source.test.ts',
    changes: { 'suspected-token': '$(right)' },
  },
  {
    name: 'expired-token-of-failures',
    what: 'a token is kept while every request fails without a refusal',
    suite: 'test/contract/source.test.ts',
    changes: { 'token-of-failures': 'false' },
  },
  {
    name: 'token-for-each-source',
    what: 'sources with one login obtain tokens of their own',
    suite: 'test/contract/source.test.ts',
    changes: { 'shared-token': 'undefined' },
  },
  {
    name: 'unlimited-replacement',
    what: 'a source that is always refused replaces the shared token each time',
    suite: 'test/contract/source.test.ts',
    changes: { 'limited-replacement': remove },
  },
  {
    name: 'aged-answers-refused',
    what: 'an answer with an Age is always asked again',
    suite: 'test/unit/source/server-clock.test.ts',
    changes: { 'aged-answers': 'true' },
  },
  {
    name: 'moved-first-page',
    what: 'a page of half the records of the first is the first, although the records moved',
    suite: calibration,
    changes: { 'first-page-moved': remove },
  },
  {
    name: 'unreadable-first-page',
    what: 'two unreadable pages decide where pages count from',
    suite: calibration,
    changes: { 'unreadable-pages': remove },
  },
  {
    name: 'zone-not-named',
    what: 'a filter of another zone is not looked for',
    suite: contradictions,
    changes: { 'zone-named': remove },
  },
  {
    name: 'right-filter-accused',
    what: 'a filter that became right during the search is accused',
    suite: contradictions,
    changes: { 'right-meanwhile': 'if ($(expression.left) !== undefined) return $(expression.left);' },
  },
  {
    name: 'record-outside-ignored',
    what: 'a record outside of every window is not named',
    suite: contradictions,
    changes: { 'record-outside': 'undefined' },
  },
  {
    name: 'lagging-total-accused',
    what: 'totals that differ for a moment are called wrong',
    suite: contradictions,
    changes: { 'totals-lag': 'false' },
  },
  {
    name: 'total-stays-unusable',
    what: 'a total that becomes usable is noticed after a week',
    suite: 'test/unit/daemon/profile.test.ts',
    changes: { 'total-returns': 'false' },
  },
  {
    name: 'certificates-end-unseen',
    what: 'a certificate is reported each hour, however far its end is',
    suite: 'test/unit/daemon/certificates.test.ts',
    changes: { 'certificate-told': remove },
  },
  {
    name: 'recovered-fault-repeated',
    what: 'the count of a fault is written after its recovery',
    suite: 'test/unit/telemetry/log.test.ts',
    changes: { 'recovery-releases': remove },
  },
  {
    name: 'worst-last',
    what: 'the order of sources and sinks ignores their problems',
    suite: 'test/unit/report/advice.test.ts',
    changes: { 'worst-first': '0' },
  },
  {
    name: 'doubt-counted-as-proven',
    what: 'a window in doubt counts as proven',
    suite: 'test/unit/journal/coverage.test.ts',
    changes: { 'counted-in-doubt': 'false' },
  },
  {
    name: 'gaps-counted-by-group',
    what: 'a group of equal gaps counts as one',
    suite: 'test/unit/journal/window-counts.test.ts',
    changes: { 'counted-group': '1' },
  },
  {
    name: 'dead-letter-counted-as-delivered',
    what: 'a window with a dead letter counts as delivered',
    suite: 'test/unit/journal/coverage.test.ts',
    changes: { 'counted-lacking': '$(left)' },
  },
  {
    name: 'endless-shutdown',
    what: 'the daemon waits for what hangs',
    suite: 'test/unit/daemon/tasks.test.ts',
    changes: { 'shutdown-limit': '$(expression.expression.arguments[0].elements[0])' },
  },
  {
    name: 'early-end-confirms',
    what: 'an early end of the receiver confirms messages',
    suite: syslog,
    changes: { 'stream-end': remove, 'tcp-end': '$(thenStatement)' },
  },
  {
    name: 'syslog-unwatched',
    what: 'a connection is ended as soon as the kernel of the receiver has all bytes',
    suite: syslog,
    changes: { watch: remove },
  },
  {
    name: 'syslog-late-end',
    what: 'an end of the connection confirms a batch, however late it is',
    suite: syslog,
    changes: { 'late-end': 'return;' },
  },
  {
    name: 'syslog-short-watch',
    what: 'after an end that confirmed nothing, the next connection is watched no longer',
    suite: syslog,
    changes: { 'longer-watch': remove },
  },
  {
    name: 'reset-confirms',
    what: 'a reset after the end of the stream confirms messages',
    suite: syslog,
    changes: {
      'stream-error': '(cause) => ($(tcp-end#expression) ? $(tcp-end#thenStatement.expression) : $()(cause))',
      'tcp-error': '(cause) => ($(tcp-end#expression) ? $(tcp-end#thenStatement.expression) : $()(cause))',
    },
  },
  {
    name: 'field-limit-as-record',
    what: 'a reached limit of fields makes a dead letter of each record',
    suite: elasticsearch,
    changes: { 'field-limit': remove },
  },
  {
    name: 'other-event-as-duplicate',
    what: 'a document whose _id another event has counts as stored',
    suite: elasticsearch,
    changes: { 'id-of-pipeline': 'duplicates += 1;' },
  },
  {
    name: 'pipeline-blocks',
    what: 'a document that a pipeline fails on blocks the sink',
    suite: elasticsearch,
    changes: { 'pipeline-suspects': removeProperty },
  },
  {
    name: 'refusals-without-end',
    what: 'a message that is refused while later ones are accepted is never given up',
    suite: suspects,
    changes: { 'suspect-dead-letter': 'if (seqs.length > 0) return [];' },
  },
  {
    name: 'passing-as-refusal',
    what: 'a message whose shard is down for a minute becomes a dead letter',
    suite: suspects,
    changes: { 'passing-dead-letter': remove },
  },
  {
    name: 'passing-alone',
    what: 'a message whose shard is down holds the later ones',
    suite: suspects,
    changes: { 'passing-alone': 'passing > 1e9' },
  },
  {
    name: 'later-again',
    what: 'messages accepted while an earlier one waits are sent again with it',
    suite: suspects,
    changes: { 'settle-later': remove },
  },
  {
    name: 'refused-alone',
    what: 'a message that is refused alone waits without the later ones',
    suite: suspects,
    changes: { 'refused-alone': 'false' },
  },
  {
    name: 'endings-without-end',
    what: 'a message at which the receiver ends the connection is never given up',
    suite: suspects,
    changes: { 'ended-dead-letter': 'if (seq > 0) return undefined;' },
  },
  {
    name: 'no-witness',
    what: 'no later message is sent to see that the receiver takes others',
    suite: suspects,
    changes: { witness: remove },
  },
  {
    name: 'outage-as-cause',
    what: 'a message at which attempts end is a dead letter although the receiver takes no other',
    suite: suspects,
    changes: { 'ended-dead-letter': 'if (attempts <= attemptsUnproven) return undefined;' },
  },
  {
    name: 'relp-by-order',
    what: 'responses of RELP are matched by their order',
    suite: syslog,
    changes: { 'relp-number': '(($(arguments[0]) = $(expression.expression).keys().next().value ?? $(arguments[0])), $())' },
  },
  {
    name: 'relp-before-open',
    what: 'RELP sends messages before the response to open',
    suite: syslog,
    changes: { 'open-session': 'void $(expression.expression).catch(() => undefined);' },
  },
  {
    name: 'certain-behind-rejected',
    what: 'a message after a rejected one counts as certain',
    suite: syslog,
    changes: { 'certain-messages': '$(statement.expression.left) = $(expression.expression.expression).size;' },
  },
];
