/** `waybill init`: a first configuration for one type of sink. It works as printed once the environment variables are set. */
import { systemClock } from '../../time/clock.ts';
import { nearestOrAll } from '../../settings/nearest.ts';
import { sinks } from '../../sink/index.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { defineCommand } from '../command.ts';
import type { Command } from '../form.ts';

/** The entry under `sinks` for each type. */
const sinkParts: Readonly<Record<string, string>> = {
  archive: `  - id: archive
    type: archive
    directory: \${env:WAYBILL_ARCHIVE:-./archive} # is created if it does not exist
    signingKey: \${file:./archive-key.pem}    # openssl genpkey -algorithm ed25519 -out archive-key.pem
`,
  elasticsearch: `  - id: siem
    type: elasticsearch                      # versions 8 and 9; "waybill setup elasticsearch --sink siem" installs the templates
    nodes: \${env:WAYBILL_ELASTICSEARCH}     # https://es.example:9200, or a list; for Elastic Cloud replace nodes with cloudId
    apiKey: \${env:WAYBILL_ELASTICSEARCH_KEY} # or username and password; rights: docs/guarantees.md, "Elasticsearch"
    # namespace: '{source}'                  # a separate data stream for each source: logs-dpas.audit-{source}
    # tls: { ca: /etc/waybill/es-ca.pem }    # when the certificate of the server is not issued by a public CA
`,
  file: `  - id: file
    type: file
    format: ecs                              # ecs, cef, leef, ocsf or raw: one message a line
    path: \${env:WAYBILL_FILE:-./audit.ndjson} # the file to write; its directory must exist
`,
  kafka: `  - id: lake
    type: kafka
    format: ecs                              # ecs, cef or raw: the value of each message
    brokers: ['\${env:WAYBILL_KAFKA_BROKER}'] # host:port of one or more brokers; Kafka names the others
    topic: \${env:WAYBILL_KAFKA_TOPIC}       # must exist; "waybill setup kafka --sink lake" prints how to create it, and the ACLs
    # tls: { ca: /etc/waybill/kafka-ca.pem } # tls: {} when a public CA issued the certificates of the brokers
    # sasl: { mechanism: SCRAM-SHA-512, username: waybill, password: \${file:/run/secrets/kafka-password} }
    # Consumers must read committed (isolation.level=read_committed); exactlyOnce: false delivers at least once, without transactions.
`,
  syslog: `  - id: siem
    type: syslog
    format: cef                              # cef, leef, ecs, ocsf or raw: one message a frame
    address: \${env:WAYBILL_SYSLOG}          # relp+tls://siem.example:2514: the receiver confirms each message (rsyslog: imrelp)
    # Without RELP: tls://siem.example:6514. It cannot confirm that the receiver kept a message, only that it read the connection to its end.
    # A load balancer before the receiver may lose messages by tcp://, and by tls:// if TLS ends there. udp:// confirms nothing.
    # framing: newline                       # SC4S, Splunk TCP inputs and many appliances; default octet counting (RFC 6587)
    # tls: { ca: /etc/waybill/siem-ca.pem }  # when the certificate of the receiver is not issued by a public CA
`,
  splunk: `  - id: splunk
    type: splunk-hec
    url: \${env:WAYBILL_SPLUNK_URL}          # address of the HTTP Event Collector, e.g. https://splunk.example:8088
    token: \${env:WAYBILL_SPLUNK_TOKEN}      # or \${file:/run/secrets/splunk-token}
    # index: dpas                            # default: the index of the token
    # indexerAcknowledgement: true           # delivered means indexed; the token must have indexer acknowledgement enabled
    # tls: { ca: /etc/waybill/splunk-ca.pem } # when the certificate of Splunk is not issued by a public CA
`,
};

export const initCommand = (clock: Clock): Command =>
  defineCommand({
    name: 'init',
    summary: 'prints a commented configuration with only the required settings',
    description: `Prints a commented configuration for one type of sink. Save it as waybill.yaml, set the environment variables that it names (or replace
them with values), and run "waybill check".`,
    options: {},
    positionals: { name: 'TYPE', help: Object.keys(sinkParts).join(', '), choices: Object.keys(sinkParts), max: 1 },
    examples: ['waybill init file > waybill.yaml', 'waybill init syslog | sudo tee /etc/waybill/waybill.yaml'],
    run: (_values, io, [type]) => {
      if (type === undefined) throw new WaybillError('usage', 'missing sink type; usage: waybill init file');
      // The configuration calls this type splunk-hec.
      const name = type === 'splunk-hec' ? 'splunk' : type;
      const part = Object.hasOwn(sinkParts, name) ? sinkParts[name] : undefined;
      if (part === undefined) throw new WaybillError('usage', `cannot create a configuration for "${type}": ${reason(type)}`);
      io.stdout.write(configuration(part, new Date(clock.now())));
      return 0;
    },
  });

export const command = initCommand(systemClock);

function reason(type: string): string {
  const types = Object.keys(sinkParts);
  if (sinks.some((sink) => sink.type === type))
    return `start from "waybill init file", and replace its sink with { id: out, type: ${type} }`;
  return nearestOrAll(type, types);
}

function configuration(sink: string, now: Date): string {
  const hour = `${now.toISOString().slice(0, 13)}:00:00Z`;
  return `# Waybill: the audit trail of one service, to one sink. All other settings have defaults (docs/configuration.md).
# \${env:NAME} is replaced by an environment variable, \${file:/path} by the text of a file.

dataDir: \${env:WAYBILL_STATE:-./state}       # directory on a persistent local disk; one for each Waybill

sources:
  - id: production                           # part of the identity of every event: never change it
    baseUrl: \${env:WAYBILL_BASE_URL}         # address of the service, e.g. https://service.example/v2/api
    auth:
      authUrl: \${env:WAYBILL_AUTH_URL}       # tokens come from {authUrl}/{tenantId}/oauth2/v2.0/token
      tenantId: \${env:WAYBILL_TENANT_ID}
      clientId: \${env:WAYBILL_CLIENT_ID}
      clientSecret: \${env:WAYBILL_CLIENT_SECRET} # or \${file:/run/secrets/client-secret}
      scopeAddress: \${env:WAYBILL_SCOPE_ADDRESS} # the scope is api://{scopeAddress}/.default
    subscriptionKey: \${env:WAYBILL_SUBSCRIPTION_KEY}      # delete this line if the service has no key
    # Start of the ledger: the hour in which this file was printed. Set an earlier time to read older records that the service still has;
    # once the ledger has started, use "waybill backfill". A fixed time is safest: if the state is lost, the ledger starts there again.
    start: ${hour}

sinks:
${sink}`;
}
