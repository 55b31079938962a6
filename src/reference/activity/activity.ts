/**
 * Simulated people who use the API: they protect, share and open files, travel, and are denied for
 * every reason. The log thus arises as in production. A switch sets the rate;
 * a random stream selects person, action and place.
 */
import { networkOf, places, type UserNetwork } from '../logs/network.ts';
import { allows } from '../people/roles.ts';
import type { Account, Users } from '../people/users.ts';
import { below, oneOf, randomOf, type Random } from '../random.ts';
import type { SwitchValues } from '../switches.ts';
import { Caller, type Service } from './caller.ts';

interface Person {
  readonly caller: Caller;
  readonly isAuthor: boolean;
  /** The index of the home place. */
  readonly home: number;
}

/** A protected file: the bytes that its recipients have, and the people with access. */
interface Shared {
  readonly payloadId: string;
  owner: Person;
  readonly base64FileData: string;
  readonly colleagues: Person[];
}

const tickMs = 50;
const atOnceMax = 8;
const filesMax = 300;
const travelShare = 0.08;
const subjects = ['Budget', 'Contract', 'Blueprint', 'Payroll', 'Minutes', 'Roadmap', 'Offer', 'Review'];
const types = ['.docx', '.xlsx', '.pdf', '.pptx', '.txt'];
/** The travel destination in `excludedCountry`. */
const excludedPlace = 1;
/** Excluded at the start, unless the organization already excludes countries. */
const excludedCountry = 'NZ';

