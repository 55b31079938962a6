/** The settings of the sink `archive`. */
import { z } from 'zod';
import { path, secret } from '../../settings/values.ts';

export const archiveSettings = z.strictObject({
  directory: path().describe('Directory of the archive, on a local disk; created with mode 0700. Relative to the working directory'),
  signingKey: secret().describe('Ed25519 private key in PEM (PKCS #8) that signs the checkpoints, e.g. `${file:/run/secrets/archive-key}`'),
});

export type ArchiveSettings = z.output<typeof archiveSettings>;
