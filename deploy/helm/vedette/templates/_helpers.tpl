{{- define "vedette.chart" -}}
{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of everything. A release's name may have 53 characters, so that it fits into a label. The chart's own count more than the user's. */}}
{{- define "vedette.labels" -}}
{{ include "vedette.chartLabels" . }}
{{- with include "vedette.otherLabels" (list .Values.commonLabels) }}
{{ . }}
{{- end }}
{{- end -}}
{{- define "vedette.chartLabels" -}}
helm.sh/chart: {{ include "vedette.chart" . | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/name: vedette
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{/* Labels of users, without those that the chart sets, from maps of which the first counts: (list .commonLabels .podLabels). */}}
{{- define "vedette.otherLabels" -}}
{{- $labels := dict -}}
{{- range . -}}{{- $labels = merge $labels (. | default dict) -}}{{- end -}}
{{- with omit $labels "helm.sh/chart" "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/component" "vedette.io/clouddriver" -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/* The labels by which pods of a component are selected: (dict "root" $ "component" "server"). */}}
{{- define "vedette.selector" -}}
app.kubernetes.io/name: vedette
app.kubernetes.io/instance: {{ .root.Release.Name | trunc 63 | trimSuffix "-" | quote }}
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

{{/* The metadata of an object: (dict "root" $ "name" "x" "component" "server" "namespace" "y" "annotations" (dict) "labels" (dict)). */}}
{{- define "vedette.metadata" -}}
name: {{ .name | quote }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- include "vedette.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
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

{{/* Where servers find each other, in lower case: local, kubernetes, database or redis. */}}
{{- define "vedette.cluster" -}}
{{- $cluster := dig "kubesvc" "cluster" "" (.Values.server.config | default dict) | toString | lower -}}
{{- ternary "local" $cluster (has $cluster (list "" "none")) -}}
{{- end -}}

{{/* True if the server opens its port for other servers, unless its database turns out to be SQLite. */}}
{{- define "vedette.hasPeers" -}}
{{- if ne (include "vedette.cluster" .) "local" }}true{{ end -}}
{{- end -}}

{{/* True if the values say where a database is that servers can share. */}}
{{- define "vedette.hasDatabase" -}}
{{- $s := .Values.server -}}
{{- $config := $s.config | default dict -}}
{{- $url := dig "sql" "url" "" $config | default $s.database.url | toString -}}
{{- range $s.env -}}
{{- if and (kindIs "map" .) (eq (get . "name" | toString) "VEDETTE_SERVER_SQL_URL") -}}
{{- $url = get . "value" | default "${VEDETTE_SERVER_SQL_URL}" | toString -}}
{{- end -}}
{{- end -}}
{{- if and (or $url (dig "sql" "connectionPools" dict $config)) (not (hasPrefix "sqlite:" $url)) }}true{{ end -}}
{{- end -}}

{{/* True if servers share the database: server.replicas of them, as a Deployment. */}}
{{- define "vedette.shared" -}}
{{- if and (include "vedette.hasPeers" .) (include "vedette.hasDatabase" .) }}true{{ end -}}
{{- end -}}

{{/* True if the server lists pods with its own service account. */}}
{{- define "vedette.discoversPods" -}}
{{- if and (eq (include "vedette.cluster" .) "kubernetes") (not (dig "kubesvc" "cluster-kubernetes" "kubeconfigFile" "" (.Values.server.config | default dict))) }}true{{ end -}}
{{- end -}}

{{/* The Secret with the key of operations, if there is one. */}}
{{- define "vedette.operationKey" -}}
{{- if .Values.server.operationKeySecret -}}
{{ .Values.server.operationKeySecret }}
{{- else if include "vedette.shared" . -}}
{{ include "vedette.server" . }}-operations
{{- end -}}
{{- end -}}

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
priorityClassName: {{ . | quote }}
{{- end }}
terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds | int64 }}
{{- end -}}
{{- define "vedette.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
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
{{- if include "vedette.hasPeers" . -}}
{{- $_ := set $config.server "peers" (dict "port" 7004) -}}
{{- end -}}
{{- if include "vedette.discoversPods" . -}}
{{- $_ := set $config "kubesvc" (dict "cluster-kubernetes" (dict "clouddriverServiceNamePrefix" (include "vedette.rest" .))) -}}
{{- end -}}
{{- toYaml (mustMergeOverwrite $config (deepCopy ($s.config | default dict))) -}}
{{- end -}}

{{/*
A port that a configuration sets, so that probes and Services lead to where the program listens, or the default, if it is not set or a variable:
(dict "config" .Values.server.config "path" "server.port" "default" 7002).
*/}}
{{- define "vedette.port" -}}
{{- $port := .config | default dict -}}
{{- range splitList "." .path -}}
{{- $port = ternary (get (ternary $port dict (kindIs "map" $port)) .) "" (kindIs "map" $port) -}}
{{- end -}}
{{- ternary $port .default (regexMatch "^[0-9]+$" (toString $port)) -}}
{{- end -}}
{{- define "vedette.httpPort" -}}{{ include "vedette.port" (dict "config" .Values.server.config "path" "server.port" "default" 7002) }}{{- end -}}

{{/* What in the values of a component is secret, one path in each line: (dict "root" $ "component" "server"). */}}
{{- define "vedette.secretValues" -}}
{{- $values := .root.Values -}}
{{- $places := list -}}
{{- if eq .component "server" -}}
  {{- $places = append $places (dict "in" $values.server.config "of" "server" "path" "server.config") -}}
  {{- $urls := dict "server.database.url" $values.server.database.url "server.config.sql.url" (dig "sql" "url" "" ($values.server.config | default dict)) -}}
  {{- range $name, $pool := dig "sql" "connectionPools" dict ($values.server.config | default dict) -}}
    {{- if kindIs "map" $pool }}{{ $_ := set $urls (printf "server.config.sql.connectionPools.%s.jdbcUrl" $name) (get $pool "jdbcUrl") }}{{ end -}}
  {{- end -}}
  {{- range $path, $url := $urls -}}
    {{- if regexMatch "://[^@/]*:[^/]*@" ($url | default "" | toString) }}{{ $path }}{{ "\n" }}{{ end -}}
  {{- end -}}
{{- else -}}
  {{- $places = append $places (dict "in" $values.agent.config "of" "agent" "path" "agent.config") -}}
  {{- $places = append $places (dict "in" $values.agent.account.settings "of" "account" "path" "agent.account.settings") -}}
  {{- range $name, $kubeconfig := $values.agent.kubeconfigs -}}
    {{- $places = append $places (dict "in" $kubeconfig.settings "of" "account" "path" (printf "agent.kubeconfigs.%s.settings" $name)) -}}
  {{- end -}}
{{- end -}}
{{- $secrets := .root.Files.Get "files/secrets.yaml" | fromYaml -}}
{{- range $place := $places -}}
  {{- range index $secrets $place.of -}}
    {{- include "vedette.secretsIn" (dict "in" $place.in "steps" (splitList "." .) "path" $place.path) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The object with the configuration of a component: (dict "root" $ "component" "server" "name" … "file" "vedette-server.yml" "content" …). */}}
{{- define "vedette.configObject" -}}
{{- $isSecret := include "vedette.secretValues" . -}}
apiVersion: v1
kind: {{ ternary "Secret" "ConfigMap" (ne $isSecret "") }}
metadata:
  {{- include "vedette.metadata" . | nindent 2 }}
{{ ternary "stringData" "data" (ne $isSecret "") }}:
  {{ .file }}: |
    {{- .content | nindent 4 }}
{{- end -}}

{{/* The source of a projected volume that has it. */}}
{{- define "vedette.configSource" -}}
- {{ ternary "secret" "configMap" (ne (include "vedette.secretValues" .) "") }}:
    name: {{ .name | quote }}
{{- end -}}

{{/*
The paths of secrets that are in a configuration as they are, one in each line: (dict "in" .Values.server.config "steps" (list "sql" "password")
"path" "server.config"). A step that ends in [] is a list, and * is any key.
*/}}
{{- define "vedette.secretsIn" -}}
{{- $in := .in -}}
{{- $path := .path -}}
{{- if and .steps (kindIs "map" $in) -}}
  {{- $name := first .steps | trimSuffix "[]" -}}
  {{- $below := get $in $name -}}
  {{- $steps := rest .steps -}}
  {{- if eq $name "*" -}}
    {{- range $key, $item := $in -}}{{- include "vedette.secretsIn" (dict "in" $item "steps" $steps "path" (printf "%s.%s" $path $key)) -}}{{- end -}}
  {{- else if kindIs "slice" $below -}}
    {{- range $i, $item := $below -}}{{- include "vedette.secretsIn" (dict "in" $item "steps" $steps "path" (printf "%s.%s[%d]" $path $name $i)) -}}{{- end -}}
  {{- else -}}
    {{- include "vedette.secretsIn" (dict "in" $below "steps" $steps "path" (printf "%s.%s" $path $name)) -}}
  {{- end -}}
{{- else if kindIs "map" $in -}}
  {{- range $name, $value := $in -}}{{- include "vedette.secretsIn" (dict "in" $value "steps" list "path" (printf "%s.%s" $path $name)) -}}{{- end -}}
{{- else if and (not .steps) $in (not (regexMatch `^encrypted(File)?:|\$\{` (toString $in))) -}}
{{ $path }}{{ "\n" }}
{{- end -}}
{{- end -}}

{{/* The account of the agent's own cluster, as the agent's configuration has it. */}}
{{- define "vedette.ownAccount" -}}
{{- $a := .Values.agent -}}
{{- $account := dict "name" $a.account.name "serviceAccount" true -}}
{{- with $a.rbac.namespaces -}}{{- $_ := set $account "namespaces" . -}}{{- $_ := set $account "onlyNamespacedResources" true -}}{{- end -}}
{{- with $a.rbac.kinds -}}{{- $_ := set $account "kinds" . -}}{{- end -}}
{{- toYaml (mustMergeOverwrite $account (deepCopy ($a.account.settings | default dict))) -}}
{{- end -}}

{{/* The namespace in which the agent looks for servers (balanceConnection); empty if it does not. */}}
{{- define "vedette.serversNamespace" -}}
{{- $config := .Values.agent.config | default dict -}}
{{- if regexMatch "^(?i:true|yes|on|y|t|1)$" (get $config "balanceConnection" | toString) -}}
{{ get $config "clouddriverNamespace" | default (ternary "" .Release.Namespace (ne .Values.agent.server.address "")) }}
{{- end -}}
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
{{- if $a.account.name -}}
{{- $accounts = append $accounts (include "vedette.ownAccount" . | fromYaml) -}}
{{- end -}}
{{- range $name, $kubeconfig := $a.kubeconfigs -}}
{{- $account := dict "name" $name "kubeconfigFile" (printf "/etc/vedette/kubeconfigs/%s/%s" $name ($kubeconfig.key | default "config")) -}}
{{- $accounts = append $accounts (mustMergeOverwrite $account (deepCopy ($kubeconfig.settings | default dict))) -}}
{{- end -}}
{{- $user := deepCopy ($a.config | default dict) -}}
{{- $accounts = concat $accounts (dig "kubernetes" "accounts" list $user) -}}
{{- $config := mustMergeOverwrite (dict "clouddriver" $clouddriver "server" (dict "port" 8082) "prometheus" (dict "enabled" .Values.monitoring.enabled "port" 8008) "kubernetes" dict) $user -}}
{{- $_ := set $config.kubernetes "accounts" $accounts -}}
{{- with include "vedette.serversNamespace" . -}}{{- $_ := set $config "clouddriverNamespace" . -}}{{- end -}}
{{- toYaml $config -}}
{{- end -}}
