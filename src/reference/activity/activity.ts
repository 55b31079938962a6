/**
 * Simulated people who use the API: the employees of a company, who do over HTTPS what the company plans for
 * the day, in the order of its times, as often as a switch says. The service decides whether an
 * action is granted, and logs it.
 */
import { extname } from 'node:path';
import type { UserNetwork } from '../logs/network.ts';
import { nameOf, passwordOf } from '../people/organization.ts';
import { sealed } from '../payloads/container.ts';
import type { Role } from '../people/roles.ts';
import type { Users } from '../people/users.ts';
import { below, oneOf, randomOf, uuidOf, type Random } from '../random.ts';
import type { SwitchValues } from '../switches.ts';
import { attackOn } from './attack.ts';
import { Caller, type Service } from './caller.ts';
import { Company, type CompanyAction, type Employee, type Team, type User } from './company.ts';

/** A protected file: the bytes that its readers have, and who may open it. */
interface Shared {
  readonly payloadId: string;
  readonly base64FileData: string;
  owner: Employee;
  readonly readers: Set<string>;
  /** Revoked, or outside its times and places: people who know that do not open it. */
  isClosed: boolean;
  /** A time was set at which it may be opened. */
  hasWindow: boolean;
}

/** Everyday actions before an attack, and each so many actions one of the attack. */
const beforeAttack = 30;
const attackEvery = 3;
const tickMs = 50;
const atOnceMax = 8;
/** Files in memory; a forgotten one is protected again. */
const filesMax = 5_000;
/** The company plans as many days, and then begins again. */
const plannedDays = 28;
const dayMs = 86_400_000;
/** After midnight UTC: Europe and New York NY are at work. */
const busyMs = 13 * 3_600_000;
/** Excluded at the start, unless the organization already excludes countries. */
const excludedCountry = 'NZ';

export class Activity {
  readonly #values: SwitchValues;
  readonly #users: Users;
  readonly #service: Service;
  readonly #seed: string;
  readonly #random: Random;
  readonly #callers = new Map<string, Caller>();
  readonly #files = new Map<string, Promise<Shared | undefined>>();
  readonly #end = new AbortController();
  #company: Company;
  readonly #plan: Iterator<CompanyAction, never>;
  #ready: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastTick = 0;
  #owed = 0;
  #running = 0;
  #acted = 0;
  #attacked: SwitchValues['attack'] = 'none';
  #attack: CompanyAction[] = [];
  /**
   * Actions without a response: the connection was closed, or the identity provider issued no
   * token.
   */
  unanswered = 0;

  constructor(values: SwitchValues, users: Users, service: Service, seed: string) {
    this.#values = values;
    this.#users = users;
    this.#service = service;
    this.#seed = seed;
    this.#random = randomOf(`${seed}/activity`);
    this.#company = this.#newCompany();
    this.#plan = this.#actions();
  }

  /** What the detection rules except at the company. */
  get lists(): ReturnType<Company['lists']> {
    return this.#company.lists();
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
      await (this.#ready ??= this.#settle());
      await this.#perform(this.#next());
    } catch {
      // Faults may leave a call without a response; people continue with another action.
      this.unanswered += 1;
    } finally {
      this.#running -= 1;
    }
  }

  #next(): CompanyAction {
    const { attack } = this.#values;
    this.#acted += 1;
    if (attack !== this.#attacked && this.#acted > beforeAttack) {
      this.#attacked = attack;
      this.#attack = attack === 'none' ? [] : attackOn(this.#company, attack);
    }
    return (this.#acted % attackEvery === 0 ? this.#attack.shift() : undefined) ?? this.#plan.next().value;
  }

  /** The same people, files and days for the same seed, from the first working day on. */
  #newCompany(): Company {
    const today = Date.now() - (Date.now() % dayMs);
    const weekday = new Date(today).getUTCDay();
    return new Company(this.#seed, today + (weekday === 6 ? 2 : weekday === 0 ? 1 : 0) * dayMs, plannedDays);
  }

  /** Begins when most offices work. The batch account is left out: it works at times that pass too fast here. */
  *#actions(): Generator<CompanyAction, never> {
    for (let isFirst = true; ; isFirst = false) {
      for (let number = 0; number < plannedDays; number += 1)
        for (const action of this.#company.day(number)) {
          const isEarlier = isFirst && number === 0 && action.at % dayMs < busyMs;
          if (!isEarlier && action.user !== this.#company.batch) yield action;
        }
      this.#company = this.#newCompany();
    }
  }

