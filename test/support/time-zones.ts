/** Runs work under another time zone of the process. */

/** Offsets of whole, half and quarter hours, on both sides of UTC, with and without summer time. */
export const timeZones = ['UTC', 'America/St_Johns', 'Australia/Eucla', 'Australia/Lord_Howe', 'Pacific/Kiritimati', 'Europe/Berlin'];

export function inTimeZone(zone: string, work: () => void): void {
  const before = process.env['TZ'];
  process.env['TZ'] = zone;
  try {
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    if (timeZone !== zone) throw new Error(`the process is in the time zone ${timeZone} instead of ${zone}`);
    work();
  } finally {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  }
}
