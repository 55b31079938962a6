/** `userNetwork` as requests carry it (specification 2.2): where the caller is. The other fields of section 2.7 may be there for the log. */
import { z } from 'zod';
import type { UserNetwork } from '../logs/network.ts';
import { placeOf, positionForm, positionOf, type Place } from './position.ts';

/** What the log shows, and the place by which policies judge. */
export interface CallerNetwork {
  readonly shown: UserNetwork;
  readonly place: Place;
}

const notPosition = 'must be latitude,longitude in decimal degrees';
export const latLong = z
  .string()
  .regex(positionForm, notPosition)
  .refine((text) => positionOf(text) !== undefined, notPosition);

const known = z
  .string()
  .max(255)
  .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
  .default('');

export const userNetwork = z
  .strictObject({
    ipAddress: z.union([z.ipv4(), z.ipv6()], 'must be an IP address'),
    networkName: known,
    networkId: known,
    domainName: known,
    deviceType: known,
    machineName: known,
    mac: known,
    uuid: known,
    serviceProvider: known,
    latLong,
    address: known,
  })
  .transform(async (shown, context): Promise<CallerNetwork> => {
    const position = positionOf(shown.latLong);
    if (position) return { shown, place: await placeOf(position) };
    context.addIssue({ code: 'custom', path: ['latLong'], message: notPosition });
    return z.NEVER;
  })
  .meta({ id: 'UserNetwork' });

/** What is known of a caller who does not say where he is: the address from which the request came. */
export function networkOfPeer(peer: string): UserNetwork {
  return {
    ipAddress: peer.replace(/^::ffff:/, ''),
    networkName: '',
    networkId: '',
    domainName: '',
    deviceType: '',
    machineName: '',
    mac: '',
    uuid: '',
    serviceProvider: '',
    latLong: '',
    address: '',
  };
}
