/** Finds the endpoints of a path: a literal path takes precedence over one with named segments. */
import type { Endpoint } from './endpoint.ts';
import { Problem } from './problem.ts';

export interface Route {
  readonly endpoint: Endpoint;
  readonly params: Readonly<Record<string, string>>;
}

export class Routes {
  readonly #written = new Map<string, Route[]>();
  readonly #patterns: { readonly endpoint: Endpoint; readonly form: RegExp }[] = [];

  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) {
      for (const path of [endpoint.path, ...(endpoint.alias === undefined ? [] : [endpoint.alias])]) this.#add(path, endpoint);
    }
  }

  /**
   * Every endpoint of this path, one for each of its methods.
   * @throws Problem 400 if a segment of the path is not UTF-8
   */
  at(path: string): readonly Route[] {
    const written = this.#written.get(path);
    if (written) return written;
    return this.#patterns.flatMap(({ endpoint, form }) => {
      const params = form.exec(path)?.groups;
      return params ? [{ endpoint, params: decoded(params) }] : [];
    });
  }

  #add(path: string, endpoint: Endpoint): void {
    if (path.includes('{')) {
      this.#patterns.push({ endpoint, form: new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) });
    } else {
      this.#written.set(path, [...(this.#written.get(path) ?? []), { endpoint, params: {} }]);
    }
  }
}

function decoded(params: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch (error) {
    throw new Problem(400, 'The path is not percent-encoded UTF-8', { cause: error });
  }
}
