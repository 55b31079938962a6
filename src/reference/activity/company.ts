/**
 * A company of 500 people at work, day by day: pure, and the same for the same seed. It is as messy as a real one: people click on files that
 * they may not open, travel, use VPNs and new machines, print folders, hand over files in bulk, and a batch account runs late.
 */
import type { Combination } from '../logs/combinations.ts';
import type { UserNetwork } from '../logs/network.ts';
import type { LoggedAction } from '../logs/records.ts';
import { below, hexOf, oneOf, randomOf, uuidOf, type Random } from '../random.ts';

export type User = LoggedAction['user'];

/** An action of a person. */
export interface CompanyAction extends LoggedAction {
  /** ms since 1970 */
  readonly at: number;
  readonly payload: { readonly id: string; readonly name: string; readonly owner: Employee };
  /** With whom a file is shared, if the company knows. */
  readonly colleague?: User | undefined;
  /** The new access window has not begun. */
  readonly isLimited?: boolean;
}

interface Place {
  readonly name: string;
  readonly latitude: number;
  readonly longitude: number;
}

interface Office extends Place {
  /** Hours ahead of UTC. */
  readonly zone: number;
  readonly people: number;
  readonly ip: string;
  /** A part of the people works in shifts, by night and at weekends. */
  readonly shifts: number;
}

/** Addresses are of the ranges for documentation (RFC 5737). The first is the exit of the VPN for people at home. */
const offices: readonly [Office, ...Office[]] = [
  { name: 'Zürich, Switzerland', latitude: 47.3769, longitude: 8.5417, zone: 1, people: 180, ip: '192.0.2.1', shifts: 0 },
  { name: 'London, United Kingdom', latitude: 51.5072, longitude: -0.1276, zone: 0, people: 120, ip: '192.0.2.2', shifts: 0 },
  { name: 'New York NY, United States', latitude: 40.7128, longitude: -74.006, zone: -5, people: 100, ip: '192.0.2.3', shifts: 0 },
  { name: 'Singapore', latitude: 1.3521, longitude: 103.8198, zone: 8, people: 60, ip: '192.0.2.4', shifts: 0 },
  { name: 'Bengaluru, India', latitude: 12.9716, longitude: 77.5946, zone: 5.5, people: 40, ip: '192.0.2.5', shifts: 0.5 },
];
/** Travellers are also denied here. */
const excluded: Place = { name: 'Wellington, New Zealand', latitude: -41.2866, longitude: 174.7756 };

interface Machine {
  readonly name: string;
  readonly type: string;
  readonly uuid: string;
  readonly mac: string;
}

export interface Employee extends User {
  readonly office: Office;
  readonly team: Team;
  readonly homeProvider: string;
  readonly home: Place;
  readonly phone: Machine;
  laptop: Machine;
  /** Files on an average working day. */
  readonly pace: number;
  readonly isOnShifts: boolean;
  /** Days since the first day of the company's record, in which the person is employed. */
  readonly from: number;
  readonly to: number;
}

export interface CompanyFile {
  readonly id: string;
  readonly name: string;
  owner: Employee;
  readonly readers: Set<Employee>;
  isLimited: boolean;
}

