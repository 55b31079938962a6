/**
 * The organization of the service: people, applications and their secrets, all derived from the
 * seed, so that the same seed gives the same credentials. The names are obviously invented.
 */
import { hexOf, randomOf, uuidOf, type Random } from '../random.ts';
import { roles, type Role } from './roles.ts';

/**
 * One user of the organization; `name` is formatted as last name, comma, first name (specification
 * 2.4, 2.7).
 */
export interface Person {
  readonly userId: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly name: string;
  readonly email: string;
  readonly roles: readonly Role[];
}

/** A collection of users to whom access can be granted at once. */
interface Group {
  readonly groupId: string;
  readonly name: string;
  readonly members: readonly Person[];
}

/** An application with a secret, for the grant client_credentials; it acts as the user named. */
interface Client {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly person: Person;
}

/** A person who can sign in with the grant password, through the public client application. */
interface Account {
  readonly username: string;
  readonly password: string;
  readonly person: Person;
}

export interface Organization {
  readonly tenantId: string;
  readonly scopeAddress: string;
  readonly subscriptionKey: string;
  /** The application through which people sign in; it has no secret. */
  readonly publicClientId: string;
  /** The initial users; the data file has the current ones. */
  readonly people: readonly Person[];
  readonly groups: readonly Group[];
  readonly clients: readonly Client[];
  readonly accounts: readonly Account[];
}

const words = 'Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo'.split(' ');
const groupNames = ['Engineering', 'Finance', 'Legal', 'Partners'];
const othersCount = 45;

/**
 * One client and one account for each role, a second account for Author, and others who only appear
 * in the log. There is one Super Administrator (section 5: one per organization), so its client and
 * its account are the same person.
 */
export function organizationOf(seed: string): Organization {
  const random = randomOf(`${seed}/organization`);
  const organization = {
    tenantId: uuidOf(random),
    scopeAddress: uuidOf(random),
    subscriptionKey: hexOf(random, 32),
    publicClientId: uuidOf(random),
  };
  const people: Person[] = [];
  const add = (last: string, first: string, held: readonly Role[]): Person => {
    const email = `${first}.${last}`.toLowerCase().replaceAll(' ', '-') + '@example.com';
    const person = { userId: uuidOf(random), firstName: first, lastName: last, name: nameOf(first, last), email, roles: held };
    people.push(person);
    return person;
  };
  const clients = roles.map((role) => {
    return { clientId: uuidOf(random), clientSecret: secretOf(random), person: add(`Service ${role}`, 'Application', [role]) };
  });
  const accounts = [...roles, 'Author' as const].map((role, index) => {
    const only = role === 'Super Administrator' ? clients.find((client) => client.person.roles.includes(role))?.person : undefined;
    const person = only ?? add(`Tester ${role}`, index < roles.length ? 'One' : 'Two', [role]);
    return { username: person.email, password: secretOf(random), person };
  });
  for (let number = 0; number < othersCount; number += 1) {
    const last = `${words[number % words.length] ?? ''}-Sample`;
    add(last, `Person ${number + 1}`, [number % 3 === 0 ? 'Author' : 'Recipient']);
  }
  return { ...organization, people, groups: groupsOf(seed, people.slice(-othersCount)), clients, accounts };
}

/** Last name, comma, first name. */
export function nameOf(firstName: string, lastName: string): string {
  return `${lastName},${firstName}`;
}

/** The password of a user who is not among the printed accounts; simulated people sign in too. */
export function passwordOf(seed: string, userId: string): string {
  return secretOf(randomOf(`${seed}/password/${userId}`));
}

/** Each person is in one group, some in two. */
function groupsOf(seed: string, people: readonly Person[]): Group[] {
  const random = randomOf(`${seed}/groups`);
  return groupNames.map((name, place) => {
    const members = people.filter((_, number) => number % groupNames.length === place || random() < 0.1);
    return { groupId: uuidOf(random), name, members };
  });
}

function secretOf(random: Random): string {
  return hexOf(random, 40);
}
