/** Maps the error of a command to its exit code. */
import { codeOf, WaybillError, type ErrorCode } from '../errors/errors.ts';

const exitCodes: Partial<Record<ErrorCode, number>> = { usage: 2, config_invalid: 2, secret_missing: 2, state_locked: 75 };

/** 128 and the number of the signal, as a shell reports a program that a signal ended. */
export const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

/** The reason why a command ends before its work is done. */
export class StoppedError extends WaybillError {
  readonly exitCode: number;

  constructor(signal: keyof typeof signalExitCodes) {
    super('aborted', `received ${signal}`);
    this.exitCode = signalExitCodes[signal];
  }
}

export function exitCodeOf(thrown: unknown): number {
  if (thrown instanceof StoppedError) return thrown.exitCode;
  return exitCodes[codeOf(thrown) ?? 'internal_error'] ?? 1;
}
