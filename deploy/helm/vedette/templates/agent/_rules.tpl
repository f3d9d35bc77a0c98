{{/*
The rules that an account needs in its own cluster: those that "vedette-agent rbac" prints for the same settings
(agent/rbac/rules.go has the reasons). TestRulesOfChart compares both.
*/}}
{{- define "vedette.rules" -}}
{{- $r := .Values.agent.rbac -}}
{{- $known := .Files.Get "files/kinds.yaml" | fromYaml -}}
{{- $whole := eq (len $r.namespaces) 0 -}}
{{- $cached := $r.kinds | default (dig "cache" "kinds" (list "ReplicaSet" "Service" "Ingress" "DaemonSet" "Deployment" "Pod" "StatefulSet" "Job" "CronJob" "NetworkPolicy" "Namespace" "CustomResourceDefinition") .Values.server.config) -}}
{{- $verbs := dict -}}
{{- $change := ternary (list "get" "list") (list "get" "list" "create" "update" "patch" "delete") $r.readOnly -}}
{{- range $kind := concat $cached $r.change -}}
  {{- $resource := dict -}}
  {{- range $name, $entry := $known -}}
    {{- if or (eq (lower $name) (lower $kind)) (eq (lower (printf "%s.%s" $name $entry.group)) (lower $kind)) -}}
      {{- $_ := set $resource "name" $name -}}
      {{- $_ := set $resource "entry" $entry -}}
    {{- end -}}
  {{- end -}}
  {{- if not $resource.entry -}}
    {{- fail (printf "agent.rbac: the chart does not know the resource of kind %q: put it into agent.rbac.extra, as {group: …, resource: …}" $kind) -}}
  {{- end -}}
  {{- if or $whole $resource.entry.namespaced -}}
    {{- $key := printf "%s/%s" $resource.entry.group $resource.entry.resource -}}
    {{- $more := ternary (list "list" "watch") list (has $kind $cached) -}}
    {{- $_ := set $verbs $key (concat (dig $key list $verbs) $more $change) -}}
    {{- if eq $resource.name "Pod" -}}
      {{- $_ := set $verbs "/pods/log" (list "get") -}}
    {{- else if eq $resource.name "Deployment" -}}
      {{- $_ := set $verbs "apps/replicasets" (concat (dig "apps/replicasets" list $verbs) (list "list")) -}}
    {{- else if has $resource.name (list "StatefulSet" "DaemonSet") -}}
      {{- $_ := set $verbs "apps/controllerrevisions" (concat (dig "apps/controllerrevisions" list $verbs) (list "list")) -}}
    {{- end -}}
    {{- if and (has $resource.name (list "Deployment" "StatefulSet" "ReplicaSet")) (not $r.readOnly) -}}
      {{- $_ := set $verbs (printf "apps/%s/scale" $resource.entry.resource) (list "patch") -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range $r.extra -}}
  {{- $_ := set $verbs (printf "%s/%s" (.group | default "") .resource) (concat (list "list" "watch") $change) -}}
{{- end -}}
{{- $kubeSystem := false -}}
{{- if $whole -}}
  {{- $kubeSystem = not (has "get" (dig "/namespaces" list $verbs)) -}}
  {{- $_ := set $verbs "/namespaces" (concat (dig "/namespaces" list $verbs) (list "list")) -}}
  {{- range list "apiextensions.k8s.io/customresourcedefinitions" "apiregistration.k8s.io/apiservices" -}}
    {{- $_ := set $verbs . (concat (dig . list $verbs) (list "list" "watch")) -}}
  {{- end -}}
{{- end -}}
{{- $_ := set $verbs "/events" (concat (dig "/events" list $verbs) (list "list")) -}}
{{- if and (hasKey $verbs "/pods/log") (dig "metrics" true .Values.agent.account.settings) -}}
  {{- $_ := set $verbs "metrics.k8s.io/pods" (list "get" "list") -}}
{{- end -}}
{{- if $kubeSystem }}
# Its uid tells clusters apart.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end -}}
{{- range $key := keys $verbs | sortAlpha -}}
{{- $parts := splitn "/" 2 $key }}
- apiGroups: [{{ $parts._0 | quote }}]
  resources: [{{ $parts._1 }}]
  verbs: [{{ join ", " (dig $key list $verbs | uniq) }}]
{{- end -}}
{{- end -}}
