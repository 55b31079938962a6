/**
 * Requests to Kibana's public API (Kibana API reference, "Saved objects" and "Security Detections API"). A repeated request changes nothing
 * more, so requests to an unavailable Kibana are repeated: it needs a minute or more to start.
 */
import { WaybillError } from '../../../errors/errors.ts';
import type { Connection } from '../../../connect/connection.ts';
import type { Clock } from '../../../model/time.ts';
import { membersOf, objectIn } from '../../../record/json-object.ts';
import { durationText } from '../../../settings/units.ts';
import { quote } from '../../../errors/quote.ts';
import { version } from '../../../disk/version.ts';

export interface Import {
  readonly path: string;
  readonly file: string;
  /** One JSON object a line. */
  readonly text: string;
}

interface Imported {
  readonly count: number;
  /** Ids of rules that exist; Kibana leaves them unchanged. */
  readonly existing: readonly string[];
  readonly failures: readonly string[];
}

interface Target {
  /** Without a trailing slash. */
  readonly base: string;
  /** `/s/ID`, or empty for the default space. */
  readonly prefix: string;
  readonly authorization: string;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long an unavailable Kibana is asked again, over all requests. */
  readonly waitMs: number;
  /** Reports a failed attempt that is repeated. */
  readonly say: (line: string) => void;
}

interface Request {
  /** For messages: `import rules.ndjson`. */
  readonly action: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly type?: string;
  readonly body?: string;
}

interface Answer {
  /** 0: no response; `text` has the reason. */
  readonly status: number;
  readonly text: string;
  readonly location?: string;
  /** True if a later attempt may succeed: Kibana is starting, busy or not reachable. */
  readonly isTemporary: boolean;
  /** True if Kibana may have acted on the request. */
  readonly mayHaveActed: boolean;
}

type Body = Readonly<Record<string, unknown>>;

/** Kibana may take long for its first response. */
const requestMs = 60_000;
const maxPauseMs = 15_000;
/** The response to an import lists its objects: some 100 KB. */
const answerMax = 8 * 1024 * 1024;

/** A failure after which Kibana is certainly unchanged: no connection, a redirect, or a refusal in every attempt. */
export class UnchangedKibana extends WaybillError {}

export class Kibana {
  readonly #target: Target;
  /** Of the monotonic clock: a later failure is not repeated. */
  readonly #until: number;

  constructor(target: Target) {
    this.#target = target;
    this.#until = target.clock.monotonic() + target.waitMs;
  }

  /** @throws WaybillError if Kibana did not respond to an import; UnchangedKibana if nothing was imported */
  async importFile({ path, file, text }: Import): Promise<Imported> {
    const lines = text.trimEnd().split('\n').length;
    const boundary = `waybill-${crypto.randomUUID()}`;
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${file}"\r\ncontent-type: application/ndjson\r\n\r\n`;
    const body = await this.#ask(
      {
        action: `import ${file} into`,
        method: 'POST',
        path,
        type: `multipart/form-data; boundary=${boundary}`,
        body: `${head}${text}\r\n--${boundary}--\r\n`,
      },
      (answer) => isCount(countOf(answer), lines),
    );
    return outcomeOf(file, lines, body);
  }

  /** Enables a rule that exists. The bulk action changes nothing else in it. @returns false if it is enabled already */
  async enable(ruleId: string): Promise<boolean> {
    const action = `enable the rule ${ruleId} in`;
    const path = `${this.#target.prefix}/api/detection_engine/rules`;
    const rule = await this.#ask(
      { action, method: 'GET', path: `${path}?rule_id=${encodeURIComponent(ruleId)}` },
      ({ id, rule_id, enabled }) => typeof id === 'string' && rule_id === ruleId && typeof enabled === 'boolean',
    );
    if (rule['enabled'] === true) return false;
    const body = JSON.stringify({ action: 'enable', ids: [rule['id']] });
    await this.#ask(
      { action, method: 'POST', path: `${path}/_bulk_action`, type: 'application/json', body },
      ({ attributes }) => (attributes as { summary?: { succeeded?: unknown } } | undefined)?.summary?.succeeded === 1,
    );
    return true;
  }

  async #ask(request: Request, isAnswer: (body: Body) => boolean): Promise<Body> {
    const { clock, signal, say } = this.#target;
    let isUnchanged = true;
    for (let pauseMs = 2_000; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      const answer = await this.#askOnce(request);
      isUnchanged &&= !answer.mayHaveActed;
      const body = objectIn(answer.text);
      if (answer.status === 200 && isAnswer(body)) return body;
      const failure = this.#unexpected(request, answer, isUnchanged);
      const leftMs = answer.isTemporary ? this.#until - clock.monotonic() : 0;
      if (leftMs <= 0) throw failure;
      const nextMs = Math.min(pauseMs, leftMs);
      say(`${failure.message}; next attempt in ${secondsText(nextMs)}, for up to ${secondsText(leftMs)} (--wait)`);
      await clock.sleep(nextMs, signal);
    }
  }

  async #askOnce({ method, path, type, body }: Request): Promise<Answer> {
    const { base, authorization, connection, signal } = this.#target;
    const deadline = AbortSignal.timeout(requestMs);
    let isAnswered = false;
    try {
      const { origin, pathname } = new URL(base);
      const {
        statusCode,
        headers,
        body: response,
      } = await connection.dispatcher.request({
        origin,
        path: `${pathname.replace(/\/$/, '')}${path}`,
        method,
        headers: {
          authorization,
          'kbn-xsrf': 'waybill',
          'user-agent': `waybill/${version}`,
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        ...(body === undefined ? {} : { body }),
        signal: AbortSignal.any([signal, deadline]),
      });
      isAnswered = true;
      const text = await textOf(response);
      const { location } = headers;
      // 408: a proxy may have waited too long for Kibana.
      const mayHaveActed = statusCode < 300 || statusCode === 408 || statusCode >= 500;
      const isTemporary = statusCode === 429 || statusCode >= 502;
      return { status: statusCode, text, mayHaveActed, isTemporary, ...(typeof location === 'string' ? { location } : {}) };
    } catch (thrown) {
      signal.throwIfAborted();
      const { code, message: text } = deadline.aborted
        ? new WaybillError('source_unreachable', `no response within ${requestMs / 1_000} s`)
        : connection.translate(thrown);
      // `Connection` itself throws a WaybillError only when no connection was made.
      const mayHaveActed = isAnswered || !(thrown instanceof WaybillError);
      // An untrusted certificate stays untrusted.
      return { status: 0, text, mayHaveActed, isTemporary: code === 'source_unreachable' };
    }
  }

  #unexpected({ action, path }: Request, { status, text, location }: Answer, isUnchanged: boolean): WaybillError {
    const Failure = isUnchanged ? UnchangedKibana : WaybillError;
    const where = `cannot ${action} "${this.#target.base}"`;
    if (status === 0) return new Failure('sink_unavailable', `${where}: ${text}`);
    if (location !== undefined && status >= 300 && status < 400)
      return new Failure('sink_blocked', `${where}: it redirects to "${quote(location, 300)}": pass the address of Kibana itself as --url`);
    const detail = quote(reasonIn(objectIn(text)) ?? text, 300);
    const hints: Readonly<Record<number, string>> = {
      200: ': the response is not from Kibana',
      401: ': check the credentials in WAYBILL_SETUP_API_KEY or WAYBILL_SETUP_USERNAME',
      403: ': the credentials need the Kibana privileges "Saved Objects Management: All" and "Security: All" in the space',
      404: `: no Kibana, no such space, or no ${path.split('?', 1)[0] ?? ''}`,
    };
    const code = status === 429 || status >= 500 ? 'sink_unavailable' : 'sink_blocked';
    return new Failure(code, `${where}${hints[status] ?? ''}: ${status} ${detail}`);
  }
}