export interface Team {
  /** From 1. */
  readonly number: number;
  readonly members: Employee[];
  readonly files: CompanyFile[];
  readonly isFinance: boolean;
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const teamSize = 10;
const subjects = ['Budget', 'Contract', 'Blueprint', 'Payroll', 'Minutes', 'Roadmap', 'Offer', 'Review', 'Forecast', 'Design'];
const extensions = ['.docx', '.xlsx', '.pdf', '.pptx', '.dwg'];
const homeProviders = ['Example Telecom', 'Example Fibre', 'Example Cable', 'Example DSL'];
/** The network of the company's phones. */
const mobileProvider = 'Example Mobile';
const hotels = ['Hotel Net', 'Example Hospitality', 'Airport Free', 'Example Roaming'];

const opened: Combination = ['Decrypt', 'AccessGranted', 'Success'];
const protectedFile: Combination = ['Encrypt', 'AccessGranted', 'Success'];
const noAccess: Combination = ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess'];
const outsideArea: Combination = ['Decrypt', 'AccessDenied', 'GeoValidationFailed'];
const excludedCountry: Combination = ['Decrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed'];
const outsideTime: Combination = ['Decrypt', 'AccessDenied', 'TimeEmbargoFailed'];
const shared: Combination = ['Audit', 'AuthorisedUserAccess', 'Created'];
const sharedWithGroup: Combination = ['Audit', 'AuthorisedGroupAccess', 'Created'];
const revoked: Combination = ['Audit', 'RevokeAccess', 'Changed'];
const windowChanged: Combination = ['Audit', 'AccessWindow', 'Changed'];
const handedOver: Combination = ['Audit', 'AuthorChanged', 'Changed'];

/** A person's whereabouts on a day. */
interface Stay {
  readonly place: Place;
  readonly provider: string;
  readonly ip: string;
  /** Hours after midnight UTC at which the working day begins. */
  readonly begins: number;
}

export class Company {
  readonly employees: readonly Employee[];
  readonly teams: readonly Team[];
  readonly helpDesk: readonly User[];
  /** Works by night on `batch-1`, from 1 UTC, and now and then so late that it ends after 5 UTC. */
  readonly batch: User;
  /** Of the company's accounts: reads the files of every team at the end of a quarter, as announced. */
  readonly auditor: User;
  readonly #random: Random;
  readonly #start: number;
  readonly #days: number;
  readonly #trips = new Map<Employee, { readonly from: number; readonly to: number; readonly place: Place; readonly provider: string }>();
  readonly #absences = new Map<Employee, readonly (readonly [from: number, to: number])[]>();
  #actions: CompanyAction[] = [];

