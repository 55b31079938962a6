/**
 * Positions on the earth, their countries, and areas. The borders are from a package, so no network
 * request is needed.
 */

/** Degrees, north and east positive. */
interface Position {
  readonly latitude: number;
  readonly longitude: number;
}

/** A position and the ISO 3166-1 codes of its country and territory; none at sea. */
export interface Place {
  readonly position: Position;
  readonly countries: readonly string[];
}

/** Latitude and longitude in decimal degrees with a comma between. */
export const positionForm = /^([+-]?\d{1,2}(?:\.\d{1,15})?), ?([+-]?\d{1,3}(?:\.\d{1,15})?)$/;
const earthRadiusKm = 6371.0088;

/** `latitude,longitude` in decimal degrees; undefined for another text. */
export function positionOf(latLong: string): Position | undefined {
  const match = positionForm.exec(latLong);
  const [latitude, longitude] = [Number(match?.[1]), Number(match?.[2])];
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : undefined;
}

export async function placeOf(position: Position): Promise<Place> {
  // The borders are large, so they are loaded at first use.
  const { iso1A2Code } = await import('@rapideditor/country-coder');
  // Both are the same meridian; the package only has borders for -180.
  const at: [number, number] = [position.longitude === 180 ? -180 : position.longitude, position.latitude];
  const codes = [iso1A2Code(at, { level: 'country' }), iso1A2Code(at, { level: 'territory' })];
  return { position, countries: [...new Set(codes.filter((code) => code !== null))] };
}

/** A country, or a circle on the earth around `latLong`. */
export type Area = { readonly country: string } | { readonly latLong: string; readonly radiusKm: number };

export function liesIn({ position, countries }: Place, area: Area): boolean {
  if ('country' in area) return countries.includes(area.country);
  const centre = positionOf(area.latLong);
  return centre !== undefined && distanceKm(position, centre) <= area.radiusKm;
}

/** Along the great circle (haversine), on a sphere with the mean radius of the earth. */
function distanceKm(one: Position, other: Position): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  const square = (value: number): number => value * value;
  const half =
    square(Math.sin(radians(other.latitude - one.latitude) / 2)) +
    Math.cos(radians(one.latitude)) * Math.cos(radians(other.latitude)) * square(Math.sin(radians(other.longitude - one.longitude) / 2));
  return 2 * earthRadiusKm * Math.asin(Math.min(1, Math.sqrt(half)));
}
