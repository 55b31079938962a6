/**
 * `waybill init`: a configuration to begin with, for one type of sink. What must be filled in is named as environment variables, so
 * that it works as it is once they are set; everything else is left to its default.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '../../clock.ts';
import { nearestOrAll } from '../../settings/nearest.ts';
import { laterSinks } from '../../config/schema.ts';
import { sinks } from '../../sink/index.ts';
import { WaybillError } from '../../errors.ts';
import type { Clock } from '../../model/time.ts';
import type { Io } from '../io.ts';

export const summary = 'prints a commented configuration with only what must be filled in';

/** What follows under `sinks` for each type that can be begun with. */
const sinkParts: Readonly<Record<string, string>> = {
  elasticsearch: `  - id: siem
    type: elasticsearch                      # lines 8 and 9; "waybill setup elasticsearch --sink siem" installs the templates
    nodes: \${env:WAYBILL_ELASTICSEARCH}     # https://es.example:9200, or a list; cloudId: in its place for a deployment in the cloud
    apiKey: \${env:WAYBILL_ELASTICSEARCH_KEY} # or username and password; rights: docs/guarantees.md, "Elasticsearch"
    # namespace: '{source}'                  # a data stream of its own for each source: logs-dpas.audit-{source}
    # tls: { ca: /etc/waybill/es-ca.pem }    # where the server's certificate is not issued by a public authority
`,
  file: `  - id: file
    type: file
    format: ecs                              # ecs, cef, leef, ocsf or raw: one a line
    path: \${env:WAYBILL_FILE:-./audit.ndjson} # the file to write; its directory must be there
`,
  kafka: `  - id: lake
    type: kafka
    format: ecs                              # ecs, cef or raw: the value of each message
    brokers: ['\${env:WAYBILL_KAFKA_BROKER}'] # host:port of one broker or more; the others are learned from them
    topic: \${env:WAYBILL_KAFKA_TOPIC}       # it must be there: "waybill setup kafka --sink lake" prints how to make it, and the rights
    # tls: { ca: /etc/waybill/kafka-ca.pem } # tls: {} where a public authority has issued the brokers' certificates
    # sasl: { mechanism: SCRAM-SHA-512, username: waybill, password: \${file:/run/secrets/kafka-password} }
    # Consumers must read committed (isolation.level=read_committed); exactlyOnce: false is at least once, without transactions.
`,
  syslog: `  - id: siem
    type: syslog
    format: cef                              # cef, leef, ecs, ocsf or raw: one a frame
    address: \${env:WAYBILL_SYSLOG}          # tls://siem.example:6514, or tcp://, udp://, relp://, relp+tls://
    # framing: newline                       # SC4S, Splunk TCP inputs and many appliances; default octet counting (RFC 6587)
    # tls: { ca: /etc/waybill/siem-ca.pem }  # where the receiver's certificate is not issued by a public authority
`,
  splunk: `  - id: splunk
    type: splunk-hec
    url: \${env:WAYBILL_SPLUNK_URL}          # address of the HTTP Event Collector, e.g. https://splunk.example:8088
    token: \${env:WAYBILL_SPLUNK_TOKEN}      # or \${file:/run/secrets/splunk-token}
    # index: dpas                            # default: that of the token
    # indexerAcknowledgement: true           # taken when Splunk has indexed it; the token must have indexer acknowledgement
    # tls: { ca: /etc/waybill/splunk-ca.pem } # where Splunk's certificate is not issued by a public authority
`,
};

export const usage = `waybill init elasticsearch|file|kafka|splunk|syslog

Prints a commented configuration for one type of sink. Write it to waybill.yaml, set the environment variables that it names (or write what
they stand for), and ask "waybill check".

Examples:
  waybill init file > waybill.yaml
  waybill init syslog | sudo tee /etc/waybill/waybill.yaml
`;

export async function run(args: string[], io: Pick<Io, 'stdout'>, clock: Clock = systemClock): Promise<number> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [type, ...others] = positionals;
  if (type === undefined || others.length > 0)
    throw new WaybillError('usage', 'cannot begin a configuration: name one type of sink, as in "waybill init file"');
  // The name of the type in a configuration counts as well.
  const name = type === 'splunk-hec' ? 'splunk' : type;
  const part = Object.hasOwn(sinkParts, name) ? sinkParts[name] : undefined;
  if (part === undefined) throw new WaybillError('usage', `cannot begin a configuration for "${type}": ${reason(type)}`);
  io.stdout.write(configuration(part, new Date(clock.now())));
  return 0;
}

function reason(type: string): string {
  const types = Object.keys(sinkParts);
  if (laterSinks.includes(type)) return `it is not in this release yet; there is ${types.join(', ')}`;
  if (sinks.some((sink) => sink.type === type))
    return `there is none for it: begin with "waybill init file", and write { id: out, type: ${type} } in the place of its sink`;
  return nearestOrAll(type, types);
}

function configuration(sink: string, now: Date): string {
  const hour = `${now.toISOString().slice(0, 13)}:00:00Z`;
  return `# Waybill: the audit trail of one service, to one sink. Everything not named here has a default (docs/configuration.md).
# \${env:NAME} stands for an environment variable, \${file:/path} for the text of a file.

dataDir: \${env:WAYBILL_STATE:-./state}       # directory on a disk that stays; one for each Waybill

sources:
  - id: production                           # a part of every event's identity: choose it once
    baseUrl: \${env:WAYBILL_BASE_URL}         # address of the service, e.g. https://service.example/v2/api
    auth:
      authUrl: \${env:WAYBILL_AUTH_URL}       # tokens come from {authUrl}/{tenantId}/oauth2/v2.0/token
      tenantId: \${env:WAYBILL_TENANT_ID}
      clientId: \${env:WAYBILL_CLIENT_ID}
      clientSecret: \${env:WAYBILL_CLIENT_SECRET} # or \${file:/run/secrets/client-secret}
      scopeAddress: \${env:WAYBILL_SCOPE_ADDRESS} # the scope is api://{scopeAddress}/.default
    subscriptionKey: \${env:WAYBILL_SUBSCRIPTION_KEY}
    # Where the ledger begins: the hour in which this was printed. An earlier time reads what the service still holds from there on;
    # once the ledger has begun, "waybill backfill" does. A literal time is the safe form: a state that was lost begins there again.
    start: ${hour}

sinks:
${sink}`;
}