  /** @param start  midnight UTC in ms */
  constructor(seed: string, start: number, days: number) {
    const random = randomOf(`${seed}/company`);
    this.#random = random;
    this.#start = start;
    this.#days = days;
    const teams: Team[] = [];
    let number = 0;
    const userOf = (first: string, last: string): User => ({
      userId: uuidOf(random),
      name: `${last},${first}`,
      email: `${first}.${last}`.toLowerCase() + '@example.com',
    });
    for (const office of offices) {
      for (let made = 0; made < office.people; made += teamSize) {
        const team: Team = { number: teams.length + 1, members: [], files: [], isFinance: teams.length % 8 === 0 };
        teams.push(team);
        for (let member = 0; member < teamSize; member += 1) {
          number += 1;
          const isStarter = random() < 0.03;
          const isLeaver = !isStarter && random() < 0.02;
          team.members.push({
            ...userOf(`Person${number}`, 'Sample'),
            office,
            team,
            homeProvider: oneOf(random, homeProviders),
            home: { name: office.name, latitude: office.latitude + random() * 0.4, longitude: office.longitude + random() * 0.4 },
            phone: machineOf(random, 'iOS'),
            laptop: machineOf(random, 'Windows'),
            pace: (team.isFinance ? 9 : 3) * Math.exp(random() * 1.2),
            isOnShifts: random() < office.shifts,
            from: isStarter ? below(random, days) : 0,
            to: isLeaver ? days - below(random, days) : days,
          });
        }
      }
    }
    this.teams = teams;
    this.employees = teams.flatMap(({ members }) => members);
    this.helpDesk = [userOf('Help1', 'Desk'), userOf('Help2', 'Desk')];
    this.batch = userOf('Nightly', 'Batch');
    this.auditor = userOf('Careful', 'Auditor');
    for (const team of teams) for (let i = 0; i < 40; i += 1) team.files.push(this.#newFile(oneOf(random, team.members)));
    for (const employee of this.employees) this.#plan(employee);
  }

  /** All actions in the order of their times. */
  month(): readonly CompanyAction[] {
    const days = Array.from({ length: this.#days }, (_, number) => this.day(number));
    return days.flat().sort((a, b) => a.at - b.at);
  }

  /**
   * The actions that begin on a day, in the order of their times. Days follow each other.
   * @param number  0 for the first day
   */
  day(number: number): readonly CompanyAction[] {
    for (const employee of this.employees) this.#workday(employee, number);
    this.#events(number);
    this.#nightlyJob(number);
    const actions = this.#actions.sort((a, b) => a.at - b.at);
    this.#actions = [];
    return actions;
  }

  /** What the detection rules except at this company, in the form of `waybill detections try --lists`. */
  lists(): Readonly<Record<string, readonly string[] | Readonly<Record<string, object>>>> {
    const idsOf = (users: readonly User[]): string[] => users.map(({ userId }) => userId);
    return {
      'service-accounts': { [this.batch.userId]: { hours: '1-6', hosts: [batchMachine.name] } },
      'trusted-users': idsOf([this.batch, this.auditor]),
      'help-desk': idsOf(this.helpDesk),
      'known-providers': [mobileProvider],
      offices: offices.map(({ ip }) => ip),
    };
  }

  /** Of an employee at home. */
  homeOf({ laptop, home, homeProvider }: Employee): UserNetwork {
    return networkOf(laptop, { place: home, provider: homeProvider, ip: '203.0.113.77', begins: 0 });
  }

  #plan(employee: Employee): void {
    const random = this.#random;
    const absences: [number, number][] = [];
    // Four weeks of holidays a year, and now and then an illness.
    for (let from = 0; from < this.#days; from += 7) {
      if (random() < 0.05) absences.push([from, from + oneOf(random, [5, 7, 7, 14, 21])]);
      if (random() < 0.03) absences.push([from + below(random, 5), from + 3 + below(random, 5)]);
    }
    this.#absences.set(employee, absences);
    if (random() > 0.12) return;
    const from = below(random, this.#days);
    const isExcluded = random() < 0.03;
    const place = isExcluded ? excluded : oneOf(random, offices);
    this.#trips.set(employee, { from, to: from + 2 + below(random, 4), place, provider: oneOf(random, hotels) });
  }

  #isQuarterEnd(number: number): boolean {
    const date = new Date(this.#start + number * day);
    const inQuarter = date.getUTCMonth() % 3;
    return (inQuarter === 2 && date.getUTCDate() >= 27) || (inQuarter === 0 && date.getUTCDate() <= 4);
  }

  #isWorking(employee: Employee, number: number): boolean {
    if (!isEmployed(employee, number)) return false;
    if (this.#absences.get(employee)?.some(([from, to]) => number >= from && number < to) === true) return false;
    const weekday = new Date(this.#start + number * day).getUTCDay();
    const isWeekend = weekday === 0 || weekday === 6;
    if (employee.isOnShifts) return (number + employee.pace) % 7 < 5;
    // Each office has one public holiday in four weeks.
    if (number % 28 === Math.round(employee.office.longitude + 180) % 5) return false;
    return isWeekend ? this.#random() < 0.04 : this.#random() < 0.95;
  }

  #stay(employee: Employee, number: number): Stay {
    const random = this.#random;
    const { office } = employee;
    const trip = this.#trips.get(employee);
    const shift = employee.isOnShifts ? oneOf(random, [0, 8, 14]) : 0;
    const begins = 8 + random() * 1.5 - office.zone + shift;
    if (trip && number >= trip.from && number < trip.to) {
      const ip = `198.51.100.${1 + below(random, 250)}`;
      const zone = Math.round(trip.place.longitude / 15);
      return { place: trip.place, provider: trip.provider, ip, begins: 8 + random() * 2 - zone };
    }
    if (random() < 0.6) return { place: office, provider: `Example ${office.name.split(',')[0] ?? ''}`, ip: office.ip, begins };
    return { place: employee.home, provider: employee.homeProvider, ip: `203.0.113.${1 + below(random, 250)}`, begins };
  }

  #workday(employee: Employee, number: number): void {
    const random = this.#random;
    if (!this.#isWorking(employee, number)) return;
    const midnight = this.#start + number * day;
    const stay = this.#stay(employee, number);
    if (employee.from === number || random() < 0.0015) employee.laptop = machineOf(random, random() < 0.8 ? 'Windows' : 'MacOS');
    const network = networkOf(employee.laptop, stay);
    const begins = midnight + stay.begins * hour;
    const isTravelDay = this.#trips.get(employee)?.from === number;
    const isBusy = employee.team.isFinance && this.#isQuarterEnd(number);
    // A task that a person never had: far more files on one day.
    const isNewTask = random() < 0.0002;
    const files = isNewTask ? 42 + below(random, 30) : Math.round(employee.pace * (isBusy ? 2 : 1) * (0.3 + 1.4 * random()));
    for (let i = 0; i < files; i += 1) {
      const at = begins + this.#hourOfWork() * hour;
      const chance = random();
      if (chance < 0.006) this.#wrongClick(employee, at, network);
      else if (chance < 0.012 && employee.team.files.some(({ isLimited }) => isLimited)) {
        const late = employee.team.files.find(({ isLimited }) => isLimited);
        if (late)
          for (let tries = 1 + below(random, 3); tries > 0; tries -= 1)
            this.#add(at + tries * minute, outsideTime, employee, late, network);
      } else if (chance < 0.1) this.#protect(employee, at, network);
      else if (chance < 0.15) this.#share(employee, at, network);
      else if (chance < 0.22) {
        const file = this.#fileFor(employee);
        if (file) this.#add(at, opened, employee, file, this.#phoneNetwork(employee, stay));
      } else {
        const file = this.#fileFor(employee);
        if (file) this.#add(at, opened, employee, file, this.#overVpn(employee, stay, at) ?? network);
      }
    }
    // Morning, before the flight, and the evening in a hotel: the laptop works in the airport and in the aircraft.
    if (isTravelDay && random() < 0.5) {
      const file = this.#fileFor(employee);
      const exit = random() < 0.15 ? oneOf(random, offices) : employee.office;
      const aboard: Stay = { place: exit, provider: 'Example Sky', ip: '198.51.100.254', begins: 0 };
      if (file) this.#add(begins - 6 * hour, opened, employee, file, networkOf(employee.laptop, aboard));
    }
  }

  /** Two peaks, before and after lunch. */
  #hourOfWork(): number {
    const random = this.#random;
    return (random() < 0.5 ? 1 : 5) + (random() + random()) * 2;
  }

  #phoneNetwork(employee: Employee, stay: Stay): UserNetwork {
    const isAbroad = stay.place !== employee.office && stay.place !== employee.home;
    // A phone abroad leaves through the network of its home.
    const place = isAbroad && this.#random() < 0.1 ? employee.office : stay.place;
    return networkOf(employee.phone, { place, provider: mobileProvider, ip: `203.0.113.${1 + below(this.#random, 250)}`, begins: 0 });
  }

  /** People at home use the VPN of the company, which has its exit in the first office, and few use another one. */
  #overVpn(employee: Employee, stay: Stay, at: number): UserNetwork | undefined {
    if (stay.place !== employee.home) return undefined;
    const isFirst = Math.floor(at / (2 * hour)) % 3 === 0;
    if (isFirst && this.#random() < 0.3)
      return networkOf(employee.laptop, { place: offices[0], provider: 'Example Zürich', ip: offices[0].ip, begins: 0 });
    if (this.#random() > 0.000_03) return undefined;
    return networkOf(employee.laptop, {
      place: oneOf(this.#random, offices),
      provider: 'Example Private VPN',
      ip: '198.51.100.253',
      begins: 0,
    });
  }

  /** A forwarded link to a file of another team: denied, often again, and sometimes granted later. */
  #wrongClick(employee: Employee, at: number, network: UserNetwork): void {
    const random = this.#random;
    const file = oneOf(random, oneOf(random, this.teams).files);
    if (file.readers.has(employee)) return;
    const tries = oneOf(random, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3]);
    for (let i = 0; i < tries; i += 1) this.#add(at + i * oneOf(random, [20_000, minute, 4 * minute]), noAccess, employee, file, network);
    if (random() > 0.3) return;
    // Asks for access. The owner answers in hours; when he is absent, the help desk does.
    const granted = at + 15 * minute + random() * random() * 20 * hour;
    const isAbsent = random() < 0.15;
    file.readers.add(employee);
    if (isAbsent) this.#add(granted, shared, oneOf(random, this.helpDesk), file, this.#desk(), employee);
    else this.#add(granted, shared, file.owner, file, this.deskOf(file.owner), employee);
    if (random() < 0.8) this.#add(granted + (5 + random() * 180) * minute, opened, employee, file, network);
  }

  #desk(): UserNetwork {
    return networkOf(deskMachine, { place: offices[0], provider: 'Example Zürich', ip: offices[0].ip, begins: 0 });
  }

