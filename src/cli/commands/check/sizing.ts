/** The requirements of the measured rate: journal size and requests, and the longest outage that the journal can hold. Pure. */
import { grouped, span } from '../../../report/format-time.ts';
import { size } from '../../../report/format-size.ts';
import type { Line, Measured } from './state.ts';

const daySeconds = 86_400;

/** @param maxSize  `journal.maxSize`, bytes */
export function sizingLines(measured: readonly Measured[], maxSize: number): Line[] {
  if (measured.length === 0) return [];
  const perDay = measured.reduce((sum, { recordsPerSecond, storedBytes }) => sum + recordsPerSecond * storedBytes * daySeconds, 0);
  return [...measured.map(sourceLine), ...(perDay === 0 ? [] : [outageLine(perDay, maxSize)])];
}

function sourceLine({ source, recordsPerSecond, seconds, recordBytes, storedBytes, idleRequests, pageSize }: Measured): Line {
  const daily = recordsPerSecond * daySeconds;
  // Waybill reads each record at least twice: with a live poll, and before it closes the window.
  const requests = Math.round(idleRequests + (2 * daily) / pageSize);
  const message =
    `measured over ${span(seconds)}: ${recordsPerSecond.toPrecision(2)} records/s of ${Math.round(recordBytes)} bytes; ` +
    `${size(daily * storedBytes)} a day in the journal, at least ${grouped(requests)} requests a day`;
  return { subject: `source ${source}`, level: 'ok', message };
}

function outageLine(bytesPerDay: number, maxSize: number): Line {
  const seconds = (maxSize / bytesPerDay) * daySeconds;
  const message = `journal.maxSize ${size(maxSize)} is enough for an outage of every sink of about ${span(seconds)} at the measured rate`;
  return seconds >= daySeconds
    ? { subject: 'journal', level: 'ok', message }
    : { subject: 'journal', level: 'warning', message: `${message}; then collection pauses, and the service keeps the records` };
}
