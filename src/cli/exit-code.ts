/** Maps the error of a command to its exit code. */
import { codeOf, type ErrorCode } from '../errors.ts';

const exitCodes: Partial<Record<ErrorCode, number>> = { usage: 2, config_invalid: 2, secret_missing: 2, state_locked: 75 };

export function exitCodeOf(thrown: unknown): number {
  return exitCodes[codeOf(thrown) ?? 'internal_error'] ?? 1;
}
