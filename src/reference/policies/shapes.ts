/** The shapes of policies on the wire (as specified; the rest is chosen). */
import { z } from 'zod';
import { text } from '../http/shapes.ts';
import { countries } from './countries.ts';
import { latLong, userNetwork } from './network.ts';

export const accessLevel = z.enum(['View', 'FullAccess']);
export type AccessLevel = z.infer<typeof accessLevel>;

const country = z
  .string()
  .refine((code) => countries.includes(code), 'must be a country code of ISO 3166-1 such as NZ')
  .meta({ id: 'Country', described: { type: 'string', enum: countries } });

/** A country, or a circle on the earth. */
const area = z
  .union([z.strictObject({ country }), z.strictObject({ latLong, radiusKm: z.number().positive().max(20_100) })])
  .meta({ id: 'Area' });
export const allowedAreas = z.array(area).max(50);

/** With an offset, or in the form of the log (section 2.7), which is UTC; stored with an offset. */
const instant = z.iso.datetime({ offset: true, local: true }).overwrite((text) => (/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`));

/** From startTime on, before endTime; one of them may be missing. */
const accessWindow = z
  .strictObject({ startTime: instant.optional(), endTime: instant.optional() })
  .refine(({ startTime, endTime }) => startTime !== undefined || endTime !== undefined, 'needs startTime, endTime or both')
  .refine(
    ({ startTime, endTime }) => startTime === undefined || endTime === undefined || Date.parse(startTime) < Date.parse(endTime),
    'ends before it begins',
  );
export type AccessWindow = z.infer<typeof accessWindow>;
const accessWindows = z.array(accessWindow).max(50);

/** Times and places at which a payload may be opened; an empty list means no rule. */
export const rules = z.strictObject({ accessWindows, allowedAreas }).meta({ id: 'AccessWindows' });
export type Rules = z.infer<typeof rules>;

/** Policy calls may contain the place of the caller, for the log. */
const from = { userNetwork: userNetwork.optional() };
const id = text(64);

export const userAuthorization = z.strictObject({ userId: id, accessLevel, ...from });
export const groupAuthorization = z.strictObject({ groupId: id, accessLevel, ...from });
/** Missing fields remain unchanged. */
export const rulesChange = z
  .strictObject({ accessWindows: accessWindows.optional(), allowedAreas: allowedAreas.optional(), ...from })
  .refine((given) => given.accessWindows !== undefined || given.allowedAreas !== undefined, 'needs accessWindows, allowedAreas or both');
/** Of the payload, or of one authorization. */
export const revocation = z
  .strictObject({ isRevoked: z.boolean(), userId: id.optional(), groupId: id.optional(), ...from })
  .refine((given) => given.userId === undefined || given.groupId === undefined, 'takes userId or groupId, not both');
export const newOwner = z.strictObject({ userId: id, ...from });
export const excludedCountries = z.strictObject({ excludedCountries: z.array(country).max(300) });

/** Item of the list of section 4.5. */
export const listedUserAuthorization = z
  .strictObject({
    userId: z.string(),
    userName: z.string(),
    email: z.string(),
    accessLevel,
    isRevoked: z.boolean(),
  })
  .meta({ id: 'UserAuthorization' });
export const listedGroupAuthorization = z
  .strictObject({ groupId: z.string(), groupName: z.string(), accessLevel, isRevoked: z.boolean() })
  .meta({ id: 'GroupAuthorization' });
