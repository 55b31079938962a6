/** Errors in a form that can be cloned into another thread. */
import { codeOf, WaybillError, wordOf, type ErrorCode } from '../errors/errors.ts';

export interface CarriedError {
  readonly code: ErrorCode | undefined;
  /** The code of an error of the operating system. */
  readonly system: string | undefined;
  readonly name: string;
  /** Without the secrets that the thread of the error has registered. */
  readonly message: string;
  readonly cause: CarriedError | undefined;
}

const maxCauses = 8;

export function carried(thrown: unknown, causes = maxCauses): CarriedError {
  const error = thrown instanceof Error ? thrown : undefined;
  const system = codeOf(thrown) === undefined ? (error as NodeJS.ErrnoException | undefined)?.code : undefined;
  const hasCause = error?.cause !== undefined && error.cause !== null && causes > 0;
  return {
    code: codeOf(thrown),
    system: typeof system === 'string' ? system : undefined,
    name: error?.name ?? 'Error',
    message: wordOf(thrown),
    cause: hasCause ? carried(error.cause, causes - 1) : undefined,
  };
}

export function revived({ code, system, name, message, cause }: CarriedError): Error {
  const options = cause === undefined ? {} : { cause: revived(cause) };
  if (code !== undefined) return new WaybillError(code, message, options);
  return Object.assign(new Error(message, options), { name, ...(system !== undefined && { code: system }) });
}
