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
  readonly changes: Changes;
}

type Changes = Readonly<Record<string, string>>;

const remove = ';';
const removeProperty = '...{}';

const bySuite: Readonly<Record<string, Readonly<Record<string, readonly [what: string, changes: Changes]>>>> = {
  'simulation of a shard': {
    'fence-without-number': ['a late commit of the owner overwrites later ones', { fence: '({ $(properties[0]) }) as never' }],
    'commit-sent-with-more': [
      'a commit that is sent again has the changes that were made meanwhile',
      {
        'next-commit': remove,
        'sent-content': '({ ...$(), changes: [...$(next-commit#expression.left).values()] })',
        'committed-transactions':
          '{ $(expression.expression)($(sent-transactions#declarationList.declarations[0].initializer)); $(next-commit#expression.left).clear(); }',
      },
    ],
    'ungated-read': ['entries are read for delivery before their commit', { ungated: "($() || $(left) === 'read')" }],
    'unsettled-status': ['a status shows what the database may never have', { 'settled-status': remove }],
    'no-gate': ['promises of the journal of a shard resolve before the commit', { gate: remove }],
    'unsettled-operation': ['an operator is answered before the commit', { 'settled-operation': remove }],
    'unowned-open': ['a process whose lease has ended opens a sink', { 'owned-open': remove }],
    'uncaptured-updates': ['updated rows are not sent to the database', { 'capture-updates': remove }],
    'uncaptured-table': [
      'changes of one table are not sent to the database',
      { 'captured-tables': "$().filter(({ name }) => name !== 'dead_letters')" },
    ],
    'uncaptured-column': [
      'one column is not sent to the database',
      { 'captured-row': "((row) => (row && 'next_us' in row ? { ...row, next_us: null } : row))($())" },
    ],
  },
  'test/unit/journal/replica.test.ts': {
    'fence-without-lease': ['a commit of a former owner is carried out', { fence: '({ $(properties[1]) }) as never' }],
    'refused-is-committed': ['a refused commit counts, whatever the database has', { 'refused-commit': '$(expression.expression).at(-1)' }],
    'repair-of-half-a-transaction': [
      'the repair of lost commits has rows of a transaction whose other rows wait',
      { 'repair-waiting': remove },
    ],
    'repair-without-values': ['the copy empties bodies that the database may lose', { 'repair-values': remove }],
    'repair-without-lease': ['a repair of a former owner is carried out', { 'repair-fence': '({ $(properties[1]) }) as never' }],
    'repair-skips-a-row': ['the repair of lost commits leaves out one row', { 'repair-rows': '$().slice(0, -1)' }],
    'ungated-append': ['a page counts as stored before its commit', { ungated: "($() || $(left) === 'append')" }],
    'ungated-change': ['a sink is woken before the commit of the entries that it waits for', { ungated: "($() || $(left) === 'changed')" }],
    'unfetched-uids': ['a new owner does not fetch the uids of the last one', { 'fetch-seen': remove }],
  },
  'test/servers/postgres.test.ts': {
    'take-over-at-once': [
      'a member takes shards whose leases have not ended',
      { 'free-shards': "$().replace('expires < clock_timestamp()', 'true')" },
    ],
  },
  'test/unit/fleet/lease.test.ts': {
    'unowned-request': ['a sink receives requests of a process whose lease has ended', { 'owned-call': remove }],
  },
  simulation: {
    'timestamp-cursor': [
      'the live poll starts at the last timestamp, and windows store nothing',
      { 'poll-overlap': '$(arguments[1].left.arguments[0])', 'store-page': remove },
    ],
    'no-recount': ['no window is counted again', { 'recount-ages': remove }],
    'no-proof': ['a window counts as proven without its total', { proof: '($(left) = $(right), true)' }],
    'stored-again': ['what several sources have stored in one transaction is stored once more', { 'stored-together': remove }],
    'closed-before-stored': [
      'a window is closed before its pages are stored',
      {
        'store-page': '((globalThis as any).mutantPages ??= []).push(async () => $(expression.expression));',
        'record-window': '$() for (const store of ((globalThis as any).mutantPages ?? []).splice(0)) await store();',
      },
    ],
    'granted-size-ignored': ['the page size that the service grants is ignored', { 'granted-size': 'false', 'short-first-page': remove }],
    'no-padding': ['the query of a window has no padding', { 'padding-before': '$(left)', 'padding-after': '$(left)' }],
    'local-clock': ['windows are planned by the local clock alone', { 'agreed-time': '$(arguments[1])' }],
    'service-clock': ['windows are planned by the clock of the service alone', { 'agreed-time': '$(arguments[0])' }],
    'no-deduplication': ['uids of earlier pages are not recognized', { 'known-uid': '$(left)' }],
    'unsynced-commit': ['commits are not synced', { synchronous: "'synchronous = NORMAL'" }],
    'first-total': [
      'the total of the first page proves a window',
      {
        'window-count': 'mutantTotal: number | undefined; $()',
        'page-total': '$() this.mutantTotal ??= $(expression.right);',
        'window-total': '$(expression.left) = this.mutantTotal;',
      },
    ],
    'cached-total': [
      'the total of a cached answer is accepted',
      { 'cached-answer': '$(expression.left); if ($(expression.left.arguments[1]) !== Infinity) return;' },
    ],
    'items-counted': [
      'items are counted in place of identities',
      {
        'window-count': 'mutantItems = 0; $()',
        'count-record': 'this.mutantItems += 1; $()',
        proof: '$(left) === this.mutantItems',
      },
    ],
    'pass-ends-at-total': [
      'a pass ends at the record whose number is the total',
      {
        'counted-end':
          '$() const mutantEnd = (): boolean => $(declarationList.declarations[0].initializer.body.left.left) && !($(declarationList.declarations[0].initializer.body.left.right));',
        'last-page': '($()) || mutantEnd()',
      },
    ],
    'uids-in-second-transaction': [
      'entries and their uids are stored in two transactions',
      {
        'store-uids': '(globalThis as any).mutantUids = () => { $() };',
        append:
          '$() const mutantUids = (globalThis as any).mutantUids; (globalThis as any).mutantUids = undefined; if (mutantUids) $(append-transaction#declarationList.declarations[0].initializer.body.expression)(mutantUids);',
      },
    ],
    'padding-before-retention': ['padding is stored although its uids are forgotten', { 'uid-retention': '$(left)' }],
    'uids-forgotten-early': [
      'uids are forgotten before the last recount',
      { 'uids-kept': '$(expression)($(arguments[0]), $(arguments[1].arguments[0].left))' },
    ],
    'uids-forgotten-by-age': [
      'uids of a window with a pending recount are forgotten',
      { 'uids-kept': '$(expression)($(arguments[0]), $(arguments[1].arguments[0]))' },
    ],
    'other-recount-query': [
      'a recount sends another query than the proof',
      {
        'recount-query': "{ ...$(), startTime: new Date(Date.parse(`${$().startTime}Z`) + 3_000).toISOString().slice(0, 19) + '.00' }",
      },
    ],
    'fewer-ignored': [
      'a recount that gives fewer confirms the window',
      { 'recount-agrees': '$(left.left) && $(left.right.right) !== undefined && $(left.right.left) <= $(left.right.right)' },
    ],
    'fewer-accepted': [
      'a recount that gives fewer is read again and accepted at once',
      { 'recount-fewer': remove, 'proof-of-fewer': '$(thenStatement)' },
    ],
    'poor-page-stored': ['a page without fields that it showed before is stored', { 'suspend-source': 'return true;' }],
    'frontier-over-gap': ['the frontier moves over a gap', { frontier: '$(left)' }],
    'gap-not-retried': ['a gap is never read again', { 'next-try': '$(condition) ? $(whenTrue) : undefined' }],
    'page-dropped': [
      'a page is dropped on 401',
      {
        'final-failure': "if ($(expression.left) === 'source_unauthorized') throw $(thenStatement.expression); $()",
        'page-missing': "if ($(expression.left.left) === 'source_unauthorized') return 'end'; $()",
        'count-failure': "if ($(expression.operand.arguments[0]) !== 'source_unauthorized') $()",
      },
    ],
    'late-by-wall-clock': [
      'the wall clock decides which record is late',
      { late: '$(left) && $(late-record#thenStatement.expression.arguments[2].arguments[1]) > 900_000_000' },
    ],
    'bounded-poll': [
      'the query of the live poll ends now',
      {
        'poll-query':
          '{ ...$(), endTime: $(expression)($(poll-begin#declarationList.declarations[0].initializer.right.arguments[1])).startTime }',
      },
    ],
    'unbounded-poll-progress': ['the live poll starts at a time in the future', { 'poll-progress': '$(arguments[1])' }],
    'prune-beyond-sink': ['pruning deletes entries that the slowest sink has not acknowledged', { 'prune-limit': '$(arguments[0])' }],
    'prune-unconfigured-sink': [
      'pruning deletes entries that an unconfigured sink has not acknowledged',
      { 'prune-sinks': "$(left) === 'active'" },
    ],
    'position-not-compared': ['the position of a sink is not compared', { 'compare-position': remove }],
    'chain-without-body': [
      'the chain does not cover the body',
      { 'chain-body': '$(expression.expression.expression.expression).digest()' },
    ],
    'chain-without-ends': ['the chain covers neither flags nor ends', { 'chain-parts': '[$(elements[0]), $(elements[2])]' }],
    'no-state-lock': ['the state is not locked', { 'state-lock': "'BEGIN'" }],
    'unreadable-forgotten-early': [
      'uids of unreadable times are forgotten too early',
      { 'forget-unreadable': '$(left.left) - 86_400_000_000 < $(right)' },
    ],
    'last-date': ['the last Date is the time of the service', { 'least-offset': '$(arguments[1])' }],
    'capped-total': ['a total that may be a cap proves a window', { cap: 'true' }],
    'suspect-window-forgotten': [
      'uids of windows closed since the last whole count are forgotten',
      { 'sound-since': 'Number.MAX_SAFE_INTEGER' },
    ],
    'cancelled-history': ['a cancelled backfill ends before what it collected', { 'cancelled-history': '$(arguments[1])' }],
    'history-forgotten-early': ['a backfill with a pending recount is forgotten', { 'history-settled': '$(left)' }],
    'no-poll-between-pages': ['no live poll is sent between two pages of a window', { 'poll-between-pages': '$(thenStatement)' }],
    'retry-dropped': ['messages that a sink requests again count as delivered', { 'nothing-to-retry': 'true' }],
    'retry-whole-batch': [
      'a batch is sent whole when a sink requests a part of it again',
      { 'messages-to-retry': '$(expression.expression)' },
    ],
    'source-stays-unconfigured': ['a source that is configured again stays unconfigured', { 'source-returns': remove }],
    'unconfigured-source-skipped': ['entries of an unconfigured source are skipped', { 'unconfigured-source': 'false' }],
    'acknowledge-before-send': [
      'a batch is acknowledged before it is sent',
      {
        'send-batch':
          'await $(acknowledge-dead-letters#expression.expression.expression)($(acknowledge-dead-letters#expression.expression.arguments[0]), undefined, [], $(acknowledge-dead-letters#expression.expression.arguments[3])); $()',
      },
    ],
    'acknowledge-beyond-half': ['the lower half of a batch acknowledges the whole', { 'lower-half': '$(whenFalse)' }],
    'batch-dead-lettered': [
      'a batch with one rejected message is dead-lettered whole',
      {
        'halve-batch':
          'await $(acknowledge-dead-letters#expression.expression.expression)($(acknowledge-dead-letters#expression.expression.arguments[0]), undefined, $(rejected-batch#expression.right.arguments[1]).map((mutantMessage) => ({ ...$(dead-letters#declarationList.declarations[0].initializer.elements[1]), $(dead-letters#declarationList.declarations[0].initializer.elements[1].properties[0].name): mutantMessage.$(dead-letters#declarationList.declarations[0].initializer.elements[1].properties[0].initializer.name) })), $(acknowledge-dead-letters#expression.expression.arguments[3]));',
      },
    ],
    'dead-letter-without-copy': ['a dead letter has no copy of its record', { 'dead-letter-copy': 'Buffer.alloc(0)' }],
    'ledger-entry-skipped': ['a sink with ledger: true steps over ledger entries', { 'ledger-entry': 'undefined' }],
    'ledger-dead-letter-as-record': ['a dead letter of a ledger entry is sent as a record', { 'dead-letter-kind': "'record'" }],
    'unknown-as-delivered': [
      'a batch with an unknown result counts as delivered',
      { 'unknown-result': 'return { $(expression.properties[0]), $(expression.properties[2].name): [] };' },
    ],
    'unknown-sink-kept': ['a sink stays open after an unknown result', { 'unknown-result': '$(retry-pause#)' }],
    'others-not-acknowledged': ['entries for other sinks are never acknowledged', { 'pass-over': '$(thenStatement)' }],
    'retry-reorders': [
      'a retry reorders a batch',
      {
        'retry-batch':
          '$(expression.right.left.expression.expression) = { ...$(expression.right.left.expression.expression), $(expression.right.left.expression.name): $(expression.right.left.expression).toReversed() }; $()',
      },
    ],
    'certain-after-start': ['batches after a start count as never sent', { 'uncertain-after-start': '$(left)' }],
    'sink-position-ignored': ['the position that a sink stores is ignored', { 'sink-position': 'false' }],
    'moved-windows-stay-proven': ['the windows of a moved source are not counted once more', { 'doubt-moved': remove }],
    'dead-letter-sent-again': ['a delivered dead letter is sent again', { 'delivered-dead-letter': 'return;' }],
    'replay-repeats-batch': [
      'a replay repeats a batch whose answer was lost, although the sink reports that it has it',
      { 'found-replay': 'return;' },
    ],
    'replay-not-stored': ['the state does not store the progress of a replay', { 'store-replay': 'undefined' }],
    'replay-moves-position': [
      'a replay moves the position of its sink back',
      { 'replay-position': '$(name): arguments[0].$(name) ?? $(initializer)' },
    ],
    'archive-without-position': ['an archive sink does not report the position that its archive has', { 'archived-position': 'true' }],
    'archived-before-checkpoint': ['a batch counts as archived before its checkpoint is durable', { 'archive-append': 'void append;' }],
    'archive-without-ledger': [
      'an archive lacks the ledger entries',
      { 'archived-entries': 'messages.filter(({ isLedger }) => !isLedger).map(entryLine)' },
    ],
  },
  'test/unit/collect/contradictions.test.ts': {
    'time-filter-believed': [
      'a source is not suspended although the service does not find records by their times',
      { 'filter-suspension': remove },
    ],
    'totals-not-compared': [
      'records that are counted without times and found by no times are not told',
      { 'totals-not-compared': 'return [];' },
    ],
    'shown-and-not-held': [
      'a record of a closed window that an unbounded query shows is ignored',
      { 'shown-and-lacking': remove, 'more-than-counted': 'false' },
    ],
    'recount-by-number-alone': [
      'a recount confirms a window although its answer shows a record that the journal lacks',
      { 'recount-uids': 'const counted = { total, isNew: false };' },
    ],
    'records-in-hand-forgotten': [
      'a window is proven although another query showed a record of it that its own query does not',
      { 'in-hand': 'undefined' },
    ],
    'zone-not-named': ['a filter of another zone is not looked for', { 'zone-named': remove }],
    'right-filter-accused': [
      'a filter that became right during the search is accused',
      { 'right-meanwhile': 'if ($(expression.left) !== undefined) return $(expression.left);' },
    ],
    'record-outside-ignored': ['a record outside of every window is not named', { 'record-outside': 'undefined' }],
    'lagging-total-accused': ['totals that differ for a moment are called wrong', { 'totals-lag': 'false' }],
  },
  'test/unit/collect/scheduler.test.ts': {
    'failures-not-compared': ['a request that fails is not compared with others', { 'all-fail': "'this'" }],
  },
  'test/unit/collect/early.test.ts': {
    'no-pace': ['a restart forgets how far a window was read', { pace: remove }],
  },
  'test/unit/journal/moved-sources.test.ts': {
    'other-host-unnoticed': ['another host under the id of a source is no move', { 'follow-host': remove }],
  },
  'test/unit/daemon/source.test.ts': {
    'unsettled-source': ['requests to a source that was moved precede the commit of its move', { 'settled-source': remove }],
    'moved-source-not-suspended': ['a source with another path is not held', { 'while-moved': remove }],
  },
  'test/unit/daemon/running.test.ts': {
    'moved-sink-ends-daemon': ['a sink with another destination ends the start of the daemon', { 'hold-moved-sink': remove }],
  },
  'test/unit/journal/sink-positions.test.ts': {
    'foreign-position-claimed': ['a sink claims what another sink wrote to its file', { 'foreign-position': 'false' }],
    'unknown-selection-claimed': [
      'a sink claims what it got with another filter while the state did not know it',
      { 'unknown-selection': 'false' },
    ],
  },
  'test/contract/sinks/file-disk.test.ts': {
    'file-of-another-sink': ['a file that another sink wrote is continued without a question', { 'position-names-sink': remove }],
    'no-file-lock': ['a file sink writes while another process does', { 'file-lock': 'if ($(expression)) return () => undefined;' }],
    'file-lock-released': ['the first close of a sink releases the lock of its file', { 'release-file-lock': remove }],
    'file-not-truncated': ['a file is not truncated when it is opened', { 'truncate-file': remove }],
    'position-before-lines': [
      'the position of a file is written before its lines',
      { 'write-lines': '$(file-position#) $(write-position#) $()' },
    ],
    'directory-not-synced': ['the directory of a new file is not synced', { 'sync-directory': remove }],
  },
  'test/contract/sinks/archive.test.ts': {
    'archive-of-another-sink': [
      'an archive that another sink wrote is continued without a question',
      { 'position-line-names-sink': remove },
    ],
    'archive-ahead-continued': [
      'an archive with entries that a restored state does not know counts as known',
      { 'archive-ahead': 'return;' },
    ],
    'archived-twice': ['an adopted archive receives the records that it has', { 'archived-twice': 'return messages;' }],
    'replaced-archive-continued': [
      'an archive is continued after its directory was replaced by an older copy',
      { 'replaced-archive': 'return;' },
    ],
  },
  'test/unit/journal/losses.test.ts': {
    'narrowed-replay-shrinks': [
      'a replay that a filter narrowed ends the loss of records that it did not send',
      { 'narrowed-replay': 'sentFrom' },
    ],
    'loss-after-replay-forgotten': [
      'a replay of the first entries of a loss ends the whole loss',
      { 'loss-after-replay': '{ first: 1, last: 0 }' },
    ],
    'replay-reselected': [
      'a replay that continues with another selection clears the loss of what it sent before',
      { 'replay-reselected': remove },
    ],
  },
  'test/contract/sinks/elasticsearch.test.ts': {
    'bulk-index': [
      'a document is replaced, and the answer accepted',
      {
        'bulk-action': "$().replace('create', 'index')",
        'bulk-item': '({ ...$(expression).index, status: 201 })',
        'bulk-filter': removeProperty,
      },
    ],
    'client-retries': ['the Elasticsearch client retries in addition to the delivery loop', { 'client-retries': '3' }],
    'uncertain-not-searched': ['uncertain messages are sent without a search', { 'search-uncertain': '$(right)' }],
    'partial-search': ['the result of a partial search is accepted', { 'partial-search': removeProperty, 'partial-result': '$(right)' }],
    'field-limit-as-record': ['a reached limit of fields makes a dead letter of each record', { 'field-limit': remove }],
    'other-event-as-duplicate': ['a document whose _id another event has counts as stored', { 'id-of-pipeline': 'duplicates += 1;' }],
    'pipeline-blocks': ['a document that a pipeline fails on blocks the sink', { 'pipeline-suspects': removeProperty }],
  },
  'test/contract/sinks/splunk-hec.test.ts': {
    'pending-as-lost': [
      'a pending acknowledgement of Splunk counts as lost',
      { 'all-acknowledged': "$() if ($(acknowledged-requests#expression).size === 0) throw new Error('lost');" },
    ],
    'acknowledged-asked-again': [
      'the acknowledgement of an acknowledged request is queried again',
      {
        'acknowledged-requests':
          'if ($(expression).size === $(statement.expression.expression.expression).size) $(statement.expression.expression.expression).clear();',
      },
    ],
    'requests-before-cookie': [
      'several requests are sent before a cookie names the server',
      { 'first-request-alone': '$(expression.whenTrue)' },
    ],
  },
  'test/contract/sinks/archive-power-cut.test.ts': {
    'archive-file-not-synced': ['the bytes of an archive file are not synced before it gets its name', { 'sync-archive-file': remove }],
    'archive-file-name-not-synced': [
      'the name of an archive file is not synced in its folder',
      { 'sync-archive-name-in-folder': 'undefined' },
    ],
    'archive-folder-not-synced': ['the names of the folders of an archive are not synced', { 'sync-archive-folder': remove }],
  },
  'test/contract/sinks/file-rotation.test.ts': {
    'rotated-before-commit': ['a file is rotated before the state has its position', { 'commit-before-rotation': remove }],
    'archive-name-not-synced': ['the plain file is deleted before the name of the archive is synced', { 'sync-archive-name': remove }],
    'partial-archive': ['an archive that a kill left unfinished counts as complete', { 'unfinished-archive': '$().slice(0, -5)' }],
  },
  'test/contract/sinks/kafka.test.ts': {
    'two-transactions': [
      'messages and position are sent in two transactions',
      {
        'position-in-transaction': '[$(elements[0])]',
        'commit-transaction':
          '$() const mutantSecond = $(begin-transaction#declarationList.declarations[0].initializer); await mutantSecond.$(send-in-order#statement.expression.expression.expression.name)([$(position-in-transaction#elements[1])]); await mutantSecond.$(expression.expression.expression.name)();',
      },
    ],
    'producer-kept': ['a producer is used again after an error', { 'unknown-after-error': remove }],
    'parallel-requests': [
      'two requests of a batch are sent at once',
      {
        'send-in-order':
          'await Promise.all($(expression).map(($(initializer.declarations[0].name)) => $(statement.expression.expression)));',
      },
    ],
    'abort-after-error': [
      'a transaction is aborted after an error',
      {
        'open-transaction': '$() (globalThis as any).mutantOpen = $(declarationList.declarations[0].name);',
        'cut-client': '((globalThis as any).mutantOpen?.abort() ?? Promise.resolve()).catch(() => undefined).finally(() => $(expression));',
      },
    ],
    'other-opening-record': [
      'the reader stops before the open record of this sink',
      { 'opening-record': '$(left.left) !== undefined || $(right)' },
    ],
  },
  'test/unit/connect/names.test.ts': {
    'own-look-up': ['each connection looks its name up itself', { 'shared-look-up': 'false' }],
    'failed-names-everywhere': ['names that no server answers for may use every slot', { 'failed-names-share': '1' }],
  },
  'test/contract/connect/connection.test.ts': {
    'refused-connection-stays': ['a connection that only refuses is kept', { 'refusals-end-connection': 'false' }],
  },
  'test/contract/source.test.ts': {
    'early-token-replaced': ['a token that is not valid yet is replaced at each refusal', { 'early-token': 'false' }],
    'expired-token-kept': ['an accepted token is replaced after 401 only', { 'suspected-token': '$(right)' }],
    'expired-token-of-failures': ['a token is kept while every request fails without a refusal', { 'token-of-failures': 'false' }],
    'token-for-each-source': ['sources with one login obtain tokens of their own', { 'shared-token': 'undefined' }],
    'unlimited-replacement': ['a source that is always refused replaces the shared token each time', { 'limited-replacement': remove }],
  },
  'test/unit/source/server-clock.test.ts': {
    'aged-answers-refused': ['an answer with an Age is always asked again', { 'aged-answers': 'true' }],
  },
  'test/unit/collect/calibrate.test.ts': {
    'moved-first-page': [
      'a page of half the records of the first is the first, although the records moved',
      { 'first-page-moved': remove },
    ],
    'unreadable-first-page': ['two unreadable pages decide where pages count from', { 'unreadable-pages': remove }],
  },
  'test/unit/daemon/profile.test.ts': {
    'total-stays-unusable': ['a total that becomes usable is noticed after a week', { 'total-returns': 'false' }],
  },
  'test/unit/daemon/certificates.test.ts': {
    'certificates-end-unseen': ['a certificate is reported each hour, however far its end is', { 'certificate-told': remove }],
  },
  'test/unit/telemetry/log.test.ts': {
    'recovered-fault-repeated': ['the count of a fault is written after its recovery', { 'recovery-releases': remove }],
  },
  'test/unit/report/advice.test.ts': {
    'worst-last': ['the order of sources and sinks ignores their problems', { 'worst-first': '0' }],
  },
  'test/unit/journal/coverage.test.ts': {
    'doubt-counted-as-proven': ['a window in doubt counts as proven', { 'counted-in-doubt': 'false' }],
    'dead-letter-counted-as-delivered': ['a window with a dead letter counts as delivered', { 'counted-lacking': '$(left)' }],
  },
  'test/unit/journal/window-counts.test.ts': {
    'gaps-counted-by-group': ['a group of equal gaps counts as one', { 'counted-group': '1' }],
  },
  'test/unit/daemon/tasks.test.ts': {
    'endless-shutdown': ['the daemon waits for what hangs', { 'shutdown-limit': '$(expression.expression.arguments[0].elements[0])' }],
  },
  'test/contract/sinks/syslog.test.ts': {
    'early-end-confirms': ['an early end of the receiver confirms messages', { 'stream-end': remove, 'tcp-end': '$(thenStatement)' }],
    'syslog-unwatched': ['a connection is ended as soon as the kernel of the receiver has all bytes', { watch: remove }],
    'syslog-late-end': ['an end of the connection confirms a batch, however late it is', { 'late-end': 'return;' }],
    'syslog-short-watch': ['after an end that confirmed nothing, the next connection is watched no longer', { 'longer-watch': remove }],
    'reset-confirms': [
      'a reset after the end of the stream confirms messages',
      {
        'stream-error': '(cause) => ($(tcp-end#expression) ? $(tcp-end#thenStatement.expression) : $()(cause))',
        'tcp-error': '(cause) => ($(tcp-end#expression) ? $(tcp-end#thenStatement.expression) : $()(cause))',
      },
    ],
    'relp-by-order': [
      'responses of RELP are matched by their order',
      { 'relp-number': '(($(arguments[0]) = $(expression.expression).keys().next().value ?? $(arguments[0])), $())' },
    ],
    'relp-before-open': [
      'RELP sends messages before the response to open',
      { 'open-session': 'void $(expression.expression).catch(() => undefined);' },
    ],
    'certain-behind-rejected': [
      'a message after a rejected one counts as certain',
      { 'certain-messages': '$(statement.expression.left) = $(expression.expression.expression).size;' },
    ],
  },
  'test/unit/deliver/suspects.test.ts': {
    'refusals-without-end': [
      'a message that is refused while later ones are accepted is never given up',
      { 'suspect-dead-letter': 'if (seqs.length > 0) return [];' },
    ],
    'passing-as-refusal': ['a message whose shard is down for a minute becomes a dead letter', { 'passing-dead-letter': remove }],
    'passing-alone': ['a message whose shard is down holds the later ones', { 'passing-alone': 'passing > 1e9' }],
    'later-again': ['messages accepted while an earlier one waits are sent again with it', { 'settle-later': remove }],
    'refused-alone': ['a message that is refused alone waits without the later ones', { 'refused-alone': 'false' }],
    'endings-without-end': [
      'a message at which the receiver ends the connection is never given up',
      { 'ended-dead-letter': 'if (seq > 0) return undefined;' },
    ],
    'no-witness': ['no later message is sent to see that the receiver takes others', { witness: remove }],
    'outage-as-cause': [
      'a message at which attempts end is a dead letter although the receiver takes no other',
      { 'ended-dead-letter': 'if (attempts <= attemptsUnproven) return undefined;' },
    ],
  },
};

export const mutants: readonly Mutant[] = Object.entries(bySuite).flatMap(([suite, rows]) =>
  Object.entries(rows).map(([name, [what, changes]]) => ({ name, what, suite, changes })),
);
