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

export class Findings {
  readonly all: Finding[] = [];

  altered(object: string, message: string): void {
    this.all.push({ severity: 'altered', object, message });
  }

  unproven(object: string, message: string): void {
    this.all.push({ severity: 'unproven', object, message });
  }

  note(object: string, message: string): void {
    this.all.push({ severity: 'note', object, message });
  }

  /** One altered object outweighs every unproven one. */
  get result(): 'intact' | 'altered' | 'unproven' {
    const has = (severity: Severity): boolean => this.all.some((finding) => finding.severity === severity);
    return has('altered') ? 'altered' : has('unproven') ? 'unproven' : 'intact';
  }
}
