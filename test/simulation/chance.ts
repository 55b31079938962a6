/**
 * Pseudo-random numbers from one seed. Each part of a simulation draws from its own stream, so that
 * a change in one part does not change the draws of the others.
 */

export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /**
   * `seed` may have 53 bits; `stream` names the part that draws. The generator is sfc32 (public
   * domain).
   */
  constructor(seed: number, stream: string) {
    let hash = 0x811c9dc5;
    for (let i = 0; i < stream.length; i += 1) hash = Math.imul(hash ^ stream.charCodeAt(i), 0x01000193);
    this.#a = seed >>> 0;
    this.#b = Math.floor(seed / 4_294_967_296) >>> 0;
    this.#c = hash >>> 0;
    for (let i = 0; i < 12; i += 1) this.next();
  }

  /** In [0, 1). */
  readonly next = (): number => {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };

  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number between `least` and `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  pick<const Items extends readonly [unknown, ...unknown[]]>(items: Items): Items[number] {
    return items[Math.floor(this.next() * items.length)];
  }

  bytes(many: number): Uint8Array {
    return Uint8Array.from({ length: many }, () => Math.floor(this.next() * 256));
  }

  /** An exponentially distributed distance with this mean. */
  distance(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }
}
