/**
 * A set of uids that uses 22 to 43 bytes for each: open addressing in one typed array. A million strings would use several times as much
 * and slow down garbage collection. A uid is a part of a SHA-256, so its own bits are the hash.
 */

/** 32-bit integers per uid. */
const integersPerUid = 4;
const minSlots = 16;

export class UidSet {
  #slots: Uint32Array;
  #capacity = minSlots;
  #size = 0;
  /** Sixteen zero bytes mark an empty slot, so an all-zero uid is recorded here. */
  #hasZero = false;
  /** The integers of the uid that is looked up. */
  readonly #uid = new Uint32Array(integersPerUid);

  /** @param expected uids for which the set reserves memory at once */
  constructor(expected = 0) {
    while (this.#capacity * 3 < (expected + 1) * 4) this.#capacity *= 2;
    this.#slots = new Uint32Array(this.#capacity * integersPerUid);
  }

  get size(): number {
    return this.#size;
  }

  /** Memory of the set. */
  get bytes(): number {
    return this.#slots.byteLength;
  }

  has(uid: string): boolean {
    this.#read(uid);
    if (this.#isZero()) return this.#hasZero;
    return !this.#isFree(this.#find());
  }

  add(uid: string): void {
    this.#read(uid);
    this.#put();
  }

  /** Adds the concatenated uids in `bytes`, 16 bytes each. */
  addBytes(bytes: Buffer): void {
    for (let at = 0; at + 16 <= bytes.length; at += 16) {
      for (let i = 0; i < integersPerUid; i += 1) this.#uid[i] = bytes.readUInt32BE(at + i * 4);
      this.#put();
    }
  }

  #put(): void {
    if (this.#isZero()) {
      this.#size += this.#hasZero ? 0 : 1;
      this.#hasZero = true;
      return;
    }
    // A load of at most three quarters keeps probe sequences short.
    if ((this.#size + 1) * 4 > this.#capacity * 3) this.#grow();
    const slot = this.#find();
    if (!this.#isFree(slot)) return;
    this.#slots.set(this.#uid, slot);
    this.#size += 1;
  }

  /** The index of the uid's first word, or of the slot for it. */
  #find(): number {
    const slots = this.#slots;
    const uid = this.#uid;
    const a = uid[0] ?? 0;
    const b = uid[1];
    const c = uid[2];
    const d = uid[3];
    for (let at = a & (this.#capacity - 1); ; at = (at + 1) & (this.#capacity - 1)) {
      const slot = at * integersPerUid;
      if (this.#isFree(slot)) return slot;
      if (slots[slot] === a && slots[slot + 1] === b && slots[slot + 2] === c && slots[slot + 3] === d) return slot;
    }
  }

  #isFree(slot: number): boolean {
    const slots = this.#slots;
    return slots[slot] === 0 && slots[slot + 1] === 0 && slots[slot + 2] === 0 && slots[slot + 3] === 0;
  }

  #isZero(): boolean {
    const uid = this.#uid;
    return uid[0] === 0 && uid[1] === 0 && uid[2] === 0 && uid[3] === 0;
  }

  /** Doubles the capacity: a power of two allows a bit mask as hash function. */
  #grow(): void {
    const old = this.#slots;
    this.#capacity *= 2;
    this.#slots = new Uint32Array(this.#capacity * integersPerUid);
    const lookedUp = Uint32Array.from(this.#uid);
    for (let slot = 0; slot < old.length; slot += integersPerUid) {
      this.#uid.set(old.subarray(slot, slot + integersPerUid));
      if (!this.#isZero()) this.#slots.set(this.#uid, this.#find());
    }
    this.#uid.set(lookedUp);
  }

  /** Decodes 22 characters of base64url to four integers. */
  #read(uid: string): void {
    let bits = 0;
    let held = 0;
    let word = 0;
    for (let i = 0; i < 22 && word < integersPerUid; i += 1) {
      const six = sextets[uid.charCodeAt(i)] ?? 0;
      const missing = 32 - held;
      if (missing > 6) {
        bits = (bits << 6) | six;
        held += 6;
        continue;
      }
      // The word is full; the remaining bits start the next word.
      held = 6 - missing;
      this.#uid[word] = (bits << missing) | (six >>> held);
      word += 1;
      bits = six & ((1 << held) - 1);
    }
  }
}

/** The value of each base64url character by its code (RFC 4648, section 5). */
const sextets = new Uint8Array(128);
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
for (let value = 0; value < alphabet.length; value += 1) sextets[alphabet.charCodeAt(value)] = value;
