{{- define "opdock.labels" -}}
app.kubernetes.io/name: opdock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* A tag that looks like a number arrives as one: as int64 from --set, as float64 from a file. */ -}}
{{- define "opdock.tag" -}}
{{- if kindIs "string" .Values.image.tag }}{{ .Values.image.tag | default .Chart.AppVersion }}{{ else }}{{ int64 .Values.image.tag }}{{ end }}
{{- end }}

{{- define "opdock.selector" -}}
app.kubernetes.io/name: opdock
app.kubernetes.io/component: manager
{{- end }}

{{- define "opdock.subjects" -}}
- kind: ServiceAccount
  name: opdock-manager
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* An object of a file in config, with the labels of the release and the prefix that kustomize gives it. */ -}}
{{- define "opdock.object" -}}
{{- $object := .object }}
{{- $_ := set $object.metadata "name" (printf "%s%s" .prefix $object.metadata.name) }}
{{- if .namespaced }}{{ $_ := set $object.metadata "namespace" .root.Release.Namespace }}{{ end }}
{{- $_ := set $object.metadata "labels" (merge (include "opdock.labels" .root | fromYaml) ($object.metadata.labels | default dict)) }}
{{- toYaml $object }}
{{- end }}
