/** Protected files for tests: protect, open and share a file, and read the log records of one payload. */
import type { Caller, Service, Told } from './service.ts';

/** Positions far from any border, and one in the middle of the South Pacific. */
export const places = {
  zurich: '47.3769,8.5417',
  bern: '46.948,7.4474',
  sydney: '-33.8688,151.2093',
  wellington: '-41.2866,174.7756',
  sanJuan: '18.4655,-66.1057',
  atSea: '-48.8767,-123.3933',
};

export function networkAt(latLong = places.zurich): { ipAddress: string; latLong: string } {
  return { ipAddress: '192.0.2.7', latLong };
}

export function fileOf(content: Buffer | string, more: object = {}): Record<string, unknown> {
  const base64FileData = Buffer.from(content).toString('base64');
  return { fileType: '.txt', fileName: 'Plan.txt', userNetwork: networkAt(), base64FileData, ...more };
}

export interface Protected {
  payloadId: string;
  base64FileData: string;
}

/** Protects a file; must succeed. */
export async function protect(service: Service, caller: Caller, content: Buffer | string = 'a secret'): Promise<Protected> {
  const { status, json } = await service.call(caller, 'POST', '/payloads/protect-remote/', fileOf(content));
  if (status !== 201) throw new Error(JSON.stringify(json));
  return { payloadId: (json['payload'] as { payloadId: string }).payloadId, base64FileData: String(json['base64FileData']) };
}

export function open(service: Service, caller: Caller, file: Protected, latLong?: string): Promise<Told> {
  const { base64FileData } = file;
  return service.call(caller, 'POST', '/payloads/open-remote', { base64FileData, userNetwork: networkAt(latLong) });
}

/** The status, and the reason of a denial. */
export async function opens(service: Service, caller: Caller, file: Protected, latLong?: string): Promise<number | string> {
  const { status, json } = await open(service, caller, file, latLong);
  return typeof json['reason'] === 'string' ? json['reason'] : status;
}

/** Changes a policy of the payload; must succeed. */
export async function policy(service: Service, caller: Caller, { payloadId }: Protected, type: string, body: object): Promise<Told> {
  const reply = await service.call(caller, 'POST', `/payloads/${payloadId}/policies/${type}`, body);
  if (reply.status !== 200) throw new Error(JSON.stringify(reply.json));
  return reply;
}

/** The log of the payload, oldest first: action, result and reason of each record. */
export async function logOf(service: Service, { payloadId }: { payloadId: string }): Promise<string[]> {
  const { data } = await service.page(`payloadId=${payloadId}&sort=%2BlogTimestamp`);
  return data.map((record) => [record['actionAttempted'], record['result'], record['resultReason']].join(' '));
}
