/**
 * Reads a CEF line as its strictest consumers do, with a table of keys and lengths written by hand.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { expect } from 'vitest';
import { type CefLine, parseCef } from './cef-parser.ts';

/**
 * The keys in use, in order, each with the longest value that the CEF standard permits; Waybill's
 * own keys are as long as most.
 */
const keys: Readonly<Record<string, number>> = {
  rt: 13,
  start: 13,
  externalId: 40,
  cat: 1023,
  act: 63,
  outcome: 63,
  reason: 1023,
  suid: 1023,
  suser: 1023,
  duid: 1023,
  duser: 1023,
  fname: 1023,
  fileId: 1023,
  src: 45,
  c6a2: 45,
  c6a2Label: 1023,
  smac: 17,
  shost: 1023,
  sntdom: 255,
  sourceDnsDomain: 255,
  deviceExternalId: 255,
  dvchost: 100,
  cs1: 4000,
  cs1Label: 1023,
  cs2: 4000,
  cs2Label: 1023,
  cs3: 4000,
  cs3Label: 1023,
  cs4: 4000,
  cs4Label: 1023,
  cs5: 4000,
  cs5Label: 1023,
  cs6: 4000,
  cs6Label: 1023,
  cfp1: 25,
  cfp1Label: 1023,
  cfp2: 25,
  cfp2Label: 1023,
  slat: 25,
  slong: 25,
  WaybillDpasUid: 22,
  WaybillDpasNetworkId: 1023,
  WaybillDpasUserName: 1023,
  WaybillDpasOwnerName: 1023,
  msg: 1023,
};
const order = Object.keys(keys);

/** Parses a line, and checks every requirement of CEF consumers. */
export function readStrictly(line: string): CefLine & { readonly values: ReadonlyMap<string, string> } {
  expect(line).toMatch(/^CEF:0\|/);
  expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
  expect(line.isWellFormed()).toBe(true);
  const read = parseCef(line);
  const names = read.extension.map(([key]) => key);
  expect(names).toEqual(order.filter((key) => names.includes(key)));
  expect(read.extension.flatMap(([key, value]) => faultsOf(key, value, names))).toEqual([]);
  // After the header, a backslash only precedes escaped characters; a pipe needs none.
  const extension = line
    .split(/(?<!\\)\|/)
    .slice(7)
    .join('|');
  expect(extension.replace(/\\[\\=nr]/g, '')).not.toContain('\\');
  return { ...read, values: new Map(read.extension) };
}

/** One assertion per line keeps thousands of lines cheap. */
function faultsOf(key: string, value: string, names: readonly string[]): readonly string[] {
  const faults: string[] = [];
  if (value === '') faults.push(`${key} is empty`);
  if (value.length > (keys[key] ?? 0)) faults.push(`${key} has ${value.length} characters`);
  if (/^(cs|cfp|c6a)\d$/.test(key) && !names.includes(`${key}Label`)) faults.push(`${key} has no label`);
  if (/^(src|c6a2)$/.test(key) && !isIPv4(value) && !isIPv6(value)) faults.push(`${key} is not an address: ${value}`);
  if (/^(cfp\d|slat|slong|rt|start)$/.test(key) && !Number.isFinite(Number(value))) faults.push(`${key} is not a number: ${value}`);
  return faults;
}
