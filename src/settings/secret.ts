/**
 * A secret of the configuration. It holds where the secret comes from rather than the secret, so that one that was replaced is found again,
 * and it never shows itself: printed, logged or written as JSON it reads `[secret]`. Whoever reads it makes it known, so that it is removed from
 * what servers say.
 */
import { inspect } from 'node:util';
import { remember } from '../secrets.ts';
import { WaybillError, messageOf } from '../errors.ts';
import { templateOf } from './reference.ts';
import type { Environment, Template, TemplatePart } from './reference.ts';

/** A secret as data: its setting, and where its value comes from. */
interface CarriedSecret {
  readonly setting: string;
  readonly literal: string;
  readonly template: readonly TemplatePart[] | undefined;
}

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
    try {
      this.read();
    } catch {
      // What is missing is reported by what needs it.
    }
  }

  /**
   * The secret as it now stands: of a file that changed, the new one.
   * @throws WaybillError `secret_missing` when what the setting names is not there any more, or empty
   */
  read(): string {
    try {
      const value = this.#template?.read() ?? this.#literal;
      for (const part of partsOf(value)) remember(this, part);
      return value;
    } catch (thrown) {
      throw new WaybillError('secret_missing', `cannot read "${this.#setting}": ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** For another thread, which reads the value itself. */
  carried(): CarriedSecret {
    return { setting: this.#setting, literal: this.#template ? '' : this.#literal, template: this.#template?.parts };
  }

  static revived({ setting, literal, template }: CarriedSecret, environment: Environment): Secret {
    const secret = new Secret(literal);
    secret.bind(setting, template && templateOf(template, environment));
    return secret;
  }

  /** Has the next `read` read files anew, whether or not they seem changed. */
  refresh(): void {
    this.#template?.refresh();
  }

  /** Which setting, and where its value comes from: `sources.production.auth.clientSecret (file /run/secrets/x)`. */
  describe(): string {
    return `${this.#setting} (${this.#template?.origin ?? 'written in the configuration'})`;
  }

  /**
   * Two secrets with equal references are the same secret. A secret in a file stays the same secret
   * when the content of the file changes.
   */
  get reference(): { readonly template: string } | { readonly literal: string } {
    return this.#template ? { template: this.#template.text } : { literal: this.#literal };
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

/** What of a value is secret: of the address of a proxy its password, alone and behind the user as it is sent; else all of it. */
function partsOf(value: string): readonly string[] {
  const url = /^https?:/i.test(value) ? URL.parse(value) : null;
  if (url === null) return [value];
  const [user, password] = [url.username, url.password].map(decoded);
  return url.password === '' ? [] : [url.password, password ?? '', `${user ?? ''}:${password ?? ''}`];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
