/**
 * Every line that the log can hold: its stable code, level, message and fields. `docs/logs.md` is generated from this table. Scripts and tests match
 * the code; the message is for people and may change.
 */
export type Level = 'debug' | 'info' | 'warn' | 'error';

interface LogEvent {
  readonly level: Level;
  /** Short and constant: what varies stands in the fields. */
  readonly message: string;
  /** Field names, separated by blanks. */
  readonly fields: string;
  /** One sentence for the document: why the line appears, and what to do. */
  readonly meaning: string;
}

export const logEvents = {
  'daemon.starting': {
    level: 'info',
    message: 'daemon starting',
    fields: 'version file sources sinks',
    meaning: 'The configuration is valid, and the daemon starts.',
  },
  'daemon.stopping': { level: 'info', message: 'daemon stopping', fields: 'reason', meaning: 'A signal or a failure ends the daemon.' },
  'daemon.stopped': { level: 'info', message: 'daemon stopped', fields: '', meaning: 'Everything is closed; the process ends.' },
  'daemon.batch_abandoned': {
    level: 'warn',
    message: 'shutdown timeout reached, abandoning the batch in flight',
    fields: 'shutdownTimeoutMs',
    meaning: 'A sink did not answer within `shutdownTimeout`. The batch is sent again after the next start.',
  },
  'daemon.acknowledgements_unsaved': {
    level: 'warn',
    message: 'last acknowledgements not saved; reconciled at next start',
    fields: 'name code error',
    meaning: 'The disk was full when the daemon ended. The next start asks the sink, or sends the last batches again.',
  },
  'daemon.failed': {
    level: 'error',
    message: 'fatal error, shutting down',
    fields: 'name code error',
    meaning: 'The daemon cannot continue. `code` is explained in operations.md.',
  },
  'daemon.not_started': {
    level: 'error',
    message: 'daemon cannot run',
    fields: 'code error stack',
    meaning: 'The daemon ended before or while it ran. `code` is explained in operations.md.',
  },
  'config.warning': {
    level: 'warn',
    message: 'configuration warning',
    fields: 'detail',
    meaning: 'A valid setting that is probably not meant; see `waybill check`.',
  },
  'config.reload_unsupported': {
    level: 'warn',
    message: 'SIGHUP ignored: restart the daemon to apply a changed configuration',
    fields: '',
    meaning: 'The configuration is read at the start only.',
  },
  'log.lines_lost': {
    level: 'warn',
    message: 'log lines lost: the reader of the log was stuck or gone',
    fields: 'lines',
    meaning: 'The daemon never waits for the reader of its log. `lines` were dropped.',
  },
  'state.waiting_for_lock': {
    level: 'info',
    message: 'waiting for another process to release the state',
    fields: 'dataDir lockWaitMs',
    meaning: 'Another daemon owns the state, as in a rolling update.',
  },
  'state.created': {
    level: 'warn',
    message: 'new state created',
    fields: 'dataDir journal',
    meaning: 'The directory held no state. Expected at the first start only: otherwise the volume was lost or is not mounted.',
  },
  'state.opened': { level: 'info', message: 'state opened', fields: 'dataDir journal head', meaning: 'The daemon owns the state.' },
  'state.checked': { level: 'info', message: 'state checked', fields: 'head', meaning: 'A round of the self-check ended without a fault.' },
  'journal.pruned': {
    level: 'debug',
    message: 'journal pruned',
    fields: 'entries',
    meaning: 'Entries that every sink acknowledged, and that are older than `journal.retention`, were removed.',
  },
  'operation.performed': {
    level: 'info',
    message: 'operation performed',
    fields: 'operation actor source sink from to first through reason detail seqs all',
    meaning: 'An operator changed the state by a command.',
  },
  'admin.listening': {
    level: 'info',
    message: 'admin server listening',
    fields: 'addresses',
    meaning: 'Probes, metrics and reports are served.',
  },
  'admin.failed': {
    level: 'error',
    message: 'admin server failed, restarting',
    fields: 'error',
    meaning: 'The thread of the admin server ended. Collection and delivery continue.',
  },
  'admin.restarted': { level: 'info', message: 'admin server restarted', fields: '', meaning: 'The admin server answers again.' },
  'admin.request_failed': {
    level: 'error',
    message: 'admin request failed',
    fields: 'error url',
    meaning: 'A request was answered with 500.',
  },
  'admin.wrong_tokens': {
    level: 'warn',
    message: 'too many wrong tokens at the admin server',
    fields: 'address',
    meaning: 'Requests with wrong tokens from this address are delayed. A valid token is never delayed.',
  },
  'source.unconfigured': {
    level: 'warn',
    message: 'source is no longer configured',
    fields: 'source',
    meaning: 'The state holds a source that the configuration lacks. Restore it, or `waybill sources retire`.',
  },
  'source.first_record': { level: 'info', message: 'first record collected', fields: 'source records', meaning: 'The source works.' },
  'source.frontier': {
    level: 'info',
    message: 'proven until',
    fields: 'source frontier',
    meaning: 'Every window before this time is proven or accepted. Once an hour.',
  },
  'source.request_retried': {
    level: 'info',
    message: 'request failed, retrying',
    fields: 'source code retryInMs error',
    meaning: 'A request failed; the next attempt follows.',
  },
  'source.request_failing': {
    level: 'warn',
    message: 'requests keep failing, retrying',
    fields: 'source code retryInMs error',
    meaning: 'Three attempts in a row failed.',
  },
  'source.token_retried': {
    level: 'debug',
    message: 'token refused, retrying',
    fields: 'source code retryInMs error',
    meaning: 'The token endpoint refused the credentials; a server that rotates secrets may need a moment.',
  },
  'source.token_refused': {
    level: 'error',
    message: 'token endpoint refuses the credentials',
    fields: 'source code retryInMs error',
    meaning: 'Replace the credentials of the source. Collection resumes by itself.',
  },
  'source.recovered': {
    level: 'info',
    message: 'source responds again',
    fields: 'source after',
    meaning: 'The failure with the code `after` is over.',
  },
  'source.paused': {
    level: 'error',
    message: 'collection paused',
    fields: 'source reason code error',
    meaning: 'The journal is full (`journal.maxSize` or the disk). Nothing is lost while the service keeps its log.',
  },
  'source.resumed': {
    level: 'info',
    message: 'collection resumed',
    fields: 'source seconds',
    meaning: 'The journal accepts records again.',
  },
  'source.page_unreadable': {
    level: 'warn',
    message: 'page cannot be read',
    fields: 'source page error',
    meaning: 'The service refuses this page of the live poll. The window is read again before it is closed.',
  },
  'source.page_size_refused': {
    level: 'warn',
    message: 'page size refused',
    fields: 'source pageSize error',
    meaning: 'The service does not grant this page size. A smaller one is used.',
  },
  'source.setting_reread': { level: 'info', message: 'secret read again', fields: 'setting', meaning: 'The file of a secret changed.' },
  'source.suspended': {
    level: 'error',
    message: 'source suspended',
    fields: 'source reason detail since fields windows',
    meaning: 'Rights shrank or records vanished: no window is closed. See guarantees.md, "Suspension".',
  },
  'source.still_suspended': {
    level: 'error',
    message: 'source is still suspended',
    fields: 'source reason detail since fields windows',
    meaning: 'Repeated once an hour, and when the reason changes.',
  },
  'source.suspension_ended': {
    level: 'warn',
    message: 'suspension ended',
    fields: 'source reason detail since fields windows',
    meaning: 'The service shows everything again, or an operator accepted the loss.',
  },
  'source.fields_restored': {
    level: 'info',
    message: 'fields visible again with a new token',
    fields: 'source fields',
    meaning: 'The right was restored before the source was suspended.',
  },
  'source.fields_checked': {
    level: 'debug',
    message: 'fields missing on page, present on reference record',
    fields: 'source fields records',
    meaning: 'The records of the page simply lack these fields.',
  },
  'source.time_filter_ignored': {
    level: 'error',
    message: 'source ignores the time filter',
    fields: 'source reason detail',
    meaning: 'The last windows held only records of other times. No window can be proven.',
  },
  'source.clock_measuring': {
    level: 'info',
    message: 'measuring the clock of the service; the first proof waits',
    fields: 'source to remainingMs',
    meaning: 'Records are collected and delivered meanwhile.',
  },
  'source.clock_stopped': {
    level: 'warn',
    message: 'clock of the service stands still; no window can be proven',
    fields: 'source since',
    meaning: 'The responses repeat one `Date`, as those of a cache do.',
  },
  'source.clock_reset': {
    level: 'warn',
    message: 'clock of the service measured anew',
    fields: 'source refused accepted',
    meaning: 'Most responses disagree with what was measured before.',
  },
  'source.calibrated': {
    level: 'info',
    message: 'source calibrated',
    fields: 'source first size total date precision limit fields',
    meaning: 'How the service pages, counts and dates its responses.',
  },
  'source.behaviour_changed': {
    level: 'warn',
    message: 'source behaviour changed since last calibration',
    fields: 'source first size total date precision limit fields',
    meaning: 'The service pages, counts or dates differently. `fields` names what changed.',
  },
  'source.calibration_failed': {
    level: 'warn',
    message: 'calibration failed; using the previous one',
    fields: 'source code next error',
    meaning: 'It is tried again at `next`.',
  },
  'source.total_correct': {
    level: 'info',
    message: 'totalRecords equals the records returned',
    fields: 'source from to received total',
    meaning: 'A window was read and counted record by record.',
  },
  'source.total_wrong': {
    level: 'error',
    message: 'totalRecords differs from the records returned; windows cannot be verified',
    fields: 'source from to received total',
    meaning: 'Report it to the operator of the service.',
  },
  'source.late_records_found': {
    level: 'warn',
    message: 'late records found while counting a window',
    fields: 'source records',
    meaning: 'The manual count found records that were not collected; they are stored.',
  },
  'source.unbounded_query_rejected': {
    level: 'warn',
    message: 'unbounded query rejected; using a time-bounded query',
    fields: 'source startTime endTime error',
    meaning: 'The service does not answer a query without times.',
  },
  'source.unbounded_query_accepted': {
    level: 'info',
    message: 'unbounded query accepted again',
    fields: 'source',
    meaning: 'The service answers a query without times again.',
  },
  'source.ledger_started': {
    level: 'info',
    message: 'ledger starts at the earliest record',
    fields: 'source start reason',
    meaning: '`start: earliest` was resolved.',
  },
  'source.start_pending': {
    level: 'warn',
    message: 'start not known yet',
    fields: 'source detail',
    meaning: 'The service has not answered yet; `start` cannot be resolved.',
  },
  'source.start_unknown': {
    level: 'error',
    message: 'start cannot be determined',
    fields: 'source detail',
    meaning: 'Set `start` to a literal time.',
  },
  'source.start_unread': {
    level: 'warn',
    message: 'start lies before the ledger; that time is not read',
    fields: 'source from to detail',
    meaning: 'A ledger that has begun stays. `waybill backfill` reads the earlier time.',
  },
  'window.first_proven': {
    level: 'info',
    message: 'first window proven',
    fields: 'source from to records total next',
    meaning: 'The first proof since the start of the daemon.',
  },
  'window.proven': {
    level: 'debug',
    message: 'window proven',
    fields: 'source from to total records passes',
    meaning: 'The window was read whole, as counted.',
  },
  'window.not_proven': {
    level: 'warn',
    message: 'window not proven',
    fields: 'source from to reason detail total received next',
    meaning: 'The window is a gap. It is tried again at `next`.',
  },
  'window.reread': {
    level: 'debug',
    message: 'window changed while it was read; reading again',
    fields: 'source from to total received',
    meaning: 'A record arrived between the passes.',
  },
  'window.too_wide': {
    level: 'info',
    message: 'window too wide for the service; dividing it',
    fields: 'source from to detail',
    meaning: 'The service cannot answer the window in one piece.',
  },
  'window.gap_divided': {
    level: 'info',
    message: 'gap too wide for the service; trying its halves',
    fields: 'source from to detail',
    meaning: 'Each half is a window of its own.',
  },
  'window.closed_early': {
    level: 'error',
    message: 'window closed before its time; reading again',
    fields: 'source from to stored total detail',
    meaning: 'The clock of the service was ahead when the window was closed.',
  },
  'window.recounted': {
    level: 'debug',
    message: 'recount equals the proven total',
    fields: 'source from to stored total',
    meaning: 'Nothing changed.',
  },
  'window.grew': {
    level: 'info',
    message: 'late records in a closed window; reading again',
    fields: 'source from to stored total',
    meaning: 'The recount is above the proven total.',
  },
  'window.grew_too_late': {
    level: 'error',
    message: 'window changed after its last recount',
    fields: 'source from to stored total',
    meaning: 'The window is too old to be read again without duplicates. It is listed as open.',
  },
  'window.recount_below': {
    level: 'warn',
    message: 'recount is below the proven total; recounting',
    fields: 'source from to stored total next',
    meaning: 'Three counts in a row decide.',
  },
  'window.shrunk': {
    level: 'error',
    message: 'records vanished at the service',
    fields: 'source from to stored total',
    meaning: 'The service counts fewer records than it delivered. The records are kept.',
  },
  'backfill.resumed': {
    level: 'info',
    message: 'backfill resumed',
    fields: 'source from to closedUntil',
    meaning: 'A backfill continues after a restart.',
  },
  'backfill.completed': {
    level: 'info',
    message: 'backfill completed',
    fields: 'source from to',
    meaning: 'Every window of the range is proven or a gap.',
  },
  'sink.unconfigured': {
    level: 'warn',
    message: 'sink is no longer configured',
    fields: 'sink',
    meaning: 'The state holds a sink that the configuration lacks. Its records are kept. Restore it, or `waybill sinks retire`.',
  },
  'sink.selection_changed': {
    level: 'warn',
    message: 'sources or filter of the sink changed',
    fields: 'sink sources',
    meaning: 'The sink receives other records from now on. For the sources in `sources` the ledger says nothing about earlier windows.',
  },
  'sink.first_delivery': { level: 'info', message: 'first delivery', fields: 'sink messages delaySeconds', meaning: 'The sink works.' },
  'sink.delivery_failed': {
    level: 'warn',
    message: 'delivery failed, retrying',
    fields: 'sink code attempts retryInMs error',
    meaning: 'The batch is sent again. `code` is explained in operations.md.',
  },
  'sink.delivery_blocked': {
    level: 'error',
    message: 'delivery blocked',
    fields: 'sink code attempts retryInMs error',
    meaning: 'An operator must act: a wrong setting, right or certificate. Attempts continue.',
  },
  'sink.delivery_resumed': { level: 'info', message: 'delivery resumed', fields: 'sink', meaning: 'The sink accepts messages again.' },
  'sink.dead_letter': {
    level: 'error',
    message: 'record refused for good, kept as a dead letter',
    fields: 'sink seq code',
    meaning: '`waybill dead-letters list` shows the reason; `retry` sends it again.',
  },
  'sink.records_lost': {
    level: 'error',
    message: 'sink lost delivered records',
    fields: 'sink code first last detail',
    meaning: 'The file was truncated or deleted. `waybill replay` sends the records again.',
  },
  'sink.adopted': {
    level: 'info',
    message: 'sink adopted',
    fields: 'sink acknowledged',
    meaning: 'This journal continues the data of the sink.',
  },
  'sink.close_failed': {
    level: 'warn',
    message: 'sink cannot be closed',
    fields: 'sink error',
    meaning: 'Every acknowledged message is safe.',
  },
  'sink.replay_completed': {
    level: 'info',
    message: 'replay completed',
    fields: 'sink from through sent rejected',
    meaning: 'The records were sent again.',
  },
  'sink.template_missing': {
    level: 'warn',
    message: 'index lacks the mapping of "waybill setup elasticsearch"',
    fields: 'sink target',
    meaning: 'Fields may get types that dashboards and rules do not expect.',
  },
  'sink.compression_failed': {
    level: 'warn',
    message: 'rotated file not compressed',
    fields: 'sink path error',
    meaning: 'The file is complete, and uncompressed.',
  },
  'kafka.client': { level: 'debug', message: 'kafka client', fields: 'sink name level detail', meaning: 'A line of the Kafka client.' },
} as const satisfies Record<string, LogEvent>;

export type LogEventCode = keyof typeof logEvents;

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text extends '' ? never : Text;

/** The fields that a line of this event may hold. */
export type LogFields<Code extends LogEventCode> = { readonly [Name in Words<(typeof logEvents)[Code]['fields']>]?: unknown };