/** @throws Error when the body is longer than `answerMax` */
async function textOf(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const each of body) {
    const chunk = each as Buffer;
    bytes += chunk.length;
    if (bytes > answerMax) throw new WaybillError('sink_blocked', `the response is longer than ${answerMax / 1024 / 1024} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The reason in an error; a bulk action that failed for its rule has the reason of the rule. */
function reasonIn(body: Body): string | undefined {
  const { errors } = membersOf(body['attributes']);
  const [first] = (Array.isArray(errors) ? errors : []) as readonly ({ readonly message?: unknown } | null)[];
  const found = first?.message ?? body['message'];
  return typeof found === 'string' ? found : undefined;
}

function countOf(body: Body): unknown {
  return body['success_count'] ?? body['successCount'];
}

/** Kibana imports each object once: with another number, another server has answered. */
function isCount(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
}

/** The documented fields of Kibana's errors; another server may send other JSON. */
interface ImportError {
  readonly id?: unknown;
  readonly rule_id?: unknown;
  readonly list_id?: unknown;
  readonly error?: { readonly type?: unknown; readonly status_code?: unknown; readonly message?: unknown } | null;
}

/** Kibana answers 200 and lists the objects that it refused. A rule or an exception list that exists is no failure. */
function outcomeOf(file: string, expected: number, body: Body): Imported {
  const listed: readonly unknown[] = Array.isArray(body['errors']) ? body['errors'] : [];
  const errors = listed.map(membersOf).map((each: ImportError): ImportError => ({ ...each, rule_id: each.rule_id ?? each.list_id }));
  const existing = errors.flatMap(({ rule_id, error }) => (typeof rule_id === 'string' && error?.status_code === 409 ? [rule_id] : []));
  const failures = errors
    .filter(({ rule_id }) => typeof rule_id !== 'string' || !existing.includes(rule_id))
    .map(({ id, rule_id, error }) => {
      const [name, reason] = [rule_id ?? id ?? file, error?.message ?? error?.type ?? 'refused without a reason'].map(textIn);
      return `${quote(name ?? file, 100)}: ${quote(reason ?? '', 300)}`;
    });
  const count = countOf(body) as number;
  const answered = count + errors.length;
  if (answered < expected) failures.push(`Kibana answered for ${answered} of ${expected} objects`);
  else if (body['success'] === false && errors.length === 0) failures.push('Kibana reports a failure without a reason');
  return { count, existing, failures };
}

const textIn = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** In whole seconds: `1m5s`. */
const secondsText = (ms: number): string => durationText(Math.ceil(ms / 1_000) * 1_000);
