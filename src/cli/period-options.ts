/** Options of the commands that report on a period. */
import { text, toggle } from './option.ts';

export const jsonOption = { json: toggle('print the result as JSON') };

export const timeOptions = {
  from: text('T', 'start: a time, a date, a month, 2026-Q3, -7d or -6h'),
  to: text('T', 'end, in the same forms; a date or month is included'),
};
