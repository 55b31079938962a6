/**
 * Evaluates policies in a fixed order: the rule of the organization; the access of the user, so
 * that others learn nothing about the rules of a payload; time; place. The first failed rule is the
 * reason. Pure.
 */
import type { ReasonOf } from '../logs/combinations.ts';
import { liesIn, type Area, type Place } from './position.ts';
import type { AccessLevel, AccessWindow, Rules } from './shapes.ts';

interface Opening {
  readonly excludedCountries: readonly string[];
  readonly isRevoked: boolean;
  /** The access of the caller, if any, and the access that is required. */
  readonly level: AccessLevel | undefined;
  readonly needed: AccessLevel;
  readonly rules: Rules;
  readonly place: Place;
  /** ms since 1970 */
  readonly now: number;
}

/** The reason to deny opening; undefined if it is allowed. */
export function refusalOfOpening(opening: Opening): ReasonOf<'Decrypt', 'AccessDenied'> | undefined {
  const { excludedCountries, isRevoked, level, needed, rules, place, now } = opening;
  if (isExcluded(excludedCountries, place)) return 'GeoValidationCountryExclusionFailed';
  if (isRevoked || level === undefined || (needed === 'FullAccess' && level === 'View')) return 'UserPayloadNoAccess';
  if (rules.accessWindows.length > 0 && !rules.accessWindows.some((window) => isOpen(window, now))) return 'TimeEmbargoFailed';
  if (isOutside(rules.allowedAreas, place)) return 'GeoValidationFailed';
  return undefined;
}

/** The reason to deny protection in the service; undefined if it is allowed. */
export function refusalOfProtecting(excludedCountries: readonly string[], place: Place): ReasonOf<'Encrypt', 'AccessDenied'> | undefined {
  return isExcluded(excludedCountries, place) ? 'GeoValidationCountryExclusionFailed' : undefined;
}

/** The reason to deny a data key for protection elsewhere; undefined if it is allowed. */
export function refusalOfRequest(
  excludedCountries: readonly string[],
  allowedAreas: readonly Area[],
  place: Place,
): ReasonOf<'EncryptionRequest', 'AccessDenied'> | undefined {
  if (isExcluded(excludedCountries, place)) return 'GeoValidationCountryExclusionFailed';
  return isOutside(allowedAreas, place) ? 'GeoValidationFailed' : undefined;
}

function isExcluded(excludedCountries: readonly string[], place: Place): boolean {
  return place.countries.some((country) => excludedCountries.includes(country));
}

function isOutside(areas: readonly Area[], place: Place): boolean {
  return areas.length > 0 && !areas.some((area) => liesIn(place, area));
}

/** From startTime on, before endTime. */
function isOpen({ startTime, endTime }: AccessWindow, now: number): boolean {
  return (startTime === undefined || Date.parse(startTime) <= now) && (endTime === undefined || now < Date.parse(endTime));
}
