/** The manifest of the sidecar and the systemd unit. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { cacheFolder } from '../support/servers/programs.ts';
import { notRun, programPath, run } from './programs.ts';

const root = resolve(import.meta.dirname, '../..');
const sidecar = join(root, 'deploy/kubernetes/sidecar.yaml');
const unit = join(root, 'deploy/systemd/waybill.service');
const kubeconform = programPath('kubeconform', 'kubeconform-0.8.0') ?? '';
const analyze = programPath('systemd-analyze', 'systemd') ?? '';
const schemas = join(cacheFolder(), 'kubernetes-schemas-1.37.0');
const skipped = notRun({ kubeconform, schemas, systemd: analyze });

describe('manifests', () => {
  beforeEach(({ skip }) => {
    if (skipped !== undefined) skip(skipped);
  });

  const text = readFileSync(sidecar, 'utf8');
  const [configMap, statefulSet] = parseAllDocuments(text).map((document) => document.toJS() as unknown) as [
    { data: Record<string, string> },
    { spec: { replicas: number; template: { spec: { initContainers: readonly object[] } } } },
  ];

  it.each(['1.29.0', '1.36.0'])('Kubernetes %s knows every field of the sidecar', (version) => {
    const location = join(schemas, `v${version}-strict/{{ .ResourceKind }}{{ .KindSuffix }}.json`);
    const { ok, text: report } = run(kubeconform, ['-strict', '-kubernetes-version', version, '-schema-location', location, sidecar]);
    expect(ok, report).toBe(true);
  });

  it('the sidecar is native, has one replica, and cannot take the application out of service', () => {
    expect(statefulSet.spec.replicas).toBe(1);
    const [container, ...others] = statefulSet.spec.template.spec.initContainers;
    expect(others).toEqual([]);
    expect(container).toMatchObject({ restartPolicy: 'Always', livenessProbe: { httpGet: { path: '/healthz' } } });
    expect(container).not.toHaveProperty('readinessProbe');
    expect(container).not.toHaveProperty('startupProbe');
  });

  it('`check --offline` accepts the configuration of the sidecar', () => {
    const folder = mkdtempSync(join(tmpdir(), 'waybill-sidecar-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'waybill.yaml');
    writeFileSync(file, configMap.data['waybill.yaml'] ?? '');
    const { ok, text: report } = run(process.execPath, [join(root, 'bin/waybill.js'), 'check', '--offline', '--config', file]);
    expect(ok, report).toBe(true);
  });

  it('systemd-analyze rates the exposure of the unit at 2.0 or better', () => {
    const { ok, text: report } = run(analyze, ['security', '--offline=true', '--no-pager', '--threshold=20', unit]);
    expect(ok, report).toBe(true);
    expect(Number(/Overall exposure level for waybill\.service: ([\d.]+)/.exec(report)?.[1])).toBeLessThanOrEqual(2);
  });

  it('systemd reports nothing about the unit except the program, which is not installed here', () => {
    const { text: report } = run(analyze, ['verify', '--man=no', unit]);
    expect(report.replace(/^.*waybill is not executable: No such file or directory\n?/m, '')).toBe('');
  });
});
