// The scale of the map: Cividis (Nuñez, Anderton, Renslow 2018), which looks the same with and
// without a colour vision deficiency and becomes lighter from one end to the other.

/** Points of the scale, from 0 to 1, at equal distances. */
const ANCHORS: readonly (readonly [number, number, number])[] = [
  [0, 34, 78],
  [18, 53, 112],
  [59, 73, 108],
  [87, 93, 109],
  [112, 113, 115],
  [138, 134, 120],
  [165, 156, 116],
  [195, 179, 105],
  [225, 204, 85],
  [254, 232, 56],
];

/** Number of colours of the scale. */
export const STEPS = 256;

/** A pixel as a canvas has it on a machine that stores the lowest byte first. */
export function pixel(red: number, green: number, blue: number): number {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The colours from an empty to a full host, as pixels. */
export const SCALE: Uint32Array = Uint32Array.from({ length: STEPS }, (_, step) => {
  const at = (step / (STEPS - 1)) * (ANCHORS.length - 1);
  const low = Math.min(Math.floor(at), ANCHORS.length - 2);
  const from = ANCHORS[low] ?? [0, 0, 0];
  const to = ANCHORS[low + 1] ?? from;
  const mix = (channel: 0 | 1 | 2): number =>
    Math.round(from[channel] + (to[channel] - from[channel]) * (at - low));
  return pixel(mix(0), mix(1), mix(2));
});

/** Hosts that take no servers: grey lines, which no colour of the scale has. */
export const AWAY = [pixel(136, 136, 136), pixel(204, 204, 204)] as const;
