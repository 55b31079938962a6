/** Times and numbers as the page shows them: as in `waybill status`, in UTC. */

/** `45 s`, `18 min`, `5 h`, `3 d`: one unit, rounded down. @param {number} seconds */
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 90 * 60) return `${Math.floor(whole / 60)} min`;
  if (whole < 36 * 3_600) return `${Math.floor(whole / 3_600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** `02:45:10`, with the date if it is another day. @param {number} at  ms since 1970 @param {number} now  ms since 1970 */
export function clock(at, now) {
  const text = new Date(at).toISOString();
  const time = text.slice(11, 19).replace(/:00$/, '');
  return text.slice(0, 10) === new Date(now).toISOString().slice(0, 10) ? time : `${text.slice(0, 10)} ${time}`;
}

/** @param {number} count */
export function grouped(count) {
  return count.toLocaleString('en');
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Per second; small rates keep a digit. @param {number | null} rate */
export function perSecond(rate) {
  if (rate === null) return '–';
  return `${rate >= 10 || rate === 0 ? grouped(Math.round(rate)) : rate.toFixed(rate < 0.1 ? 2 : 1)}/s`;
}

/** @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1_024 ** power;
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)} ${units[power] ?? ''}`;
}

/** Makes control characters and direction marks visible, so that text of a server cannot reorder a line. @param {string} text */
export function printable(text) {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The words for the states of a window, by the letter that `GET /overview` uses. */
export const windowStates = new Map([
  ['p', 'proven'],
  ['f', 'final'],
  ['g', 'gap'],
  ['a', 'accepted gap'],
  ['d', 'in doubt'],
  ['o', 'open'],
]);

/** Splits the text of an act into prose and the commands in it. @param {string} text */
export function commandsIn(text) {
  const command =
    /(waybill (?:(?:archive|backfill|dead-letters|gaps|operations|sinks|sources) [a-z]+|replay cancel|[a-z-]+)(?: [A-Z]+)?(?: --[a-z-]+(?: (?!--)[^\s;,]*[^\s;,.])?)*)/;
  return text
    .split(command)
    .filter((part) => part !== '')
    .map((part) => ({ text: part, isCommand: part.startsWith('waybill ') }));
}
