/** The page of `waybill demo --attack`: what the terminal shows, without scripts. Every text of a record is escaped. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from '../../../connect/node-http.ts';
import { policyOf, style } from '../../../report/ledger/html-style.ts';
import { table } from '../../../report/ledger/html-tables.ts';
import { lines, markup, none, trusted, type Html } from '../../../report/markup.ts';
import { joined } from '../../../report/chunks.ts';
import { systemClock } from '../../../time/clock.ts';
import type { Findings } from './alerts.ts';
import type { eventParts } from './line.ts';

const eventsAtMost = 12;
const denialsAtMost = 5;

export interface Shown {
  readonly findings: Findings;
  /** Events, the newest first. */
  readonly newest: readonly ShownEvent[];
  readonly hasEnded: boolean;
}

type ShownEvent = ReturnType<typeof eventParts> & { readonly isDenied: boolean };

/** The newest events, and the newest denials, which are rare. @param events  the newest first */
export function newestOf(events: readonly ShownEvent[]): readonly ShownEvent[] {
  const denials = events.filter(({ isDenied }) => isDenied).slice(0, denialsAtMost);
  return events.filter((event, i) => i < eventsAtMost || denials.includes(event));
}

const ownStyle = `
h2 { border: 0; padding: 0; margin-top: 1.5rem; } h2, dd { overflow-wrap: anywhere; }
.alert { border: 1px solid var(--line); border-left: .35rem solid var(--bad); border-radius: .3rem; padding: .6rem 1.1rem; margin: .5rem 0; }
.alert.medium { border-left-color: var(--warn); } .alert.medium .summary { color: var(--warn); }
.alert h3, .alert .summary { display: inline-block; margin: 0 .6rem .4rem 0; }
.alert dd { max-width: none; }
.scroll table { width: 100%; } td.words { width: 40%; }
`;
const policy = policyOf(`${style}${ownStyle}`);
const refreshMs = 1_000;

function demoPage({ findings: { total, alerts, person, mail, steps }, newest, hasEnded }: Shown): string {
  const page = lines([
    trusted('<!doctype html>'),
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    markup`<title>${total}: Waybill demo</title><style>${trusted(`${style}${ownStyle}`)}</style></head>`,
    markup`<body><header><h1>An attack on protected files, as an analyst sees it</h1>`,
    markup`<p class="meta">A simulated company of 500 people: all names are invented. ${total}. ${hasEnded ? 'The demo has ended.' : 'This page follows the demo.'}</p></header><main id="content">`,
    markup`<section id="newest"><h2>1. Everyday work, as it arrives</h2>`,
    table(
      'The newest events and denials. Denials are red, events of the person in the alert are bold. Times are in UTC; the delay is until receipt',
      ['Time', 'Delay', 'User', 'Outcome', 'File'],
      newest.map(({ time, what, who, file, delay, isDenied }) =>
        cells([time, delay, who, what], file, isDenied ? 'bad' : '', who === mail),
      ),
    ),
    markup`</section><section id="alerts"><h2>2. The alert: who, which files, and what to do</h2>`,
    ...(alerts.length === 0 ? [markup`<p class="note">None yet: the attack begins after some seconds.</p>`] : alerts.map(alertPart)),
    markup`</section>`,
    person === undefined
      ? none
      : lines([
          markup`<section id="timeline"><h2>3. What ${person} did</h2>`,
          table(
            'All events of this person, by kind and machine',
            ['Time', 'Outcome', 'Machine', 'Files'],
            steps.map(({ time, what, host, files }) => cells([time, what, host], files)),
          ),
          markup`</section>`,
        ]),
    markup`</main></body></html>`,
    none,
  ]);
  return [...joined([page.chunks], '')].join('');
}

/** @param last  a text that may be long, in a column that breaks lines */
function cells(texts: readonly string[], last: string, tone = '', isBold = false): readonly Html[] {
  const marked = (text: string): Html => (isBold ? markup`<b>${text}</b>` : markup`${text}`);
  return [
    ...texts.map((each) => markup`<td class="t ${tone}">${marked(each)}</td>`),
    markup`<td class="words ${tone}">${marked(last)}</td>`,
  ];
}

function alertPart({ title, facts, severity, rule, times }: Findings['alerts'][number]): Html {
  const names = facts.map(([name, value], i) => [facts[i - 1]?.[0] === name ? '' : name, value] as const);
  return lines([
    markup`<article class="alert ${severity}"><p class="summary bad">ALERT ${severity}</p><h3>${title}</h3>`,
    markup`<dl>${names.map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`,
    markup`<p class="note">Rule <code>${rule}</code>${times === 1 ? none : markup`, ${String(times)} alerts of this person`}.</p></article>`,
  ]);
}

/** Serves a page on a free port of loopback, at its own address only. */
export class PageServer {
  readonly #server;
  #readAt = -Infinity;
  #read = Promise.withResolvers<undefined>();

  constructor(shown: () => Shown) {
    this.#server = createServer({ maxHeaderSize: 16_384, requestTimeout: 10_000 }, (request, response) => {
      // Under another name a foreign page could read this one (DNS rebinding).
      if (request.headers.host !== this.#host || request.url !== '/') {
        response.writeHead(404).end();
        return;
      }
      const now = shown();
      this.#readAt = systemClock.monotonic();
      const headers = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': `${policy}; frame-ancestors 'none'`,
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        ...(now.hasEnded ? {} : { refresh: String(refreshMs / 1_000) }),
      };
      response.writeHead(200, headers).end(demoPage(now), () => {
        if (now.hasEnded) this.#read.resolve(undefined);
      });
    });
  }

  get #host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** @returns its address */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://${this.#host}/`;
  }

  /** An open page reads the end before the server goes: it would else be replaced by an error of the browser. */
  async [Symbol.asyncDispose](): Promise<void> {
    const isOpen = systemClock.monotonic() - this.#readAt < 3 * refreshMs;
    if (isOpen) await Promise.race([this.#read.promise, once(AbortSignal.timeout(3 * refreshMs), 'abort')]);
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
