/**
 * Whether an action is allowed: pure, and in one order. The organisation's rule comes first, for it holds for everything; then who, so that a
 * stranger learns nothing about the rules of a payload; then when; then where. The first that says no is the reason (specification 2.8).
 */
import type { ReasonOf } from '../logs/combinations.ts';
import { liesIn, type Area, type Place } from './position.ts';
import type { AccessLevel, AccessWindow, Rules } from './shapes.ts';

/** Everything that an opening is judged by. */
interface Opening {
  readonly excludedCountries: readonly string[];
  readonly isRevoked: boolean;
  /** What the caller has, if anything, and what the way of opening needs. */
  readonly level: AccessLevel | undefined;
  readonly needed: AccessLevel;
  readonly rules: Rules;
  readonly place: Place;
  /** ms since 1970 */
  readonly now: number;
}

/** Why the payload must not be opened; undefined when it may. */
export function refusalOfOpening(opening: Opening): ReasonOf<'Decrypt', 'AccessDenied'> | undefined {
  const { excludedCountries, isRevoked, level, needed, rules, place, now } = opening;
  if (isExcluded(excludedCountries, place)) return 'GeoValidationCountryExclusionFailed';
  if (isRevoked || level === undefined || (needed === 'FullAccess' && level === 'View')) return 'UserPayloadNoAccess';
  if (rules.accessWindows.length > 0 && !rules.accessWindows.some((window) => isOpen(window, now))) return 'TimeEmbargoFailed';
  if (isOutside(rules.allowedAreas, place)) return 'GeoValidationFailed';
  return undefined;
}

/** Why a file must not be protected by the service; undefined when it may. */
export function refusalOfProtecting(excludedCountries: readonly string[], place: Place): ReasonOf<'Encrypt', 'AccessDenied'> | undefined {
  return isExcluded(excludedCountries, place) ? 'GeoValidationCountryExclusionFailed' : undefined;
}

/** Why a key must not be handed out with which a file would be protected elsewhere; undefined when it may. */
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
