/**
 * The roles of specification section 5 with their permissions, verbatim. Where that table says "not
 * shown" (Policy Administrator, and the two permissions of the organization policies),
 * docs/reference-service.md states the choice and its reason.
 */

export type Permission =
  | 'payload.create'
  | 'payload.open'
  | 'payload.read'
  | 'payload.read.all'
  | 'payload.update'
  | 'payload.update.all'
  | 'users.read'
  | 'users.read.all'
  | 'users.write'
  | 'groups.read'
  | 'groups.read.all'
  | 'logs.read'
  | 'logs.read.all'
  | 'organization.read'
  | 'organization.update';

export type Role = keyof typeof permissionsOfRole;

const permissionsOfRole = {
  Author: ['payload.create', 'payload.open', 'payload.read', 'payload.update', 'users.read', 'groups.read', 'logs.read'],
  Recipient: ['payload.open'],
  'Security Administrator': ['users.read.all', 'groups.read.all', 'logs.read.all'],
  'User Administrator': ['users.read.all', 'users.write'],
  'Data Administrator': ['payload.read.all', 'payload.update.all', 'logs.read', 'users.read', 'groups.read'],
  'Policy Administrator': [
    'payload.read.all',
    'payload.update.all',
    'users.read',
    'groups.read',
    'organization.read',
    'organization.update',
  ],
  'Super Administrator': [
    'payload.create',
    'payload.open',
    'payload.read',
    'payload.read.all',
    'payload.update',
    'payload.update.all',
    'users.read',
    'users.read.all',
    'users.write',
    'groups.read',
    'groups.read.all',
    'logs.read',
    'logs.read.all',
    'organization.read',
    'organization.update',
  ],
} as const satisfies Record<string, readonly Permission[]>;

/** Every role of the specification, in its order. */
export const roles = Object.keys(permissionsOfRole) as Role[];

/** True if any of the roles has the permission. */
export function allows(held: readonly Role[], permission: Permission): boolean {
  return held.some((role) => (permissionsOfRole[role] as readonly Permission[]).includes(permission));
}
