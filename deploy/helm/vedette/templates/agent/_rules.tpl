{{/*
The rules that an account needs in its own cluster: those that "vedette-agent rbac" prints for the same settings
(agent/rbac/rules.go has the reasons). TestRolesAreThoseThatTheAgentPrints compares both. The part is "all", or "namespaced" or "cluster" for
kinds that are in namespaces or not: (dict "root" $ "account" … "part" "all").
*/}}
{{- define "vedette.rules" -}}
{{- $account := .account -}}
{{- $part := .part -}}
{{- $values := .root.Values -}}
{{- $r := $values.agent.rbac -}}
{{- $extra := $r.extra | default list -}}
{{- $known := .root.Files.Get "files/kinds.yaml" | fromYaml -}}
{{- $cached := $r.kinds | default $account.kinds | default (dig "cache" "kinds" (list "ReplicaSet" "Service" "Ingress" "DaemonSet" "Deployment" "Pod" "StatefulSet" "Job" "CronJob" "NetworkPolicy" "Namespace" "CustomResourceDefinition") ($values.server.config | default dict)) -}}
{{- $changed := $r.change | default list -}}
{{- $omitted := list -}}
{{- range $account.omitKinds -}}{{- $omitted = append $omitted (lower .) -}}{{- end -}}
{{- $verbs := dict -}}
{{- $change := ternary (list "get" "list") (list "get" "list" "create" "update" "patch" "delete") $r.readOnly -}}
{{- range $kind := concat $cached $changed -}}
  {{- $isCached := has $kind $cached -}}
  {{- $resource := dict -}}
  {{- range $name, $entry := $known -}}
    {{- if or (eq (lower $name) (lower $kind)) (eq (lower (printf "%s.%s" $name $entry.group)) (lower $kind)) -}}
      {{- $_ := set $resource "name" $name -}}
      {{- $_ := set $resource "entry" $entry -}}
    {{- end -}}
  {{- end -}}
  {{- $isExtra := false -}}
  {{- range $extra -}}
    {{- if or (and .group (hasSuffix (printf ".%s" .group | lower) (lower $kind))) (hasPrefix (lower $kind) .resource) -}}{{- $isExtra = true -}}{{- end -}}
  {{- end -}}
  {{- if and (not $resource.entry) (not $isExtra) -}}
    {{- fail (printf "agent.rbac: the chart does not know the resource of kind %q: put it into agent.rbac.extra, as {group: …, resource: …}" $kind) -}}
  {{- end -}}
  {{- $isOmitted := false -}}
  {{- with $resource.entry -}}
    {{- $isOmitted = or (has (lower $resource.name) $omitted) (has (lower (printf "%s.%s" $resource.name .group)) $omitted) -}}
  {{- end -}}
  {{- if not $resource.entry -}}
  {{- else if and $isOmitted (not (has $kind $changed)) -}}
  {{- else if or (eq $part "all") (eq (eq $part "namespaced") $resource.entry.namespaced) -}}
    {{- $key := printf "%s/%s" $resource.entry.group $resource.entry.resource -}}
    {{- $more := ternary (list "list" "watch") list (and $isCached (not $isOmitted)) -}}
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
{{- if ne $part "cluster" -}}
{{- range $extra -}}
  {{- $key := printf "%s/%s" (.group | default "") .resource -}}
  {{- $_ := set $verbs $key (concat (dig $key list $verbs) (list "list" "watch") $change) -}}
{{- end -}}
{{- end -}}
{{- $kubeSystem := false -}}
{{- if ne $part "namespaced" -}}
  {{- $kubeSystem = not (has "get" (dig "/namespaces" list $verbs)) -}}
  {{- $_ := set $verbs "/namespaces" (concat (dig "/namespaces" list $verbs) (list "list")) -}}
  {{- range list "apiextensions.k8s.io/customresourcedefinitions" "apiregistration.k8s.io/apiservices" -}}
    {{- $_ := set $verbs . (concat (dig . list $verbs) (list "list" "watch")) -}}
  {{- end -}}
{{- end -}}
{{- if ne $part "cluster" -}}
{{- $_ := set $verbs "/events" (concat (dig "/events" list $verbs) (list "list")) -}}
{{- end -}}
{{- if and (hasKey $verbs "/pods/log") (not (regexMatch "^(?i:false|no|off|n|f|0)$" (dig "metrics" true $account | toString))) -}}
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
  resources: [{{ $parts._1 | quote }}]
  verbs: [{{ join ", " (dig $key list $verbs | uniq) }}]
{{- end -}}
{{- end -}}
