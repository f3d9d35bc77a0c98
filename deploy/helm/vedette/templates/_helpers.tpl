{{- define "vedette.chart" -}}
{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of everything. A release's name may have 53 characters, so that it fits into a label. */}}
{{- define "vedette.labels" -}}
helm.sh/chart: {{ include "vedette.chart" . | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: vedette
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels by which pods of a component are selected: (dict "root" $ "component" "server"). */}}
{{- define "vedette.selector" -}}
app.kubernetes.io/name: vedette
app.kubernetes.io/instance: {{ .root.Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/*
The label of servers that are in front of another Clouddriver. The Service spin-clouddriver leads only to these, because a server that
does not know the other one yet would answer as if its accounts did not exist.
*/}}
{{- define "vedette.frontLabel" -}}
{{- if eq .Values.server.clouddriver.mode "front" -}}
vedette.io/clouddriver: front
{{- end -}}
{{- end -}}

{{/* The metadata of an object: (dict "root" $ "name" "x" "component" "server" "annotations" (dict) "labels" (dict)). */}}
{{- define "vedette.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "vedette.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "vedette.server" -}}{{ .Values.namePrefix }}-clouddriver-vedette{{- end -}}
{{- define "vedette.rest" -}}
{{- if eq .Values.server.clouddriver.mode "none" -}}
{{ .Values.namePrefix }}-clouddriver-vedette
{{- else -}}
{{ .Values.namePrefix }}-clouddriver
{{- end -}}
{{- end -}}
{{- define "vedette.grpc" -}}{{ .Values.namePrefix }}-clouddriver-grpc{{- end -}}
{{- define "vedette.upstream" -}}{{ .Values.namePrefix }}-clouddriver-upstream{{- end -}}
{{- define "vedette.agent" -}}{{ .Values.namePrefix }}-armory-agent{{- end -}}
{{- define "vedette.serverTLS" -}}{{ .Values.server.tls.secretName | default (printf "%s-tls" (include "vedette.grpc" .)) }}{{- end -}}
{{- define "vedette.agentTLS" -}}
{{- if .Values.agent.server.tlsSecret -}}
{{ .Values.agent.server.tlsSecret }}
{{- else if and .Values.server.enabled (ne .Values.server.tls.mode "off") -}}
{{ .Values.server.tls.agentSecretName | default (printf "%s-tls" (include "vedette.agent" .)) }}
{{- end -}}
{{- end -}}
{{- define "vedette.serviceAccount" -}}{{ .Values.agent.serviceAccount.name | default (include "vedette.agent" .) }}{{- end -}}

{{/* The image of a component: (dict "root" $ "image" .Values.server.image). */}}
{{- define "vedette.image" -}}
{{- $name := printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) .image.repository -}}
{{- if .image.digest -}}
{{ $name }}@{{ .image.digest }}
{{- else -}}
{{ $name }}:{{ .image.tag | default .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What pods of both components have in common. */}}
{{- define "vedette.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}
{{- define "vedette.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}
{{- define "vedette.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds }}
{{- end -}}
{{- define "vedette.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The server's configuration: what the chart sets, and over it what the user sets. */}}
{{- define "vedette.serverConfig" -}}
{{- $s := .Values.server -}}
{{- $grpc := dict "port" 9091 "address" "*" -}}
{{- if eq $s.tls.mode "off" -}}
{{- $_ := set $grpc "allowUnauthenticated" true -}}
{{- else -}}
{{- $_ := set $grpc "security" (dict "enabled" true "certificateChain" "/etc/vedette/tls/tls.crt" "privateKey" "/etc/vedette/tls/tls.key" "clientAuth" "REQUIRE" "trustCertCollection" "/etc/vedette/tls/ca.crt") -}}
{{- end -}}
{{- $config := dict "dataDir" "/var/lib/vedette" "server" (dict "port" 7002 "address" "*") "grpc" (dict "server" $grpc) "management" (dict "server" (dict "port" 7003 "address" "*")) "prometheus" (dict "enabled" .Values.monitoring.enabled) -}}
{{- with $s.database.url -}}{{- $_ := set $config "sql" (dict "url" .) -}}{{- end -}}
{{- if eq $s.clouddriver.mode "front" -}}
{{- $_ := set $config "upstream" (dict "baseUrl" (printf "http://%s:7002" (include "vedette.upstream" .))) -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $config (deepCopy $s.config)) -}}
{{- end -}}

{{/* The agent's configuration. Accounts of the chart come before those of the user. */}}
{{- define "vedette.agentConfig" -}}
{{- $a := .Values.agent -}}
{{- $clouddriver := dict "grpc" ($a.server.address | default (printf "%s:9091" (include "vedette.grpc" .))) -}}
{{- if $a.server.insecure -}}
{{- $_ := set $clouddriver "insecure" true -}}
{{- else -}}
{{- if include "vedette.agentTLS" . -}}
{{- $_ := set $clouddriver "tls" (dict "cacertFile" "/etc/vedette/tls/ca.crt" "clientCertFile" "/etc/vedette/tls/tls.crt" "clientKeyFile" "/etc/vedette/tls/tls.key") -}}
{{- else -}}
{{- $_ := set $clouddriver "insecure" (and .Values.server.enabled (eq .Values.server.tls.mode "off")) -}}
{{- end -}}
{{- end -}}
{{- $accounts := list -}}
{{- with $a.account.name -}}
{{- $account := dict "name" . "serviceAccount" true -}}
{{- with $a.rbac.namespaces -}}{{- $_ := set $account "namespaces" . -}}{{- $_ := set $account "onlyNamespacedResources" true -}}{{- end -}}
{{- with $a.rbac.kinds -}}{{- $_ := set $account "kinds" . -}}{{- end -}}
{{- $accounts = append $accounts (mustMergeOverwrite $account (deepCopy $a.account.settings)) -}}
{{- end -}}
{{- range $name, $kubeconfig := $a.kubeconfigs -}}
{{- $account := dict "name" $name "kubeconfigFile" (printf "/etc/vedette/kubeconfigs/%s/%s" $name ($kubeconfig.key | default "config")) -}}
{{- $accounts = append $accounts (mustMergeOverwrite $account (deepCopy ($kubeconfig.settings | default dict))) -}}
{{- end -}}
{{- $user := deepCopy $a.config -}}
{{- $accounts = concat $accounts (dig "kubernetes" "accounts" list $user) -}}
{{- $config := mustMergeOverwrite (dict "clouddriver" $clouddriver "server" (dict "port" 8082) "prometheus" (dict "enabled" .Values.monitoring.enabled "port" 8008) "kubernetes" dict) $user -}}
{{- $_ := set $config.kubernetes "accounts" $accounts -}}
{{- toYaml $config -}}
{{- end -}}
