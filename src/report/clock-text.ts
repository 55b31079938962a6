/** The finding of `check` on the difference between the clocks of the service and of this machine. */
import { span } from './format-time.ts';

/** A `Date` header has whole seconds, and a response takes time. */
const agreeSeconds = 1;
/** With a larger difference, times of records cannot be compared with times of other systems. */
const apartSeconds = 60;

/** @param seconds  the clock of the service minus the clock of this machine */
export function clockFinding(seconds: number): { readonly level: 'ok' | 'warning'; readonly message: string } {
  const apart = Math.round(Math.abs(seconds));
  if (apart <= agreeSeconds)
    return { level: 'ok', message: 'the clock of the service and the clock of this machine agree within a second' };
  const message = `the clock of the service is ${span(apart)} ${seconds < 0 ? 'behind' : 'ahead of'} the clock of this machine`;
  return apart <= apartSeconds ? { level: 'ok', message } : { level: 'warning', message: `${message}: correct the wrong one` };
}
