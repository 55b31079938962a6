{{- define "waybill.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "waybill.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "waybill.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "waybill.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "waybill.selectorLabels" -}}
app.kubernetes.io/name: {{ include "waybill.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "waybill.labels" -}}
{{ include "waybill.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Name, namespace, labels and annotations: (list $ nameSuffix labels annotations) */ -}}
{{- define "waybill.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "waybill.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "waybill.labels" $root | nindent 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (index . 3) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "waybill.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default .Chart.AppVersion $image.tag }}{{ end -}}
{{- end -}}

{{- define "waybill.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "waybill.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "waybill.scheme" -}}
{{- if dig "admin" "tls" nil .Values.config }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "waybill.configuration" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not (or $config.sources $config.include) -}}
{{- fail "config.sources names no source: set config.sources (docs/configuration.md), or existingConfigMap" -}}
{{- end -}}
{{- if and (or .Values.ca.existingConfigMap .Values.ca.existingSecret) (not (dig "tls" "ca" nil $config)) -}}
{{- $_ := set $config "tls" (dict "ca" "/etc/waybill/ca") -}}
{{- end -}}
{{- include "waybill.consistent" . -}}
{{- toYaml $config -}}
{{- end -}}

{{- /* Refuses values that contradict the configuration: the pod would start, and fail later. */ -}}
{{- define "waybill.consistent" -}}
{{- $text := toYaml .Values.config -}}
{{- range regexFindAll "[$][{]file:/run/secrets/[^/}]+/" $text -1 -}}
{{- $name := . | trimPrefix "${file:/run/secrets/" | trimSuffix "/" -}}
{{- if not (or (has $name $.Values.secrets) (contains (printf "/run/secrets/%s" $name) (toYaml $.Values.extraVolumeMounts))) -}}
{{- fail (printf "secrets does not name %q: config reads %s… (secrets: [%s])" $name . (join ", " $.Values.secrets)) -}}
{{- end -}}
{{- end -}}
{{- $fleet := .Values.config.fleet -}}
{{- if and $fleet (not .Values.fleet.enabled) -}}
{{- fail "config.fleet needs no volume: set fleet.enabled" -}}
{{- end -}}
{{- if .Values.fleet.enabled -}}
{{- if not $fleet -}}
{{- fail "fleet.enabled needs config.fleet, the address of the database" -}}
{{- end -}}
{{- if or .Values.persistence.existingClaim .Values.requireState -}}
{{- fail "persistence.existingClaim and requireState are for one process: with fleet.enabled the state is in the database (fleet import moves it there)" -}}
{{- end -}}
{{- end -}}
{{- $journal := include "waybill.mebibytes" (dig "journal" "maxSize" "10GiB" .Values.config) -}}
{{- $volume := include "waybill.mebibytes" (printf "%v" .Values.persistence.size) -}}
{{- if and (not .Values.fleet.enabled) .Values.persistence.enabled (not .Values.persistence.existingClaim) $journal $volume (gt (float64 $journal) (float64 $volume)) -}}
{{- fail (printf "persistence.size is %v, less than config.journal.maxSize (%v): make the volume a fifth larger than the journal" .Values.persistence.size (dig "journal" "maxSize" "10GiB" .Values.config)) -}}
{{- end -}}
{{- $shutdown := dig "shutdownTimeout" "20s" .Values.config -}}
{{- if and (regexMatch "^[0-9]+s$" $shutdown) (le (int .Values.terminationGracePeriodSeconds) (int (trimSuffix "s" $shutdown))) -}}
{{- fail (printf "terminationGracePeriodSeconds is %v: it must be longer than config.shutdownTimeout (%s)" .Values.terminationGracePeriodSeconds $shutdown) -}}
{{- end -}}
{{- end -}}

{{- /* A size such as 10GiB, 10Gi or 500MiB; empty for another form. */ -}}
{{- define "waybill.mebibytes" -}}
{{- if regexMatch "^[0-9.]+(Gi|Mi|Ti)B?$" . -}}
{{- $factor := ternary 1048576.0 (ternary 1024.0 1.0 (contains "Gi" .)) (contains "Ti" .) -}}
{{- mulf (float64 (regexFind "^[0-9.]+" .)) $factor -}}
{{- end -}}
{{- end -}}

{{- define "waybill.configMapName" -}}
{{- default (include "waybill.fullname" .) .Values.existingConfigMap -}}
{{- end -}}

{{- /* Settings of every pod of the release. */ -}}
{{- define "waybill.podSettings" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Mounts of certificates and secrets. */ -}}
{{- define "waybill.mounts" -}}
{{- if or .Values.ca.existingConfigMap .Values.ca.existingSecret }}
- name: ca
  mountPath: /etc/waybill/ca
  readOnly: true
{{- end }}
{{- range .Values.secrets }}
- name: secret-{{ . }}
  mountPath: /run/secrets/{{ . }}
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Volumes of the configuration, certificates and secrets: (list $ nameOfTheConfigMap) */ -}}
{{- define "waybill.volumes" -}}
{{- $root := index . 0 -}}
# No subPath: such a mount would keep the old content when the object changes.
- name: config
  configMap:
    name: {{ index . 1 }}
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
{{- if $root.Values.ca.existingConfigMap }}
- name: ca
  configMap:
    name: {{ $root.Values.ca.existingConfigMap }}
{{- else if $root.Values.ca.existingSecret }}
- name: ca
  secret:
    secretName: {{ $root.Values.ca.existingSecret }}
{{- end }}
{{- range $root.Values.secrets }}
- name: secret-{{ . }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
