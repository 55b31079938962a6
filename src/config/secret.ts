/**
 * A secret of the configuration. It holds where the secret comes from rather than the secret, so that one that was replaced is found again,
 * and it never shows itself: printed, logged or written as JSON it reads `[secret]`.
 */
import { inspect } from 'node:util';
import { WaybillError, wordsOf } from '../errors.ts';
import type { Template } from './reference.ts';

export class Secret {
  readonly #literal: string;
  #template: Template | undefined;
  #setting = 'a secret';

  constructor(literal: string) {
    this.#literal = literal;
  }

  /** Called once, by the one who loads the configuration: the name of the setting, and what it refers to. */
  bind(setting: string, template: Template | undefined): void {
    this.#setting = setting;
    this.#template = template;
  }

  /**
   * The secret as it now stands: of a file that changed, the new one.
   * @throws WaybillError `secret_missing` when what the setting names is not there any more, or empty
   */
  read(): string {
    try {
      return this.#template?.read() ?? this.#literal;
    } catch (thrown) {
      throw new WaybillError('secret_missing', `cannot read "${this.#setting}": ${wordsOf(thrown)}`, { cause: thrown });
    }
  }

  /** Has the next `read` read files anew, whether or not they seem changed. */
  refresh(): void {
    this.#template?.refresh();
  }

  /** Which setting, and where its value comes from: `sources.production.auth.clientSecret (file /run/secrets/x)`. */
  describe(): string {
    return `${this.#setting} (${this.#template?.origin ?? 'written in the configuration'})`;
  }

  /** The files that it is read from. */
  get files(): readonly string[] {
    return this.#template?.files ?? [];
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [inspect.custom](): string {
    return '[secret]';
  }
}
