/**
 * Errors of the API: RFC 9457 problem details, without internal information. A Problem that is
 * thrown while a request is served becomes its response.
 */
import { STATUS_CODES } from './node-http.ts';

interface ProblemOptions {
  /** The invalid query parameter or field. */
  readonly parameter?: string;
  /** Why access is denied, in the words of the log. */
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly parameter: string | undefined;
  readonly reason: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: string, options: ProblemOptions = {}) {
    super(detail, { cause: options.cause });
    this.status = status;
    this.parameter = options.parameter;
    this.reason = options.reason;
    this.headers = options.headers ?? {};
  }

  /** The body, media type application/problem+json. */
  body(): string {
    const title = STATUS_CODES[this.status] ?? 'Problem';
    const { status, message, parameter, reason } = this;
    return JSON.stringify({ type: 'about:blank', title, status, detail: message, parameter, reason });
  }
}

/** 400 for an invalid query parameter, which the text names. */
export function badParameter(parameter: string, reason: string, cause?: unknown): Problem {
  return new Problem(400, `The parameter "${parameter}" ${reason}`, { parameter, cause });
}

/** 400 for an invalid field of the body, which the text names. */
export function badField(field: string, reason: string): Problem {
  return new Problem(400, `The field "${field}" ${reason}`, { parameter: field });
}
