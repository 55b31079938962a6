/** The table of log events, from which docs/logs.md is generated. The event code is stable; a message may change. */
export type Level = 'debug' | 'info' | 'warn' | 'error';

export interface LogEvent {
  readonly level: Level;
  /** Constant; fields contain the values. */
  readonly message: string;
  /** Field names, separated by spaces. A field with `?` is missing in some lines of the event. */
  readonly fields: string;
  /** For docs/logs.md: the cause, and what to do. */
  readonly meaning: string;
  /** Reports the end of every failure of its source or sink: the log writes omitted failures before it, and none of them after it. */
  readonly recovers?: boolean;
  /** Written once for each source or sink: after a reload they start again, with nothing new to say. */
  readonly once?: boolean;
}

export const logEvents = {
  'daemon.starting': {
    level: 'info',
    message: 'daemon starting',
    fields: 'version file sources sinks',
    meaning: 'The configuration is valid and the daemon starts.',
  },
  'daemon.stopping': {
    level: 'info',
    message: 'daemon stopping',
    fields: 'reason',
    meaning: 'A signal or a fatal error ends the daemon; `reason` names it.',
  },
  'daemon.stopped': { level: 'info', message: 'daemon stopped', fields: '', meaning: 'The state is closed and the process ends.' },
  'daemon.batch_abandoned': {
    level: 'warn',
    message: 'shutdown timeout reached, abandoning the batch in flight',
    fields: 'shutdownTimeoutMs',
    meaning:
      'A sink did not answer within `shutdownTimeout`. The daemon reconciles the batch or sends it again when the sink starts again.',
  },
  'daemon.hung': {
    level: 'error',
    message: 'shutdown timeout reached, ending without waiting any longer',
    fields: 'shutdownTimeoutMs waitsFor',
    meaning:
      'What `waitsFor` names did not end within `shutdownTimeout`: the loop of a source or sink, or the look-up of a name. The next start ' +
      'continues as after a kill.',
  },
  'daemon.acknowledgements_unsaved': {
    level: 'warn',
    message: 'last acknowledgements not saved; reconciled at next start',
    fields: 'name code error',
    meaning:
      'The disk was full at shutdown. At the next start the daemon looks up the messages that the sink has, or sends the last batches again.',
  },
  'daemon.failed': {
    level: 'error',
    message: 'fatal error, shutting down',
    fields: 'name code? error',
    meaning: 'The daemon cannot continue. `waybill explain CODE`, with `code`, says what to do.',
  },
  'daemon.not_started': {
    level: 'error',
    message: 'daemon did not start, or ended with an error',
    fields: 'code? error stack?',
    meaning: 'The daemon could not start, or ended with an error. `waybill explain CODE`, with `code`, says what to do.',
  },
  'certificate.ending': {
    level: 'warn',
    message: 'certificate ends soon',
    fields: 'target end days',
    meaning:
      'A certificate in use ends within two weeks; `target` is its setting. Repeated daily. After `end` connections fail and records are late. Replace it: ' +
      'Waybill reads its own files again by itself.',
  },
  'telemetry.started': {
    level: 'info',
    message: 'exporting by OTLP',
    fields: 'endpoint? signals',
    meaning: 'Metrics and traces are sent to this receiver.',
  },
  'telemetry.export_failed': {
    level: 'warn',
    message: 'OTLP export failed',
    fields: 'code error',
    meaning:
      'The OTLP receiver did not accept metrics or traces. Collection and delivery are not affected. `waybill explain CODE`, with `code`, says what to do.',
  },
  'config.warning': {
    level: 'warn',
    message: 'configuration warning',
    fields: 'detail',
    meaning: 'A setting is valid but probably unintended. `waybill check` shows the same warning.',
  },
  'config.reloaded': {
    level: 'info',
    message: 'configuration reloaded',
    fields: 'file sources sinks settings',
    meaning:
      'A changed configuration is in effect. `sources` and `sinks` list the ids that were added, changed and removed, `settings` the ' +
      'changed settings of the daemon.',
  },
  'config.rejected': {
    level: 'error',
    message: 'changed configuration rejected; the previous one stays in effect',
    fields: 'problems',
    meaning:
      'Nothing was applied. `problems` lists every problem, with the text of `waybill check`. Correct the file: the daemon reads it again.',
  },
  'config.unchanged': {
    level: 'info',
    message: 'configuration read again, nothing changed',
    fields: 'file',
    meaning:
      'The daemon received SIGHUP or a file changed, but no setting has a new value. After `config.rejected`: the files are valid again.',
  },
  'log.lines_lost': {
    level: 'warn',
    message: 'log lines lost: log reader stuck or closed',
    fields: 'lines',
    meaning: 'The daemon never waits for the reader of its log. `lines` is the number of dropped lines.',
  },
  'log.level_changed': {
    level: 'info',
    message: 'log level changed',
    fields: 'minimum seconds actor',
    meaning:
      '`waybill log level` set the minimum level of the component that this line names, or of all components, for `seconds`. ' +
      '`actor` is not authenticated. Written at any level.',
  },
  'log.level_restored': {
    level: 'info',
    message: 'log level restored',
    fields: '',
    meaning:
      'The temporary level of `log.level_changed` has expired, and the configured level applies again. Written whatever the level is.',
  },
  'state.waiting_for_lock': {
    level: 'info',
    message: 'waiting for another process to release the state',
    fields: 'dataDir lockWaitMs',
    meaning: 'Another process owns the state, for example during a rolling update.',
  },
  'state.created': {
    level: 'warn',
    message: 'new state created',
    fields: 'dataDir journal',
    meaning: '`dataDir` held no state. This is expected at the first start only; otherwise the volume was lost or is not mounted.',
  },
  'state.opened': {
    level: 'info',
    message: 'state opened',
    fields: 'dataDir journal head',
    meaning: 'The daemon owns the state. `head` is the last journal entry.',
  },
  'state.checked': {
    level: 'info',
    message: 'state checked',
    fields: 'head',
    meaning: 'The self-check read the whole journal and found no damage.',
  },
  'shard.taken': {
    level: 'info',
    message: 'shard taken',
    fields: 'shard epoch',
    meaning: 'This member of the fleet owns the shard from now on: it was free, or the lease of its last owner had ended.',
  },
  'shard.released': {
    level: 'info',
    message: 'shard released',
    fields: 'shard epoch',
    meaning: 'This member has ended the loops of the shard and stored everything. Another member takes it.',
  },
  'shard.lost': {
    level: 'warn',
    message: 'shard lost to another member',
    fields: 'shard epoch',
    meaning:
      'This member did not renew its lease in time, and another one took the shard. Nothing is lost: what was not committed is discarded, and the ' +
      'other member collects it again.',
  },
  'shard.repaired': {
    level: 'error',
    message: 'the database had lost commits, and has their rows again',
    fields: 'shard epoch first last',
    meaning:
      'After a fail-over to a standby that lacked the commits `first` to `last` of the shard, or a restore to a point in time. Their owner has written ' +
      'all their rows again: nothing is missing, and what sinks received agrees with it. `waybill status` shows it for a day.',
  },
  'shard.rolled_back': {
    level: 'error',
    message: 'the database lost commits, and their owner could not write them again',
    fields: 'shard epoch code first last',
    meaning:
      'After a fail-over or a restore the database lacks the commits `first` to `last`. Their owner could not write them again: it lost its lease with ' +
      'them, or the loss is too long (`shard.failed`). The next owner continues from the older state. `waybill status` shows it for a week; ' +
      '`waybill explain database_rolled_back` says what each sink then has.',
  },
  'shard.failed': {
    level: 'error',
    message: 'shard ended by an error',
    fields: 'shard epoch code? error',
    meaning:
      'The other shards continue. A member takes the shard again, and loads it from the database. `waybill explain CODE`, with `code`, says what to do.',
  },
  'fleet.database_away': {
    level: 'error',
    message: 'cannot reach the database of the fleet, trying again',
    fields: 'error',
    meaning: 'Commits wait and nothing is lost. Written once until the database answers again.',
  },
  'state.write_delayed': {
    level: 'error',
    message: 'cannot write the state, trying again',
    fields: 'code? error',
    meaning:
      'A source or sink of a changed configuration cannot be stored: the disk is full, or the journal has reached `journal.maxSize`. The ' +
      'source or sink starts when there is space again. `waybill explain CODE`, with `code`, says what to do.',
  },
  'journal.pruned': {
    level: 'debug',
    message: 'journal pruned',
    fields: 'entries',
    meaning: 'Entries that every sink acknowledged and that are older than `journal.retention` were removed.',
  },
  'operation.performed': {
    level: 'info',
    message: 'operation performed',
    fields: 'operation actor source? sink? reason?',
    meaning: 'An operator changed the state by a command. `actor` is not authenticated.',
  },
  'admin.listening': {
    level: 'info',
    message: 'admin server listening',
    fields: 'addresses',
    meaning: 'The admin server serves probes, metrics and reports.',
  },
  'admin.failed': {
    level: 'error',
    message: 'admin server failed, restarting',
    fields: 'error',
    meaning: 'The thread of the admin server ended and is restarted. Collection and delivery continue.',
  },
  'admin.restarted': { level: 'info', message: 'admin server restarted', fields: '', meaning: 'The admin server responds again.' },
  'admin.request_failed': {
    level: 'error',
    message: 'admin request failed',
    fields: 'error url?',
    meaning: 'The admin server answered a request with status 500.',
  },
  'admin.sample_failed': {
    level: 'warn',
    message: 'cannot add a data point to the history of the status page',
    fields: 'detail',
    meaning:
      'The admin server could not read the state, so the history on the status page lacks a data point. Collection and delivery continue.',
  },
  'admin.wrong_tokens': {
    level: 'warn',
    message: 'too many wrong tokens at the admin server',
    fields: 'address',
    meaning: 'The admin server refuses wrong tokens from this address with status 429. A valid token is always accepted.',
  },
  'source.unconfigured': {
    level: 'warn',
    message: 'source is no longer configured',
    fields: 'source',
    meaning: 'The state holds a source that the configuration lacks. Restore it in the configuration, or run `waybill sources retire`.',
  },
  'source.first_token': {
    level: 'info',
    message: 'first token obtained',
    fields: 'source seconds',
    meaning: 'The token endpoint accepted the credentials for the first time since the daemon started. The token is valid for `seconds`.',
    once: true,
  },
  'source.first_record': {
    level: 'info',
    message: 'first record collected',
    fields: 'source records',
    meaning: 'The first record since the daemon started was stored.',
    once: true,
  },
  'source.complete_until': {
    level: 'info',
    message: 'progress of the source',
    fields: 'source completeUntil',
    meaning: 'Every window before `completeUntil` is proven, or an operator accepted its gap. Written once an hour.',
  },
  'source.request_retried': {
    level: 'info',
    message: 'request failed, retrying',
    fields: 'source code? retryInMs error',
    meaning: 'A request failed. It is repeated after `retryInMs`.',
  },
  'source.request_failing': {
    level: 'warn',
    message: 'requests keep failing, retrying',
    fields: 'source code? retryInMs error',
    meaning: 'At least three attempts in a row failed. `waybill explain CODE`, with `code`, says what to do.',
  },
  'source.token_retried': {
    level: 'debug',
    message: 'token request refused, retrying',
    fields: 'source code? retryInMs error',
    meaning: 'The token endpoint refused the credentials. After a rotation, the server may need a moment before it accepts the new secret.',
  },
  'source.token_refused': {
    level: 'error',
    message: 'token endpoint refuses the credentials',
    fields: 'source code? retryInMs error',
    meaning: 'Replace the credentials of the source. Collection then resumes without a restart.',
  },
  'source.recovered': {
    level: 'info',
    message: 'source responds again',
    fields: 'source after?',
    meaning: 'A request succeeded. `after` is the code of the previous failure.',
    recovers: true,
  },
  'source.paused': {
    level: 'error',
    message: 'collection paused',
    fields: 'source reason? code? error?',
    meaning: 'The journal has reached `journal.maxSize`, or the disk is full. Nothing is lost while the service keeps its log.',
  },
  'source.resumed': {
    level: 'info',
    message: 'collection resumed',
    fields: 'source seconds',
    meaning: 'The journal has room again. Collection was paused for `seconds`.',
    recovers: true,
  },
  'source.page_unreadable': {
    level: 'warn',
    message: 'page cannot be read',
    fields: 'source page error',
    meaning: 'A page of the live poll cannot be read. Its window is read again before it is closed.',
  },
  'source.page_size_refused': {
    level: 'warn',
    message: 'page size refused',
    fields: 'source? pageSize error',
    meaning: 'The service does not accept this page size. A smaller one is used.',
  },
  'source.setting_reread': {
    level: 'info',
    message: 'secret read again',
    fields: 'setting',
    meaning: 'The file of a secret changed, and the new value is used.',
  },
  'source.moved': {
    level: 'warn',
    message: 'source is polled at another address',
    fields: 'source? before present windows',
    meaning:
      'The host of `baseUrl` changed, or an operator moved the source. Every proven window is in doubt until it was counted once more. See operations.md, "A source moves".',
  },
  'source.suspended': {
    level: 'error',
    message: 'source suspended',
    fields: 'source reason detail since fields? windows?',
    meaning:
      'The service shows fewer fields or records than before, times that cannot be right, or records that it does not find by their times; or `baseUrl` or `tenantId` names another service. No window is closed. See operations.md, "Suspended".',
  },
  'source.still_suspended': {
    level: 'error',
    message: 'source is still suspended',
    fields: 'source reason detail since fields? windows?',
    meaning: 'Written when the daemon starts with a suspended source, and when a recount finds more during the suspension.',
  },
  'source.suspension_ended': {
    level: 'warn',
    message: 'suspension ended',
    fields: 'source reason detail since fields? windows?',
    meaning: 'The service shows everything again, or an operator accepted the loss.',
    recovers: true,
  },
  'source.fields_restored': {
    level: 'info',
    message: 'fields visible again with a new token',
    fields: 'source fields',
    meaning: 'Records that were read with a new token contain the missing fields, so the source is not suspended.',
  },
  'source.fields_checked': {
    level: 'debug',
    message: 'fields missing on page, present on reference record',
    fields: 'source fields records',
    meaning:
      'No record of the page has these fields. To check, Waybill requested an older record that has them. The service still shows them: no permission was lost, and collection continues.',
  },
  'source.time_filter_ignored': {
    level: 'error',
    message: 'source ignores the time filter',
    fields: 'source reason detail',
    meaning: 'Three windows in a row held records of other times. No window can be proven. Report it to the team that runs the service.',
  },
  'source.record_outside': {
    level: 'error',
    message: 'record outside of every window',
    fields: 'source detail',
    meaning:
      'The service holds a record that no window can hold: it is dated before 1970, far in the future, or with `start: earliest` before the ledger. No ledger is complete with it. See operations.md, "Suspended".',
  },
  'source.clock_measuring': {
    level: 'info',
    message: 'measuring the clock of the service; first proof pending',
    fields: 'source to remainingMs',
    meaning: 'The measurement ends at `to`. Until then, records are collected and delivered, but no window is proven.',
  },
  'source.clock_stopped': {
    level: 'warn',
    message: 'clock of the service does not advance; no window can be proven',
    fields: 'source since',
    meaning: 'The responses repeat one `Date`, as a cache does.',
  },
  'source.clock_reset': {
    level: 'warn',
    message: 'clock of the service measured again',
    fields: 'source refused accepted',
    meaning: 'Most responses contradict the previous measurement, which is discarded.',
  },
  'source.answers_aged': {
    level: 'warn',
    message: 'answers have an Age: they are collected, and prove nothing',
    fields: 'source age',
    meaning:
      'A cache between Waybill and the service says of its answers that they are `age` seconds old, so a count may miss records. Records are ' +
      'delivered; no window is proven until answers come without `Age`. Let the cache pass requests with `Cache-Control: no-cache` on.',
  },
  'source.calibrated': {
    level: 'info',
    message: 'source calibrated',
    fields: 'source firstPage? pageSize total? dated',
    meaning:
      'The fields show how the service pages, counts and dates its responses. Without `total` the service gives no usable `totalRecords`, and no window can be proven.',
  },
  'source.behaviour_changed': {
    level: 'warn',
    message: 'source behaviour changed since last calibration',
    fields: 'source firstPage? pageSize total? dated fields',
    meaning: 'The service pages, counts or dates its responses differently. `fields` names the changed properties.',
  },
  'source.calibration_failed': {
    level: 'warn',
    message: 'calibration failed; using the previous one',
    fields: 'source code? next error',
    meaning: 'The calibration is repeated at `next`.',
  },
  'source.late_records_found': {
    level: 'warn',
    message: 'late records found among the newest and the oldest records',
    fields: 'source records',
    meaning:
      'Waybill read the newest and the oldest records without times, and found records of closed windows that it lacked. They are stored.',
  },
  'source.unbounded_query_rejected': {
    level: 'warn',
    message: 'unbounded query rejected; using a time-bounded query',
    fields: 'source startTime? endTime? error?',
    meaning: 'The service refuses a query without times.',
  },
  'source.open_query_rejected': {
    level: 'warn',
    message: 'query with only one time rejected; using both times',
    fields: 'source startTime? endTime? error',
    meaning: 'The service demands both times or none. Live polls send an `endTime` too: a day ahead, or the present.',
  },
  'source.unbounded_query_accepted': {
    level: 'info',
    message: 'unbounded query accepted again',
    fields: 'source',
    meaning: 'The service accepts a query without times again.',
    recovers: true,
  },
  'source.ledger_started': {
    level: 'info',
    message: 'ledger starts at the earliest record',
    fields: 'source start reason',
    meaning: '`start: earliest` was resolved: the field `start` is the time of the earliest record.',
  },
  'source.start_pending': {
    level: 'warn',
    message: 'start of the source not known yet',
    fields: 'source detail',
    meaning:
      'The clocks of the service and of this machine differ by more than an hour, so `start` cannot be resolved. ' +
      'Waybill asks again for up to ten minutes.',
  },
  'source.start_unknown': {
    level: 'error',
    message: 'cannot determine the start time of the source',
    fields: 'source detail',
    meaning: 'Set `start` to a literal time, such as 2026-07-01T00:00:00Z.',
  },
  'source.start_unread': {
    level: 'warn',
    message: 'start is before the start of the ledger; the time between is not collected',
    fields: 'source from to detail',
    meaning:
      'A changed `start` does not move the start of an existing ledger. `detail` has the `waybill backfill` command that collects the earlier time.',
  },
  'window.first_proven': {
    level: 'info',
    message: 'first window proven',
    fields: 'source from to counted received inWindow next',
    meaning:
      'The first proof since the daemon started: the service returned as many records (`received`) as it counted for the query of the window, which reaches one second beyond both ends. `inWindow`: the records with a time in the window.',
    once: true,
  },
  'window.proven': {
    level: 'debug',
    message: 'window proven',
    fields: 'source from to counted received inWindow passes',
    meaning: 'The service returned as many records as it counted.',
  },
  'window.not_proven': {
    level: 'warn',
    message: 'window not proven',
    fields: 'source from to reason detail total? received next?',
    meaning: 'The window is a gap. It is read again at `next`.',
  },
  'window.reread': {
    level: 'debug',
    message: 'window changed since it was read; reading again',
    fields: 'source from to total? received',
    meaning: 'The window was read before its close delay had passed, and the count after that delay differs.',
  },
  'window.too_wide': {
    level: 'info',
    message: 'window too wide for the service; dividing it',
    fields: 'source from to detail',
    meaning: 'The service cannot answer the query of the whole window.',
  },
  'window.gap_divided': {
    level: 'info',
    message: 'gap too wide for the service; dividing it',
    fields: 'source from to detail',
    meaning: 'Each half becomes a window.',
  },
  'window.closed_early': {
    level: 'error',
    message: 'window closed at a time that is in the future; counting again',
    fields: 'source from to stored? detail',
    meaning:
      'By the clock of the service the window was closed in the future: the clock was ahead when the window was closed, or is behind now. ' +
      '`stored` is the proven total.',
  },
  'window.recounted': {
    level: 'debug',
    message: 'recount equals the proven total',
    fields: 'source from to stored total',
    meaning: 'The service still counts `stored` records.',
  },
  'window.grew': {
    level: 'info',
    message: 'late records in a closed window; reading again',
    fields: 'source from to stored? total?',
    meaning: 'The service counts more records than the proven total.',
  },
  'window.grew_too_late': {
    level: 'error',
    message: 'window changed after its last recount',
    fields: 'source from to stored? total?',
    meaning:
      'Its records are too old to be deduplicated, so it is not read again, and records may be missing. The ledger lists it as in doubt.',
  },
  'window.recount_below': {
    level: 'warn',
    message: 'recount is below the proven total; recounting',
    fields: 'source from to stored? total next',
    meaning: 'Three lower counts in a row mark the window as shrunk.',
  },
  'window.shrunk': {
    level: 'error',
    message: 'records no longer shown by the service',
    fields: 'source from to stored? total',
    meaning:
      'The service counts `total` records, and showed more before (`stored`). Waybill keeps the records. See operations.md, "Windows shrunk".',
  },
  'backfill.started': {
    level: 'info',
    message: 'backfill started',
    fields: 'source from to readUntil',
    meaning: 'The first window of a backfill since the daemon started. The range is read until `readUntil`.',
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
    meaning:
      'The state holds a sink that the configuration lacks. Its records are kept. Restore it in the configuration, or run `waybill sinks retire`.',
  },
  'sink.selection_changed': {
    level: 'warn',
    message: 'sources or filter of the sink changed',
    fields: 'sink sources',
    meaning:
      'The sink receives other records from now on. For each source in `sources`, the ledger counts deliveries to this sink from now on only, and makes no statement on earlier windows.',
  },
  'sink.first_delivery': {
    level: 'info',
    message: 'first delivery',
    fields: 'sink messages delaySeconds',
    meaning: 'The first delivery since the daemon started.',
    once: true,
  },
  'sink.delivery_failed': {
    level: 'warn',
    message: 'delivery failed, retrying',
    fields: 'sink code? attempts retryInMs error',
    meaning: 'The batch is sent again after `retryInMs`. `waybill explain CODE`, with `code`, says what to do.',
  },
  'sink.delivery_blocked': {
    level: 'error',
    message: 'delivery blocked',
    fields: 'sink code? attempts retryInMs error',
    meaning: 'A setting, permission or certificate is wrong, and an operator must correct it. Attempts continue.',
  },
  'sink.delivery_resumed': {
    level: 'info',
    message: 'delivery resumed',
    fields: 'sink',
    meaning: 'The sink accepts messages again.',
    recovers: true,
  },
  'sink.topic_compacted': {
    level: 'error',
    message: 'brokers delete messages of the topic',
    fields: 'sink topic detail',
    meaning: 'The topic of a sink `kafka` is compacted, and the key is not the uid. Set `cleanup.policy=delete`, or `key: uid`.',
  },
  'sink.records_dropped': {
    level: 'warn',
    message: 'the receiver drops records',
    fields: 'sink',
    meaning:
      'A pipeline of the receiver drops records, which count as delivered (`dropped: count`). Logged once; `waybill_sink_dropped_total` counts them.',
  },
  'sink.dead_letter': {
    level: 'error',
    message: 'record rejected permanently, stored as a dead letter',
    fields: 'sink seq code',
    meaning: '`waybill dead-letters list` shows the reason, and `waybill dead-letters retry` sends the record again.',
  },
  'sink.records_lost': {
    level: 'error',
    message: 'sink lost delivered records',
    fields: 'sink code first last detail',
    meaning:
      'The file was truncated or deleted: `waybill replay` sends the records again. Or the archive was replaced by an older copy (`archive_broken`): restore it.',
  },
  'archive.time_stamped': {
    level: 'info',
    message: 'checkpoint stamped',
    fields: 'sink path',
    meaning: 'A time-stamping authority signed the time of the newest checkpoint. The token is at `path` of the archive.',
  },
  'archive.time_stamp_failed': {
    level: 'warn',
    message: 'cannot stamp the newest checkpoint, retrying',
    fields: 'sink retryInMs error',
    meaning:
      'The authority did not answer, its token is not valid or is from before the previous one, or another file has the name of the token. The archive continues without one for this day.',
  },
  'archive.segments_removed': {
    level: 'info',
    message: 'segments removed from the archive',
    fields: 'sink segments',
    meaning: 'An operator ordered it (`archive prune`), and a checkpoint had signed the order.',
  },
  'archive.removal_failed': {
    level: 'warn',
    message: 'cannot remove segments from the archive, trying again with the next segment',
    fields: 'sink error',
    meaning: 'An operator ordered the removal (`archive prune`). A lock or a legal hold of the bucket, or a missing right, prevents it.',
  },
  'archive.cosigned': {
    level: 'debug',
    message: 'checkpoint cosigned',
    fields: 'sink witness path',
    meaning: 'A witness cosigned the newest checkpoint. The cosignature is at `path` of the archive.',
  },
  'archive.cosign_failed': {
    level: 'warn',
    message: 'cannot get a cosignature, retrying',
    fields: 'sink witness retryInMs error',
    meaning:
      'The witness did not answer, its cosignature is not valid, or it refused: it does not know the public key of the archive, or it has cosigned another history or more lines than the archive has. The archive continues without the cosignature.',
  },
  'sink.adopted': {
    level: 'info',
    message: 'sink adopted',
    fields: 'sink acknowledged',
    meaning:
      'An operator declared that the data in the sink came from this journal (`sinks adopt`). Delivery starts after entry `acknowledged`.',
  },
  'sink.close_failed': {
    level: 'warn',
    message: 'cannot close the sink',
    fields: 'sink error',
    meaning: 'Acknowledged messages are not affected.',
  },
  'sink.replay_completed': {
    level: 'info',
    message: 'replay completed',
    fields: 'sink from through sent rejected',
    meaning: 'The records of the range were sent again.',
  },
  'sink.replay_cancelled': {
    level: 'warn',
    message: 'replay cancelled',
    fields: 'sink from through sent rejected',
    meaning:
      'An operator cancelled the replay. Entries `from` to `through` were not sent again: `waybill replay` with this range sends them.',
  },
  'sink.archive_replay_completed': {
    level: 'info',
    message: 'replay from the archive completed',
    fields: 'sink archive sent rejected leftOut',
    meaning:
      'The sink received the records on each line of the archive, except on the `leftOut` lines that an operator left out (`waybill replay --archive --from LINE`).',
  },
  'sink.archive_replay_failed': {
    level: 'error',
    message: 'replay from the archive failed',
    fields: 'sink archive? at code? retryInMs error',
    meaning:
      'The archive cannot be read after line `at`: the error names the lines that are missing or altered. The records before them were sent, and new ' +
      'records are delivered. The daemon tries again after `retryInMs`, and continues after line `at`; `waybill replay --archive --from LINE` goes on ' +
      'behind the lines.',
  },
  'sink.archive_record_rejected': {
    level: 'error',
    message: 'record of the archive rejected permanently',
    fields: 'sink uid? code',
    meaning: 'The sink rejected a record of a replay from an archive. It is no dead letter: the archive keeps it.',
  },
  'sink.template_missing': {
    level: 'warn',
    message: 'index template of "waybill setup elasticsearch" missing',
    fields: 'sink target',
    meaning: 'Without it Elasticsearch may map fields to types that dashboards and rules do not expect. Run `waybill setup elasticsearch`.',
  },
  'sink.compression_failed': {
    level: 'warn',
    message: 'rotated file not compressed',
    fields: 'sink path error',
    meaning: 'The file is complete but not compressed. Compression is tried again after the next rotation.',
  },
  'kafka.client': {
    level: 'debug',
    message: 'kafka client',
    fields: 'sink name severity detail',
    meaning: 'A log line of the Kafka client library.',
  },
} as const satisfies Record<string, LogEvent>;

export type LogEventCode = keyof typeof logEvents;

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text extends '' ? never : Text;

type Word<Code extends LogEventCode> = Words<(typeof logEvents)[Code]['fields']>;
type RequiredField<Code extends LogEventCode> = Exclude<Word<Code>, `${string}?`>;
type OptionalField<Code extends LogEventCode> = Word<Code> extends infer Name ? (Name extends `${infer Plain}?` ? Plain : never) : never;

/** The fields of a line of this event, which refuse others: an object type alone accepts them in a spread or a variable. */
type Fields<Code extends LogEventCode, Given> = Given & {
  readonly [Name in RequiredField<Code>]: Name extends 'error' ? unknown : string | number | boolean | object | null;
} & {
  readonly [Name in OptionalField<Code>]?: unknown;
} & { readonly [Name in Exclude<keyof Given, RequiredField<Code> | OptionalField<Code>>]?: undefined };

/** What follows the event: its fields, or nothing if none is required. */
export type LogFields<Code extends LogEventCode, Given extends object> = [RequiredField<Code>] extends [never]
  ? [fields?: Fields<Code, Given>]
  : [fields: Fields<Code, Given>];
