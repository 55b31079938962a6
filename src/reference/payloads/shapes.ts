/** The shapes of payloads on the wire (as specified; the rest is chosen). */
import { z } from 'zod';
import { dateText, hasControls, text } from '../http/shapes.ts';
import { userNetwork } from '../policies/network.ts';
import { accessLevel, allowedAreas } from '../policies/shapes.ts';
import type { Payload } from './payloads.ts';

const base64 = z.string().meta({ contentEncoding: 'base64' });

/** Section 2.1. */
export const payload = z
  .strictObject({
    ownerId: z.string(),
    payloadId: z.string(),
    fileType: z.string(),
    originalFileName: z.string(),
    originalFileCreatedDate: z.string(),
    payloadCreateDate: z.string(),
    isRevoked: z.boolean(),
  })
  .meta({ id: 'Payload' });

const file = {
  fileType: z
    .string()
    .regex(/^(?:|\.?[A-Za-z0-9][A-Za-z0-9_+-]{0,31})$/, 'must be a file extension such as .docx or docx, or empty for a file without one'),
  fileName: text(255)
    .refine((name) => !hasControls(name), 'must not have control characters')
    // Clients store the file under this name, which must not lead out of their directory.
    .refine((name) => !/[/\\]/.test(name) && name !== '.' && name !== '..', 'must be a name without folders'),
  userNetwork,
};

/** Section 2.2. */
export const protectRemote = z.strictObject({ ...file, base64FileData: base64 });
export const protectedRemote = z.strictObject({ payload, base64FileData: base64 });

/** Dates of section 2.1, with years of four digits. */
const [earliest, latest] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];

export const protectLocal = z.strictObject({
  ...file,
  originalFileCreatedDate: z.iso
    .datetime({ offset: true })
    .refine((date) => Date.parse(date) >= earliest && Date.parse(date) <= latest, 'must be in the years 0000 to 9999 of UTC')
    .optional(),
  allowedAreas: allowedAreas.default([]),
});
export const protectedLocal = z.strictObject({ payload, base64Header: base64, base64DataKey: base64 });

export const openRemote = z.strictObject({ base64FileData: base64, userNetwork });
export const openedRemote = z.strictObject({ payload, base64FileData: base64 });

export const openLocal = z.strictObject({ base64Header: base64, userNetwork });
export const openedLocal = z.strictObject({ payload, accessLevel, base64DataKey: base64 });

/**
 * The extension with its dot, and the name without it; a file without extension has an empty one.
 */
export function namesOf(given: { fileName: string; fileType: string }): { fileType: string; fileName: string } {
  const fileType = given.fileType === '' || given.fileType.startsWith('.') ? given.fileType : `.${given.fileType}`;
  const { fileName } = given;
  if (fileType === '') return { fileType, fileName };
  const ends = fileName.length > fileType.length && fileName.toLowerCase().endsWith(fileType.toLowerCase());
  return { fileType, fileName: ends ? fileName.slice(0, -fileType.length) : fileName };
}

/** Converts a date with another offset to the form of section 2.1. */
export function dateOf(text: string): string {
  return dateText(Date.parse(text));
}

export function payloadShown(given: Payload): z.infer<typeof payload> {
  return {
    ownerId: given.owner.userId,
    payloadId: given.payloadId,
    fileType: given.fileType,
    originalFileName: given.fileName,
    originalFileCreatedDate: given.fileCreatedDate,
    payloadCreateDate: given.createdDate,
    isRevoked: given.isRevoked,
  };
}
