/**
 * `userNetwork` in requests: the place of the caller. It may have the other
 * fields of section 2.7 for the log.
 */
import { z } from 'zod';
import type { UserNetwork } from '../logs/network.ts';
import { placeOf, positionForm, positionOf, type Place } from './position.ts';

/** The fields for the log, and the place for policies. */
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

/** For a caller without `userNetwork`: the address of the client. */
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