  /** Of an employee in the office. */
  deskOf(employee: Employee): UserNetwork {
    const { office } = employee;
    return networkOf(employee.laptop, { place: office, provider: `Example ${office.name.split(',')[0] ?? ''}`, ip: office.ip, begins: 0 });
  }

  #protect(employee: Employee, at: number, network: UserNetwork): void {
    const count = this.#random() < 0.02 ? 10 + below(this.#random, 70) : 1;
    for (let i = 0; i < count; i += 1) {
      const file = this.#newFile(employee);
      employee.team.files.push(file);
      this.#add(at + i * 2_000, protectedFile, employee, file, network);
    }
  }

  #share(employee: Employee, at: number, network: UserNetwork): void {
    const own = employee.team.files.filter(({ owner }) => owner === employee);
    const file = own.at(-1 - below(this.#random, 5));
    if (!file) return;
    const other = oneOf(this.#random, this.employees);
    file.readers.add(other);
    this.#add(at, this.#random() < 0.2 ? sharedWithGroup : shared, employee, file, network, other);
    // Few owners let a colleague share their files, who then reads them as before.
    const theirs = this.#random() < 0.0005 ? employee.team.files.findLast(({ owner }) => owner !== employee) : undefined;
    if (theirs) this.#add(at + hour, shared, employee, theirs, network);
    if (theirs && this.#random() < 0.5) this.#add(at + 2 * hour, opened, employee, theirs, network);
    if (this.#random() < 0.7) this.#add(at + this.#random() * 3 * hour, opened, other, file, this.deskOf(other));
  }

  /** What happens to teams and to the company, not to one person. */
  #events(number: number): void {
    const random = this.#random;
    const weekday = new Date(this.#start + number * day).getUTCDay();
    if (weekday === 0 || weekday === 6) return;
    const noon = this.#start + number * day + (9 + random() * 5) * hour;
    const team = oneOf(random, this.teams);
    const [boss] = team.members.filter((member) => this.#isWorking(member, number));
    if (!boss) return;
    const network = this.deskOf(boss);
    const own = team.files.filter(({ owner }) => owner === boss);
    // A meeting looks at one file.
    for (let meeting = 0; meeting < 8; meeting += 1) {
      const { members, files } = oneOf(random, this.teams);
      const file = oneOf(random, files);
      const guests = [
        ...members.slice(0, 4 + below(random, 6)),
        ...Array.from({ length: below(random, 5) }, () => oneOf(random, this.employees)),
      ];
      for (const guest of guests) {
        file.readers.add(guest);
        this.#add(noon + meeting * 20 * minute + random() * 8 * minute, opened, guest, file, this.deskOf(guest));
      }
    }
    // An announcement to half an office.
    if (random() < 0.06) {
      const file = this.#newFile(boss);
      for (const reader of this.employees) {
        if (reader.office !== boss.office || random() < 0.5 || !this.#isWorking(reader, number)) continue;
        this.#add(noon + random() * random() * 3 * hour, opened, reader, file, this.deskOf(reader));
      }
    }
    // Sent to a department before the owner granted access.
    if (random() < 0.15) {
      const file = oneOf(random, oneOf(random, this.teams).files);
      for (const reader of [...team.members, ...oneOf(random, this.teams).members].slice(0, 2 + below(random, 10)))
        if (!file.readers.has(reader)) this.#add(noon + random() * 50 * minute, noAccess, reader, file, this.deskOf(reader));
    }
    // A folder before its access: one person clicks through it.
    if (random() < 0.2) {
      const reader = oneOf(random, this.employees);
      for (let i = oneOf(random, [2, 2, 2, 3, 3, 3, 4, 4, 5]); i > 0; i -= 1)
        this.#add(noon + i * minute, noAccess, reader, oneOf(random, team.files), this.deskOf(reader));
    }
    // A traveller with files for the office alone, and one in an excluded country.
    for (const [who, trip] of this.#trips) {
      if (number !== trip.from + 1) continue;
      const away = networkOf(who.laptop, { place: trip.place, provider: trip.provider, ip: '198.51.100.7', begins: 0 });
      const denial = trip.place === excluded ? excludedCountry : outsideArea;
      if (trip.place === excluded || random() < 0.3)
        for (let i = 1 + below(random, 3); i > 0; i -= 1)
          this.#add(noon + i * 3 * minute, denial, who, oneOf(random, who.team.files), away);
    }
    // Folders are read, and sometimes printed.
    for (let i = 0; i < 10; i += 1) {
      const reader = oneOf(random, this.employees);
      const count = random() < 0.002 ? 26 + below(random, 20) : 6 + below(random, 14);
      const files = (random() < 0.9 ? reader.team : oneOf(random, this.teams)).files.slice(-count);
      for (const [place, file] of files.entries()) this.#add(noon + place * 20_000, opened, reader, file, this.deskOf(reader));
    }
    // A status report of each member.
    for (let i = 0; i < 5; i += 1) {
      const { members } = oneOf(random, this.teams);
      const reader = oneOf(random, members);
      for (const member of members) {
        const file = this.#newFile(member);
        if (random() < 0.8) this.#add(noon + random() * 50 * minute, opened, reader, file, this.deskOf(reader));
      }
    }
    // Projects start, move their deadline, and end.
    if (random() < 0.3)
      for (let i = 6 + below(random, 16); i > 0; i -= 1) {
        const file = this.#newFile(boss);
        team.files.push(file);
        this.#add(noon - hour + i * minute, protectedFile, boss, file, network);
        this.#add(noon + i * minute, shared, boss, file, network);
      }
    if (random() < 0.2)
      for (const [place, file] of own.slice(-3 - below(random, 11)).entries()) {
        file.isLimited = random() < 0.5;
        this.#add(noon + 2 * hour + place * minute, windowChanged, boss, file, network);
      }
    if (random() < 0.15) this.#endProject(team, own, noon, network);
    // The auditors.
    if (this.#isQuarterEnd(number)) {
      for (let i = 40 + below(random, 80); i > 0; i -= 1)
        this.#add(noon + i * 4 * minute, opened, this.auditor, oneOf(random, team.files), this.#desk());
    }
    // The files of a leaver go to a colleague: by a job at night, or by hand.
    for (const leaver of this.employees) {
      if (leaver.to !== number || leaver.to === this.#days) continue;
      const files = leaver.team.files.filter(({ owner }) => owner === leaver).slice(0, 1 + below(random, 7));
      const [heir] = leaver.team.members.filter((member) => member !== leaver);
      const isByHand = random() < 0.5;
      const by = isByHand ? boss : this.batch;
      for (const [place, file] of files.entries()) {
        if (heir) file.owner = heir;
        this.#add(
          isByHand ? noon + place * 5 * minute : this.#start + number * day + 2 * hour,
          handedOver,
          by,
          file,
          isByHand ? network : batchNetwork,
        );
      }
      // Some leavers try once more.
      if (random() < 0.3)
        this.#add(noon + 4 * hour, noAccess, leaver, oneOf(random, files.length > 0 ? files : team.files), this.deskOf(leaver));
    }
  }

  #endProject({ members }: Team, files: readonly CompanyFile[], noon: number, network: UserNetwork): void {
    const random = this.#random;
    const ended = files.slice(0, 5 + below(random, 19));
    for (const [place, file] of ended.entries()) {
      this.#add(noon + place * 30_000, revoked, file.owner, file, network);
      const member = oneOf(random, members);
      if (random() < 0.15) this.#add(noon + (1 + random() * 5) * hour, noAccess, member, file, this.deskOf(member));
    }
  }

  #nightlyJob(number: number): void {
    const random = this.#random;
    const isLate = random() < 0.04;
    const at = this.#start + number * day + (isLate ? 4.9 : 1.2) * hour;
    const team = oneOf(random, this.teams);
    for (let i = 0; i < 60; i += 1) {
      const time = at + i * 20_000;
      const file = oneOf(random, team.files);
      this.#add(time, i % 3 === 0 ? protectedFile : opened, this.batch, file, batchNetwork);
    }
  }

  /** Newer files far more often than older ones. */
  #fileFor(employee: Employee): CompanyFile | undefined {
    const random = this.#random;
    const { files } = employee.team;
    return files.at(-1 - Math.floor(random() ** 2 * Math.min(files.length, 60)));
  }

  #newFile(owner: Employee): CompanyFile {
    const random = this.#random;
    const name = `${oneOf(random, subjects)} ${1 + below(random, 9999)}${oneOf(random, extensions)}`;
    return { id: uuidOf(random), name, owner, readers: new Set(owner.team.members), isLimited: false };
  }

  #add(at: number, combination: Combination, user: User | Employee, file: CompanyFile, network: UserNetwork, colleague?: User): void {
    // Meetings and shared files also name colleagues who have not begun yet, or are gone.
    if ('from' in user && !isEmployed(user, Math.floor((at - this.#start) / day))) return;
    const { id, name, owner, isLimited } = file;
    this.#actions.push({ at: Math.round(at), combination, user, payload: { id, name, owner }, network, colleague, isLimited });
  }
}

function isEmployed({ from, to }: Employee, number: number): boolean {
  return number >= from && number <= to;
}

const deskMachine: Machine = { name: 'DESK-1', type: 'Windows', uuid: 'desk', mac: '00-00-5E-00-53-01' };
const batchMachine: Machine = { name: 'batch-1', type: 'Linux', uuid: 'batch', mac: '00-00-5E-00-53-02' };
const batchNetwork = networkOf(batchMachine, { place: offices[0], provider: 'Example Zürich', ip: offices[0].ip, begins: 0 });

function machineOf(random: Random, type: string): Machine {
  return {
    name: `${type.slice(0, 3).toUpperCase()}-${hexOf(random, 6).toUpperCase()}`,
    type,
    uuid: uuidOf(random),
    mac: `00-00-5E-00-53-${hexOf(random, 2).toUpperCase()}`,
  };
}

function networkOf({ name, type, uuid, mac }: Machine, { place, provider, ip }: Stay): UserNetwork {
  return {
    ipAddress: ip,
    networkName: 'corp-wifi',
    networkId: 'corp',
    domainName: 'corp.example.com',
    deviceType: type,
    machineName: name,
    mac,
    uuid,
    serviceProvider: provider,
    latLong: `${place.latitude.toFixed(4)},${place.longitude.toFixed(4)}`,
    address: place.name,
  };
}
