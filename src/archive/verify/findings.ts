/** The findings of `archive verify`. */

/**
 * `altered`: an object is missing, or contradicts a signature, a hash or a proof. `unproven`: no
 * contradiction, but something is not proven. `note`: information about an object that is not
 * evidence.
 */
type Severity = 'altered' | 'unproven' | 'note';

export interface Finding {
  readonly severity: Severity;
  /** The path of the object, or the window as `source from/to`. */
  readonly object: string;
  readonly message: string;
}

/** Anyone with the storage may add files, in any number. */
const maxFiles = 10_000;

export class Findings {
  readonly #found: Finding[] = [];
  /** How many files have each message. */
  readonly #files = new Map<string, number>();

  get all(): readonly Finding[] {
    const all = [...this.#found];
    for (const [message, count] of this.#files)
      if (count > maxFiles) all.push({ severity: 'note', object: 'other files', message: `${count - maxFiles} more: ${message}` });
    return all;
  }

  altered(object: string, message: string): void {
    this.#found.push({ severity: 'altered', object, message });
  }

  unproven(object: string, message: string): void {
    this.#found.push({ severity: 'unproven', object, message });
  }

  note(object: string, message: string): void {
    this.#found.push({ severity: 'note', object, message });
  }

  /** Puts the findings of this work in the order of their objects. */
  async inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const first = this.#found.length;
    const result = await work();
    const found = this.#found.splice(first).sort((a, b) => (a.object < b.object ? -1 : Number(a.object > b.object)));
    for (const each of found) this.#found.push(each);
    return result;
  }

  /** A note for a file that is no evidence: more than 10,000 with the same message are only counted. */
  noteFile(path: string, message: string): void {
    const count = (this.#files.get(message) ?? 0) + 1;
    this.#files.set(message, count);
    if (count <= maxFiles) this.note(path, message);
  }

  /** One altered object outweighs every unproven one. */
  get result(): 'intact' | 'altered' | 'unproven' {
    const has = (severity: Severity): boolean => this.#found.some((finding) => finding.severity === severity);
    return has('altered') ? 'altered' : has('unproven') ? 'unproven' : 'intact';
  }
}
