/**
 * Network and position data of people, in the shape of `userNetwork`. Addresses
 * are from ranges reserved for documentation (RFC 5737, RFC 3849, RFC 9542).
 */
import { below, hexOf, oneOf, uuidOf, type Random } from '../random.ts';

/**
 * All strings; `latLong` is latitude and longitude with a comma between, `serviceProvider` may be
 * empty.
 */
export interface UserNetwork {
  readonly ipAddress: string;
  readonly networkName: string;
  readonly networkId: string;
  readonly domainName: string;
  readonly deviceType: string;
  readonly machineName: string;
  readonly mac: string;
  readonly uuid: string;
  readonly serviceProvider: string;
  readonly latLong: string;
  readonly address: string;
}

type Spot = readonly [name: string, latitude: number, longitude: number];

const places: readonly [Spot, ...Spot[]] = [
  ['Sydney NSW, Australia', -33.8688, 151.2093],
  ['Wellington, New Zealand', -41.2866, 174.7756],
  ['Singapore', 1.3521, 103.8198],
  ['東京, Japan', 35.6762, 139.6503],
  ['Bengaluru, India', 12.9716, 77.5946],
  ['Nairobi, Kenya', -1.2921, 36.8219],
  ['Zürich, Switzerland', 47.3769, 8.5417],
  ['Reykjavík, Iceland', 64.1466, -21.9426],
  ['London, United Kingdom', 51.5072, -0.1276],
  ['São Paulo, Brazil', -23.5505, -46.6333],
  ['New York NY, United States', 40.7128, -74.006],
  ['Anchorage AK, United States', 61.2181, -149.9003],
];
const v4Ranges = ['192.0.2', '198.51.100', '203.0.113'];
const devices = ['Windows', 'MacOS', 'Linux', 'iOS', 'Android'];
const providers = ['', 'Example Telecom', 'Example Fibre', 'Example Mobile "5G"'];
const networks = ['corp-wifi', 'Guest', 'Ethernet 2', 'Home\\WLAN', 'hotel-lobby'];

/** Network and position near one of the places, by default any. */
export function networkOf(random: Random, at?: number): UserNetwork {
  const [place, latitude, longitude] = (at === undefined ? undefined : places[at]) ?? oneOf(random, places);
  const near = (degrees: number): string => (degrees + (random() - 0.5) / 10).toFixed(4 + below(random, 3));
  const device = oneOf(random, devices);
  return {
    ipAddress: random() < 0.3 ? v6Of(random) : `${oneOf(random, v4Ranges)}.${1 + below(random, 254)}`,
    networkName: oneOf(random, networks),
    networkId: uuidOf(random),
    domainName: oneOf(random, ['corp.example.com', 'branch.example.org', 'WORKGROUP']),
    deviceType: device,
    machineName: `${device.slice(0, 3).toUpperCase()}-${hexOf(random, 6).toUpperCase()}`,
    mac: `00-00-5E-00-53-${hexOf(random, 2).toUpperCase()}`,
    uuid: uuidOf(random),
    serviceProvider: oneOf(random, providers),
    latLong: `${near(latitude)},${near(longitude)}`,
    address: `${1 + below(random, 200)} Example Street, ${place}`,
  };
}

function v6Of(random: Random): string {
  const groups = Array.from({ length: 2 + below(random, 5) }, () => hexOf(random, 4).replace(/^0+(?=.)/, ''));
  return groups.length === 6 ? `2001:db8:${groups.join(':')}` : `2001:db8::${groups.join(':')}`;
}
