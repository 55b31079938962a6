/** The endpoints of payloads. */
import { endpoint, json, type Endpoint } from '../http/endpoint.ts';
import { readable, type PayloadParts } from '../policies/authorize.ts';
import type { SwitchValues } from '../switches.ts';
import { answerOpenLocal, answerOpenRemote } from './open.ts';
import { answerProtectLocal, answerProtectRemote } from './protect.ts';
import {
  openedLocal,
  openedRemote,
  openLocal,
  openRemote,
  payload,
  payloadShown,
  protectedLocal,
  protectedRemote,
  protectLocal,
  protectRemote,
} from './shapes.ts';

export function payloadEndpoints(parts: PayloadParts, values: SwitchValues): Endpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/payloads/protect-remote',
      alias: '/payloads/protect-remote/',
      summary: 'Protects a file and creates a payload',
      permissions: ['payload.create'],
      body: protectRemote,
      carriesFile: true,
      answers: { 201: protectedRemote },
      answer: (call) => answerProtectRemote(parts, values, call),
    }),
    endpoint({
      method: 'POST',
      path: '/payloads/protect-local',
      summary: 'Creates a payload, and hands out the header and the data key with which the caller protects a file',
      permissions: ['payload.create'],
      body: protectLocal,
      answers: { 201: protectedLocal },
      answer: (call) => answerProtectLocal(parts, call),
    }),
    endpoint({
      method: 'POST',
      path: '/payloads/open-remote',
      summary: 'Opens a protected file',
      permissions: ['payload.open'],
      body: openRemote,
      carriesFile: true,
      answers: { 200: openedRemote },
      answer: (call) => answerOpenRemote(parts, values, call),
    }),
    endpoint({
      method: 'POST',
      path: '/payloads/open-local',
      summary: 'Hands out the data key with which the caller opens a protected file',
      permissions: ['payload.open'],
      body: openLocal,
      answers: { 200: openedLocal },
      answer: (call) => answerOpenLocal(parts, call),
    }),
    endpoint({
      method: 'GET',
      path: '/payloads/{payloadId}',
      summary: 'One payload',
      permissions: ['payload.read', 'payload.read.all'],
      answers: { 200: payload },
      refusals: [404],
      answer: ({ caller, params }) => json(200, payloadShown(readable(parts, caller, params['payloadId']))),
    }),
  ];
}