  /** Adds the people of the company to the organization, each team as a group, and excludes a country. */
  async #settle(): Promise<void> {
    const { employees, teams, helpDesk, auditor } = this.#company;
    const withRole = (role: Role) => (user: User) => {
      const [lastName = '', firstName = ''] = user.name.split(',');
      return { ...user, name: nameOf(firstName, lastName), firstName, lastName, roles: [role] };
    };
    const groups = teams.map(({ number, members }) => {
      return { groupId: this.#groupOf({ number }), name: `Team ${number}`, members: members.map(withRole('Author')) };
    });
    const people = [...[...employees, auditor].map(withRole('Author')), ...helpDesk.map(withRole('Data Administrator'))];
    this.#users.settle({ people, groups, accounts: [] }, this.#seed);
    const administrator = this.#users
      .accounts()
      .find(({ userId }) => this.#users.find(userId)?.roles.includes('Policy Administrator') === true);
    if (!administrator) return;
    const caller = new Caller(administrator, this.#service);
    const path = '/organization/policies/excluded-countries';
    const { json } = await caller.call(path, undefined, this.#end.signal);
    const already = json?.['excludedCountries'];
    if (Array.isArray(already) && already.length === 0) await caller.call(path, { excludedCountries: [excludedCountry] }, this.#end.signal);
  }

  #groupOf({ number }: Pick<Team, 'number'>): string {
    return uuidOf(randomOf(`${this.#seed}/team/${number}`));
  }

  async #perform(action: CompanyAction): Promise<void> {
    const { combination, user, payload, network } = action;
    const [kind, , reason] = combination;
    if (kind === 'Encrypt') {
      await this.#protect(payload, network);
      return;
    }
    const file = await (this.#files.get(payload.id) ?? this.#protect(payload));
    if (!file) return;
    if (kind === 'Audit') await this.#change(action, file);
    else if (await this.#isAsPlanned(reason, user, file))
      await this.#call(user, '/payloads/open-remote', { base64FileData: file.base64FileData, userNetwork: network });
  }

  /** Protects a file of its owner: in the service, or on the machine of the owner. */
  #protect(payload: CompanyAction['payload'], network = this.#company.deskOf(payload.owner)): Promise<Shared | undefined> {
    const { id, name, owner } = payload;
    const file = this.#random() < 0.8 ? this.#protectInService(name, owner, network) : this.#protectLocally(name, owner, network);
    // A file without a response is protected again with the next action on it.
    const kept = file.catch((thrown: unknown) => {
      this.#files.delete(id);
      throw thrown;
    });
    this.#files.delete(id);
    this.#files.set(id, kept);
    const [oldest] = this.#files.keys();
    if (this.#files.size > filesMax && oldest !== undefined) this.#files.delete(oldest);
    return kept;
  }

  async #protectInService(name: string, owner: Employee, network: UserNetwork): Promise<Shared | undefined> {
    const base64FileData = this.#content().toString('base64');
    const json = await this.#call(owner, '/payloads/protect-remote', { ...namesOf(name), userNetwork: network, base64FileData });
    return json && sharedOf(json, owner, String(json['base64FileData']), false);
  }

  /** People who are away limit some files to the surroundings of their office, and are refused. */
  async #protectLocally(name: string, owner: Employee, network: UserNetwork): Promise<Shared | undefined> {
    const isLimited = network.address !== owner.office.name && this.#random() < 0.3;
    const allowedAreas = isLimited ? [areaOf(owner)] : [];
    const json = await this.#call(owner, '/payloads/protect-local', { ...namesOf(name), userNetwork: network, allowedAreas });
    if (!json) return undefined;
    const [header, dataKey] = ['base64Header', 'base64DataKey'].map((field) => Buffer.from(String(json[field]), 'base64'));
    if (!header || !dataKey) return undefined;
    return sharedOf(json, owner, sealed(header, dataKey, this.#content()).toString('base64'), isLimited);
  }

  #content(): Buffer {
    return Buffer.alloc(1 + below(this.#random, 2000), 'x');
  }

  /** Does what must be so before the planned attempt. @returns false if it is not so */
  async #isAsPlanned(reason: string, user: User, file: Shared): Promise<boolean> {
    if (reason === 'UserPayloadNoAccess') return file.isClosed || !file.readers.has(user.userId);
    if (!(await this.#permit(user, file))) return false;
    if (reason === 'Success') return !file.isClosed;
    if (reason === 'TimeEmbargoFailed') return file.isClosed || this.#limit(file.owner, file, true);
    if (reason !== 'GeoValidationFailed' || file.isClosed) return true;
    file.isClosed = await this.#policy(file.owner, file, 'access-windows', { allowedAreas: [areaOf(file.owner)] });
    return file.isClosed;
  }

  /** The owner gives access to the team, or to one other user. @returns true if the user has access */
  async #permit({ userId }: User, file: Shared): Promise<boolean> {
    if (userId === file.owner.userId || file.readers.has(userId)) return true;
    const { team } = file.owner;
    const ids = team.members.map((member) => member.userId);
    const isOfTeam = ids.includes(userId);
    const has = isOfTeam
      ? await this.#policy(file.owner, file, 'group-authorizations', { groupId: this.#groupOf(team), accessLevel: 'FullAccess' })
      : await this.#policy(file.owner, file, 'user-authorizations', { userId, accessLevel: 'View' });
    if (has) for (const reader of isOfTeam ? ids : [userId]) file.readers.add(reader);
    return has;
  }

  async #change({ combination, user, payload, network, colleague, isLimited }: CompanyAction, file: Shared): Promise<void> {
    const accessLevel = this.#random() < 0.8 ? 'View' : 'FullAccess';
    switch (combination[1]) {
      case 'AuthorisedUserAccess': {
        const { userId } = colleague ?? oneOf(this.#random, this.#company.employees);
        if (await this.#policy(user, file, 'user-authorizations', { userId, accessLevel }, network)) file.readers.add(userId);
        return;
      }
      case 'AuthorisedGroupAccess':
        await this.#policy(
          user,
          file,
          'group-authorizations',
          { groupId: this.#groupOf(oneOf(this.#random, this.#company.teams)), accessLevel },
          network,
        );
        return;
      case 'RevokeAccess':
        if (await this.#policy(user, file, 'revocation', { isRevoked: true }, network)) file.isClosed = true;
        return;
      case 'AccessWindow':
        // A window that changes was set by the owner before.
        if ((await this.#permit(user, file)) && (file.hasWindow || (await this.#limit(file.owner, file, true))))
          await this.#limit(user, file, isLimited === true, network);
        return;
      case 'AuthorChanged':
        // Only the owner may.
        if (await this.#policy(file.owner, file, 'owner', { userId: payload.owner.userId })) file.owner = payload.owner;
    }
  }

  /** Sets a time that has not begun, or has. @returns true if it was set */
  async #limit(user: User, file: Shared, isClosed: boolean, network?: UserNetwork): Promise<boolean> {
    const accessWindow = isClosed ? { startTime: inDays(1) } : { startTime: inDays(-1), endTime: inDays(7) };
    if (!(await this.#policy(user, file, 'access-windows', { accessWindows: [accessWindow] }, network))) return false;
    file.isClosed = isClosed;
    file.hasWindow = true;
    return true;
  }

  /** @returns true if it was changed */
  async #policy(user: User, file: Shared, type: string, body: object, network?: UserNetwork): Promise<boolean> {
    const userNetwork = network ?? this.#company.deskOf(file.owner);
    return (await this.#call(user, `/payloads/${file.payloadId}/policies/${type}`, { ...body, userNetwork })) !== undefined;
  }

  /** @returns the response if it is granted */
  async #call({ userId, email }: User, path: string, body: object): Promise<Record<string, unknown> | undefined> {
    const caller =
      this.#callers.get(userId) ?? new Caller({ userId, username: email, password: passwordOf(this.#seed, userId) }, this.#service);
    this.#callers.set(userId, caller);
    const { status, json } = await caller.call(path, body, this.#end.signal);
    return status < 300 ? json : undefined;
  }
}

function sharedOf(json: Record<string, unknown>, owner: Employee, base64FileData: string, isClosed: boolean): Shared {
  const { payloadId } = json['payload'] as { payloadId: string };
  return { payloadId, owner, base64FileData, readers: new Set(), isClosed, hasWindow: false };
}

function namesOf(name: string): { fileType: string; fileName: string } {
  const fileType = extname(name);
  return { fileType, fileName: name.slice(0, -fileType.length) };
}

function areaOf({ office: { latitude, longitude } }: Employee): object {
  return { latLong: `${latitude},${longitude}`, radiusKm: 500 };
}

function inDays(days: number): string {
  return new Date(Date.now() + days * dayMs).toISOString();
}
