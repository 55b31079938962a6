/**
 * Refusals as the service words them: RFC 9457 problem details, one shape for every condition, without anything of the inside. What is
 * thrown anywhere while a request is served and is a Problem becomes its answer.
 */
import { STATUS_CODES } from 'node:http';

interface ProblemOptions {
  /** The query parameter or field that does not fit. */
  readonly parameter?: string;
  /** Why access is denied, in the words of specification 2.8. */
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

/** A query parameter whose value does not fit: 400, and the text names it. */
export function badParameter(parameter: string, reason: string, cause?: unknown): Problem {
  return new Problem(400, `The parameter "${parameter}" ${reason}`, { parameter, cause });
}

/** A field of the body whose value does not fit: 400, and the text names it. */
export function badField(field: string, reason: string): Problem {
  return new Problem(400, `The field "${field}" ${reason}`, { parameter: field });
}
