/** `waybill detections`: tries the detection rules of content/rules on a history. */
import { defineCommand } from '../../command.ts';
import { tryRules } from './try.ts';

export const command = defineCommand({
  name: 'detections',
  summary: 'tries the detection rules on your own history: how often each would have fired',
  description: `Evaluates the rules of content/rules on the records of an archive, or on events that a sink wrote. It prints how often each rule would have
fired, on which days and for whom, and how often with other thresholds. Opens no network connection, except to read an archive in S3.`,
  notes: `--lists names a YAML file with your exceptions: by the name of a list, its values. The accounts of service-accounts have the hours (UTC) and hosts at
which they may act:

  trusted-users: [3f0c6b1e-…]
  offices: [192.0.2.1]
  service-accounts:
    8d2e55aa-…: { hours: 1-5, hosts: [batch-1] }

Rules on the audit trail itself (no-proof, trail-broken) need ledger events: an archive has them, and a sink with "ledger: true".
try exits with 3 when lines of the archive are missing, and with 1 when they are altered.`,
  subcommands: { try: tryRules },
  examples: [
    'waybill detections try --archive ./archive',
    'waybill detections try --file events.ndjson --lists lists.yaml --rule opened-many --rule far-apart',
    'waybill encode --format ecs < records.ndjson | waybill detections try --file -',
  ],
});
