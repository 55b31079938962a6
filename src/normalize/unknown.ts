/**
 * Maps an unknown combination of action, result and reason by its known parts: the service may add values. They keep as much meaning as
 * possible and get a severity that draws attention.
 */
import { cut } from '../record/text.ts';
import type { EventOutcome, Outcome } from './outcomes.ts';

interface FileAction {
  readonly action: string;
  readonly type: string;
  readonly name: string;
}

interface AuditResult {
  readonly stem: string;
  readonly category: readonly string[];
  /** Undefined if the reason cannot be appended to it. */
  readonly name: string | undefined;
}

const fileActions: ReadonlyMap<string, FileAction> = new Map([
  ['Encrypt', { action: 'file-encrypt', type: 'creation', name: 'File protection' }],
  ['EncryptionRequest', { action: 'file-encrypt-request', type: 'creation', name: 'File protection request' }],
  ['Decrypt', { action: 'file-decrypt', type: 'access', name: 'Protected file open' }],
]);

const auditResults: ReadonlyMap<string, AuditResult> = new Map<string, AuditResult>([
  ['AccessWindow', { stem: 'access-window', category: ['configuration'], name: 'Access window' }],
  ['RevokeAccess', { stem: 'access-revocation', category: ['configuration', 'iam'], name: 'Access revocation' }],
  ['AuthorisedGroupAccess', { stem: 'group-access', category: ['configuration', 'iam'], name: 'Group authorization' }],
  ['AuthorisedUserAccess', { stem: 'user-access', category: ['configuration', 'iam'], name: 'User authorization' }],
  ['AuthorChanged', { stem: 'owner', category: ['configuration', 'iam'], name: undefined }],
]);

const genericName = 'Data protection event';
const codePartMax = 80;
const actionPartMax = 60;

/** The outcome of a triple that is not in the table; an absent part is undefined. */
export function unknownOutcome(action: string | undefined, result: string | undefined, reason: string | undefined): Outcome {
  const code = `${codePart(action)}:${codePart(result)}:${codePart(reason)}`;
  const fileAction = action === undefined ? undefined : fileActions.get(action);
  if (fileAction !== undefined) return ofFile(fileAction, code, result);
  const audit = action === 'Audit' && result !== undefined ? auditResults.get(result) : undefined;
  if (audit !== undefined) {
    const named = audit.name !== undefined && (reason === 'Changed' || reason === 'Created');
    const name = named ? `${audit.name} ${reason.toLowerCase()}` : genericName;
    return {
      code,
      category: audit.category,
      type: ['info'],
      action: `${audit.stem}-${kebab(reason)}`,
      outcome: 'unknown',
      severity: 4,
      name,
    };
  }
  const known = action === 'Audit';
  return {
    code,
    category: known ? ['configuration'] : undefined,
    type: known ? ['info'] : undefined,
    action: `${kebab(action)}-${kebab(result)}-${kebab(reason)}`,
    outcome: 'unknown',
    severity: 4,
    name: genericName,
  };
}

function ofFile(action: FileAction, code: string, result: string | undefined): Outcome {
  const outcome: EventOutcome = result === 'AccessGranted' ? 'success' : result === 'AccessDenied' ? 'failure' : 'unknown';
  const names = { success: `${action.name} allowed`, failure: `${action.name} denied`, unknown: genericName };
  return {
    code,
    category: ['file'],
    type: [action.type],
    action: action.action,
    outcome,
    severity: outcome === 'failure' ? 5 : 4,
    name: names[outcome],
  };
}

function codePart(part: string | undefined): string {
  return part === undefined ? 'Unknown' : cut(part, codePartMax).replace(/[^A-Za-z0-9._-]/gu, '_');
}

/** `DeviceNotTrusted` as `device-not-trusted`. Every character but ASCII letters and digits separates words. */
function kebab(part: string | undefined): string {
  const from = part ?? '';
  let text = '';
  for (let i = 0; i < from.length && text.length < actionPartMax; i += 1) {
    const character = from.charAt(i);
    if (!/[A-Za-z0-9]/.test(character)) {
      if (text !== '' && !text.endsWith('-')) text += '-';
      continue;
    }
    const startsWord = isUpper(character) && (!isUpper(from.charAt(i - 1)) || /[a-z]/.test(from.charAt(i + 1)));
    if (startsWord && text !== '' && !text.endsWith('-')) text += '-';
    text += character.toLowerCase();
  }
  const word = text.slice(0, actionPartMax);
  return word === '' ? 'unknown' : word.endsWith('-') ? word.slice(0, -1) : word;
}

function isUpper(character: string): boolean {
  return character >= 'A' && character <= 'Z';
}
