/**
 * content/sc4s in a real syslog-ng: the sink `syslog` sends CEF, and the shipped parser turns it
 * into Splunk events.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { syslog } from '../../src/sink/syslog/index.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { batchOf, contextOf, message, ModelKept } from '../support/sinks/sink-batches.ts';
import { until } from '../support/e2e-place.ts';
import { encoder } from '../support/encode/texts.ts';
import { fullest, poorest, recordOf, settings } from '../support/normalize/records.ts';
import { notAsked } from '../support/servers/programs.ts';
import { syslogNg, syslogNgMissing } from '../support/servers/syslog-ng.ts';
import type { Program } from '../support/servers/syslog-receiver.ts';
import { SyslogReceiver } from '../support/servers/syslog-receiver.ts';

const shipped = (name: string): string => fileURLToPath(new URL(`../../content/sc4s/${name}`, import.meta.url));

/**
 * The parts of SC4S 3.45 that interact with the parser, in its order: newline framing, the header,
 * applications by program, the generic parser of CEF (only marked here), and splunk_metadata.csv.
 */
const sc4s: Program = {
  ...syslogNg,
  name: 'syslog-ng with the parser of content/sc4s',
  ways: ['tcp'],
  configure: ({ at, ports }) => `@version: 3.38
options { keep-hostname(yes); chain-hostnames(no); use-dns(no); log-msg-size(65536); stats-freq(0); frac-digits(3); time-zone("UTC"); };
block rewrite r_set_splunk_dest_default(index("main") source("sc4s") sourcetype("") vendor("") product("") template("t_hdr_msg")) {
  set("\`index\`" value(".splunk.index"));
  set("\`source\`" value(".splunk.source"));
  set("\`sourcetype\`" value(".splunk.sourcetype"));
  set("\`vendor\`" value("fields.sc4s_vendor"));
  set("\`product\`" value("fields.sc4s_product"));
  set("\`template\`" value(".splunk.sc4s_template"));
};
template t_msg_only { template("$MSGONLY"); };
template t_hdr_msg { template("$MSGHDR$MESSAGE"); };
block parser generic-cef() { channel { rewrite { r_set_splunk_dest_default(sourcetype("cef")); }; }; };
application generic-cef[sc4s-syslog] {
  filter { message("CEF:0" type(string) flags(substring)); };
  parser { generic-cef(); };
};
@include "${shipped('app-syslog-waybill_dpas.conf')}"
source tcp { network(ip(127.0.0.1) port(${ports.tcp}) transport("tcp") flags(no-parse)); };
parser header {
  channel {
    if { filter { message('^<[0-9]+>1 '); }; parser { syslog-parser(flags(syslog-protocol)); }; }
    else { parser { syslog-parser(); }; };
  };
};
parser applications {
  channel {
    if { parser { app-parser(topic(sc4s-syslog-pgm)); }; }
    elif { parser { app-parser(topic(sc4s-syslog)); }; };
  };
};
parser metadata {
  add-contextual-data(selector("\${fields.sc4s_vendor}_\${fields.sc4s_product}")
    database("${shipped('splunk_metadata.csv')}") prefix(".splunk.") ignore-case(yes));
};
template event { template("$(format-json time=$ISODATE host=$HOST index=\${.splunk.index} sourcetype=\${.splunk.sourcetype}
  source=\${.splunk.source} event=$(template \${.splunk.sc4s_template:-t_hdr_msg}) id=\${fields.id})\\n"); };
log { source(tcp); parser(header); parser(applications); parser(metadata); destination { file("${at('tcp.json')}" template(event)); }; };
`,
};

interface SplunkEvent {
  readonly time: string;
  readonly host: string;
  readonly index: string;
  readonly sourcetype: string;
  readonly source: string;
  readonly event: string;
  readonly id?: string;
}

describe('the parser of SC4S', () => {
  const missing = notAsked() ?? syslogNgMissing('add-contextual-data');
  let receiver: SyslogReceiver;
  beforeAll(async () => {
    if (missing === undefined) receiver = await SyslogReceiver.start(sc4s);
  }, 60_000);
  afterAll(() => (missing === undefined ? receiver[Symbol.asyncDispose]() : undefined));
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  const forgedUid = 'x WaybillDpasUid=AAAAAAAAAAAAAAAAAAAAAA';
  const names = ['plain.docx', 'a|b=c\\d', 'two\nlines', 'x CEF:0|Evil|Evil|1|1|forged|10|', forgedUid, 'Ж€𝄞"]', 'x'.repeat(2000)];
  const encode = encoder('cef', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
  const records = [poorest, ...names.map((payloadName) => ({ ...fullest, payloadName }))].map((each) => recordOf(JSON.stringify(each)));
  const lines = records.map((record) => encode(normalizer(settings)(record)));

  async function sent(header: 'rfc5424' | 'rfc3164', appName: string, texts: readonly string[]): Promise<readonly SplunkEvent[]> {
    const received = (): SplunkEvent[] => receiver.received('tcp') as unknown as SplunkEvent[];
    const before = received().length;
    const address = receiver.address('tcp');
    const line = { framing: 'newline', facility: 'local4', hostname: 'gateway-1', confirm: 'close', tls: undefined } as const;
    await using sink = await syslog.open(
      { ...line, address, header, appName },
      contextOf('siem', { format: 'cef' }),
      new ModelKept(),
      new AbortController().signal,
    );
    await sink.send(batchOf(texts.map((text, at) => message(at + 1, text))), AbortSignal.timeout(10_000));
    return await until(
      () => `${texts.length} events, but ${received().length - before}`,
      15_000,
      () => (received().length - before >= texts.length ? received().slice(before) : undefined),
    );
  }

  test.each(['rfc5424', 'rfc3164'] as const)('%s: each message is one event of dpas:cef, unchanged, with the uid as id', async (header) => {
    const found = await sent(header, 'waybill', lines);
    expect(found.map(({ event }) => event.trim())).toEqual(lines);
    expect(found.map(({ id }) => id)).toEqual(records.map(({ uid }) => uid));
    for (const { index, sourcetype, source, host } of found)
      expect({ index, sourcetype, source, host }).toEqual({ index: 'dpas', sourcetype: 'dpas:cef', source: 'waybill', host: 'gateway-1' });
    expect(found[0]?.time).toMatch(header === 'rfc5424' ? /^2026-11-20T00:00:00\.000/ : /^\d{4}-11-20T00:00:00/);
  });

  test('messages of other programs go to the other parsers', async () => {
    const [line = ''] = lines;
    const found = await sent('rfc5424', 'another', [line]);
    expect(found).toMatchObject([{ sourcetype: 'cef' }]);
    expect(found[0]?.id ?? '').toBe('');
  });

  test('splunk_metadata.csv sets only the index and the source type of the parser', () => {
    const parser = readFileSync(shipped('app-syslog-waybill_dpas.conf'), 'utf8');
    const rows = readFileSync(shipped('splunk_metadata.csv'), 'utf8').trimEnd().split('\n').map((row) => row.split(',')); // prettier-ignore
    for (const [key, name = '', value = ''] of rows) {
      expect(key).toBe('waybill_dpas');
      expect(parser).toContain(`${name}("${value}")`);
    }
    expect(rows).toHaveLength(2);
  });
});
