/**
 * A secret of the configuration. It stores the origin of its value, which may be replaced, and prints as `[secret]` in text, log and JSON.
 * Each read registers the value, so that it is removed from texts of servers.
 */
import { inspect } from 'node:util';
import { unescaped } from '../errors/escape.ts';
import { remember } from '../errors/secrets.ts';
import { WaybillError, messageOf } from '../errors/errors.ts';
import type { Template } from './reference.ts';

export class Secret {
  readonly #literal: string;
  #template: Template | undefined;
  #setting = 'a secret';

  constructor(literal: string) {
    this.#literal = literal;
  }

  /** Called once, when the configuration is loaded, with the name and the template of the setting. */
  bind(setting: string, template: Template | undefined): void {
    this.#setting = setting;
    this.#template = template;
    try {
      this.read();
    } catch {
      // Users of the value report if it is missing.
    }
  }

  /** The current secret, also after its file has changed. @throws WaybillError `secret_missing` if the value is missing or empty */
  read(): string {
    try {
      const value = this.#template?.read() ?? this.#literal;
      for (const part of partsOf(value)) remember(this, part);
      return value;
    } catch (thrown) {
      throw new WaybillError('secret_missing', `cannot read "${this.#setting}": ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** Makes the next `read` read its files even if they seem unchanged. */
  refresh(): void {
    this.#template?.refresh();
  }

  /** The setting and the origin of its value: `sources.production.auth.clientSecret (file /run/secrets/x)`. */
  describe(): string {
    return `${this.#setting} (${this.#template?.origin ?? 'written in the configuration'})`;
  }

  /** Equal references are the same secret, whatever the content of the file. */
  get reference(): { readonly template: string } | { readonly literal: string } {
    return this.#template ? { template: this.#template.text } : { literal: this.#literal };
  }

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

/** The secret parts of a value: of a proxy URL the password, alone and after the user as it is sent; otherwise the whole value. */
function partsOf(value: string): readonly string[] {
  const url = /^https?:/i.test(value) ? URL.parse(value) : null;
  if (url === null) return [value];
  const [user, password] = [url.username, url.password].map((part) => unescaped(part).toString('utf8'));
  return url.password === '' ? [] : [url.password, password ?? '', `${user ?? ''}:${password ?? ''}`];
}