export class Activity {
  readonly #values: SwitchValues;
  readonly #users: Users;
  readonly #service: Service;
  readonly #random: Random;
  readonly #people: Person[] = [];
  readonly #files: Shared[] = [];
  readonly #end = new AbortController();
  /** The actions, with their frequency per hundred. */
  readonly #acts: readonly (readonly [weight: number, act: () => Promise<void>])[] = [
    [16, () => this.#protect()],
    [6, () => this.#protectLocally()],
    [12, () => this.#share()],
    [3, () => this.#shareWithGroup()],
    [48, () => this.#open()],
    [7, () => this.#openAsStranger()],
    [5, () => this.#limit()],
    [2, () => this.#revoke()],
    [1, () => this.#handOver()],
  ];
  #timer: NodeJS.Timeout | undefined;
  #lastTick = 0;
  #owed = 0;
  #running = 0;
  /**
   * Actions without a response: the connection was closed, or the identity provider issued no
   * token.
   */
  unanswered = 0;

  constructor(values: SwitchValues, users: Users, service: Service, seed: string) {
    this.#values = values;
    this.#users = users;
    this.#service = service;
    this.#random = randomOf(`${seed}/activity`);
  }

  start(): void {
    this.#lastTick = performance.now();
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Stops; running actions are abandoned. */
  stop(): void {
    clearInterval(this.#timer);
    this.#end.abort();
    this.#service.agent.destroy();
  }

  #tick(): void {
    const at = performance.now();
    const rate = this.#values.activity;
    this.#owed = rate === 0 ? 0 : Math.min(rate, this.#owed + ((at - this.#lastTick) / 1000) * rate);
    this.#lastTick = at;
    while (this.#owed >= 1 && this.#running < atOnceMax) {
      this.#owed -= 1;
      this.#running += 1;
      void this.#act();
    }
  }

  async #act(): Promise<void> {
    try {
      if (this.#people.length === 0) await this.#gather();
      let left = this.#random() * this.#acts.reduce((sum, [weight]) => sum + weight, 0);
      const [, act] = this.#acts.find(([weight]) => (left -= weight) < 0) ?? [];
      await act?.();
    } catch {
      // Faults may leave a call without a response; the person continues with another action.
      this.unanswered += 1;
    } finally {
      this.#running -= 1;
    }
  }

  /**
   * Selects the people who can sign in and open files, and excludes a country for the organization.
   */
  async #gather(): Promise<void> {
    const personOf = (account: Account): Person[] => {
      const roles = this.#users.find(account.userId)?.roles ?? [];
      if (!allows(roles, 'payload.open')) return [];
      const home = below(this.#random, places.length - 1);
      const isAuthor = allows(roles, 'payload.create');
      return [{ caller: new Caller(account, this.#service), isAuthor, home: home < excludedPlace ? home : home + 1 }];
    };
    const accounts = this.#users.accounts();
    this.#people.push(...accounts.flatMap(personOf));
    const administrator = accounts.find(({ userId }) => this.#users.find(userId)?.roles.includes('Policy Administrator'));
    if (!administrator) return;
    const caller = new Caller(administrator, this.#service);
    const path = '/organization/policies/excluded-countries';
    const { json } = await caller.call(path, undefined, this.#end.signal);
    const already = json?.['excludedCountries'];
    if (Array.isArray(already) && already.length === 0) await caller.call(path, { excludedCountries: [excludedCountry] }, this.#end.signal);
  }

  async #protect(): Promise<void> {
    const owner = this.#author();
    const base64FileData = Buffer.from('x'.repeat(1 + below(this.#random, 2000))).toString('base64');
    const body = { ...this.#named(), userNetwork: this.#whereabouts(owner), base64FileData };
    const { status, json } = await owner.caller.call('/payloads/protect-remote', body, this.#end.signal);
    if (status !== 201 || !json) return;
    const { payloadId } = json['payload'] as { payloadId: string };
    const file = { payloadId, owner, base64FileData: String(json['base64FileData']), colleagues: [] };
    if (this.#files.length < filesMax) this.#files.push(file);
    else this.#files[below(this.#random, filesMax)] = file;
  }

  /**
   * Opens only files that were protected by the service, because the content of others is unknown.
   */
  async #protectLocally(): Promise<void> {
    const owner = this.#author();
    const allowedAreas = this.#random() < 0.5 ? [this.#areaAround(owner.home)] : [];
    const body = { ...this.#named(), userNetwork: this.#whereabouts(owner, 0.3), allowedAreas };
    await owner.caller.call('/payloads/protect-local', body, this.#end.signal);
  }

  /** Usually with a new person; sometimes changes the access of a present one. */
  async #share(): Promise<void> {
    const file = this.#file();
    if (!file) return;
    const isAgain = file.colleagues.length > 0 && this.#random() < 0.25;
    const colleague = oneOf(this.#random, isAgain ? file.colleagues : this.#people);
    const accessLevel = this.#random() < (isAgain ? 0.5 : 0.8) ? 'View' : 'FullAccess';
    const status = await this.#policy(file, 'user-authorizations', { userId: colleague.caller.userId, accessLevel });
    if (status === 200 && !isAgain) file.colleagues.push(colleague);
  }

  async #shareWithGroup(): Promise<void> {
    const file = this.#file();
    if (!file) return;
    const { groupId } = oneOf(this.#random, this.#users.groups());
    await this.#policy(file, 'group-authorizations', { groupId, accessLevel: this.#random() < 0.8 ? 'View' : 'FullAccess' });
  }

  async #open(): Promise<void> {
    const file = this.#file();
    if (file) await this.#openAs(oneOf(this.#random, [file.owner, ...file.colleagues]), file);
  }

  async #openAsStranger(): Promise<void> {
    const file = this.#file();
    if (file) await this.#openAs(oneOf(this.#random, this.#people), file);
  }

  /** Rules on times and places; some deny everyone until the next rule. */
  async #limit(): Promise<void> {
    const file = this.#file();
    if (!file) return;
    const dayMs = 86_400_000;
    const day = (days: number): string => new Date(Date.now() + days * dayMs).toISOString();
    const windows = [[{ startTime: day(-1), endTime: day(7) }], [{ startTime: day(1) }], [{ endTime: day(-1) }], []];
    const areas = [[], [this.#areaAround(file.owner.home)]];
    await this.#policy(file, 'access-windows', { accessWindows: oneOf(this.#random, windows), allowedAreas: oneOf(this.#random, areas) });
  }

  async #revoke(): Promise<void> {
    const file = this.#file();
    if (!file) return;
    const colleague = this.#random() < 0.7 ? file.colleagues.pop() : undefined;
    const whom = colleague ? { userId: colleague.caller.userId } : {};
    await this.#policy(file, 'revocation', { ...whom, isRevoked: colleague !== undefined || this.#random() < 0.5 });
  }

  async #handOver(): Promise<void> {
    const file = this.#file();
    if (!file) return;
    const owner = this.#author();
    if ((await this.#policy(file, 'owner', { userId: owner.caller.userId })) === 200) file.owner = owner;
  }

  async #openAs(person: Person, file: Shared): Promise<void> {
    const body = { base64FileData: file.base64FileData, userNetwork: this.#whereabouts(person) };
    await person.caller.call('/payloads/open-remote', body, this.#end.signal);
  }

  async #policy(file: Shared, type: string, body: object): Promise<number> {
    const userNetwork = this.#whereabouts(file.owner);
    const { status } = await file.owner.caller.call(
      `/payloads/${file.payloadId}/policies/${type}`,
      { ...body, userNetwork },
      this.#end.signal,
    );
    return status;
  }

  #file(): Shared | undefined {
    return this.#files.length === 0 ? undefined : oneOf(this.#random, this.#files);
  }

  #author(): Person {
    return oneOf(
      this.#random,
      this.#people.filter(({ isAuthor }) => isAuthor),
    );
  }

  #named(): { fileType: string; fileName: string } {
    return { fileType: oneOf(this.#random, types), fileName: `${oneOf(this.#random, subjects)} ${1 + below(this.#random, 9999)}` };
  }

  /** The home place, except for travellers. */
  #whereabouts({ home }: Person, travels = travelShare): UserNetwork {
    return networkOf(this.#random, this.#random() < travels ? below(this.#random, places.length) : home);
  }

  #areaAround(home: number): object {
    const [, latitude, longitude] = places[home] ?? places[0];
    return { latLong: `${latitude},${longitude}`, radiusKm: 500 };
  }
}
