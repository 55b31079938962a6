/** Land for a small map: equirectangular, without the polar regions. */
import land from '../fixtures/land-110m.json' with { type: 'json' };

/** Degrees that the map shows. */
const [west, east, south, north] = [-170, 190, -56, 78];

type Point = readonly [x: number, y: number];

interface WorldMap {
  readonly height: number;
  /** The data of one SVG path. */
  readonly land: string;
  readonly place: (lon: number, lat: number) => Point;
}

export function worldMap(width: number): WorldMap {
  const scale = width / (east - west);
  const place = (lon: number, lat: number): Point => [(lon - west) * scale, (north - lat) * scale];
  const rings = land.filter((ring) => ring.some(([, lat = 0]) => lat > south && lat < north));
  const paths = rings.map((ring) => {
    const steps = ring.map(([lon = 0, lat = 0], index) => {
      const [x, y] = place(lon, lat);
      // A ring that crosses the antimeridian is drawn in parts.
      const isFirst = Math.abs(lon - (ring[index - 1]?.[0] ?? Infinity)) > 180;
      return `${isFirst ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    return `${steps.join('')}Z`;
  });
  return { height: (north - south) * scale, land: paths.join(''), place };
}
