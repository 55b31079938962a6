/** The shapes of users and groups on the wire. */
import { z } from 'zod';
import { hasControls, pagination, text } from '../http/shapes.ts';
import { roles } from './roles.ts';

const userId = text(64).describe('User identifier');
const role = z.enum(roles as [(typeof roles)[number], ...typeof roles]);

/** Item of the users list (2.3). */
const user = z.strictObject({
  id: userId,
  firstName: z.string(),
  lastName: z.string(),
  email: z.string(),
  type: z.literal('FULL'),
});

/** With expand. */
export const expandedUser = user
  .extend({ roles: z.array(role).min(1), groupIds: z.array(z.string()), createdDate: z.string() })
  .meta({ id: 'ExpandedUser' });

export const usersPage = z.strictObject({ pagination, data: z.array(z.union([expandedUser, user.meta({ id: 'User' })])) });

const name = text(100).refine((given) => !hasControls(given), 'must not have control characters');
/** The form that browsers accept, with the lengths of RFC 5321 section 4.5.3.1. */
const email = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email, 'must be an e-mail address')
  .regex(/^[^@]{1,64}@/, 'must have at most 64 characters before the @');
const groupIds = z.array(text(64)).max(100);

export const newUser = z.strictObject({
  firstName: name,
  lastName: name,
  email,
  roles: z.array(role).min(1).default(['Recipient']),
  groupIds: groupIds.default([]),
});

export const userChange = z
  .strictObject({ firstName: name, lastName: name, email, groupIds })
  .partial()
  .refine((change) => Object.keys(change).length > 0, 'nothing is to be changed');

export const givenRole = z.strictObject({ roleName: role });

/** Item of the groups list (2.5); the members require groups.read.all. */
const group = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    memberCount: z.int(),
    memberIds: z.array(z.string()).optional(),
  })
  .meta({ id: 'Group' });

export const groupsPage = z.strictObject({ pagination, data: z.array(group) });
