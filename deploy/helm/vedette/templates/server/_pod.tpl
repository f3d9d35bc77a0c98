{{/* The template of the server's pods. */}}
{{- define "vedette.serverPod" -}}
{{- $s := .Values.server -}}
{{- $name := include "vedette.server" . -}}
{{- $shared := include "vedette.shared" . -}}
metadata:
  labels:
    {{- include "vedette.chartLabels" . | nindent 4 }}
    {{- with include "vedette.otherLabels" (list .Values.commonLabels $s.podLabels) }}
    {{- . | nindent 4 }}
    {{- end }}
    app.kubernetes.io/component: server
    {{- with include "vedette.frontLabel" . }}
    {{- . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "vedette.serverConfig" . | sha256sum }}
    {{- with $s.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "vedette.pullSecrets" . | nindent 2 }}
  serviceAccountName: {{ $name | quote }}
  {{- if include "vedette.discoversPods" . }}
  # The server lists the pods of servers.
  automountServiceAccountToken: true
  {{- else }}
  # The server asks no API server.
  automountServiceAccountToken: false
  {{- end }}
  enableServiceLinks: false
  {{- include "vedette.podSecurity" . | nindent 2 }}
  {{- include "vedette.placement" $s | nindent 2 }}
  {{- if or $s.topologySpreadConstraints $shared }}
  topologySpreadConstraints:
  {{- if $s.topologySpreadConstraints }}
  {{- toYaml $s.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "vedette.selector" (dict "root" $ "component" "server") | nindent 8 }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- with $s.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
  - name: vedette-server
    image: {{ include "vedette.image" (dict "root" . "image" $s.image) | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [--config, /opt/vedette/config/vedette-server.yml]
    {{- include "vedette.containerSecurity" . | nindent 4 }}
    env:
    {{- if $s.configSecret }}
    - name: SPRING_PROFILES_ACTIVE
      value: secret
    {{- end }}
    {{- if include "vedette.hasPeers" . }}
    # Other servers know this one by the name of its pod, and call it at the pod's address.
    {{- if not (dig "server" "id" "" ($s.config | default dict)) }}
    - name: VEDETTE_SERVER_SERVER_ID
      valueFrom:
        fieldRef: {fieldPath: metadata.name}
    {{- end }}
    {{- if not (dig "server" "peers" "advertise" "" ($s.config | default dict)) }}
    - name: VEDETTE_SERVER_SERVER_PEERS_ADVERTISE
      valueFrom:
        fieldRef: {fieldPath: status.podIP}
    {{- end }}
    {{- end }}
    {{- with $s.database.passwordSecret }}
    - name: VEDETTE_SERVER_SQL_PASSWORD
      valueFrom:
        secretKeyRef:
          name: {{ . | quote }}
          key: {{ $s.database.passwordKey | quote }}
    {{- end }}
    {{- with $s.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $s.envFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
    - name: http
      containerPort: {{ include "vedette.httpPort" . }}
    - name: grpc
      containerPort: {{ include "vedette.port" (dict "config" $s.config "path" "grpc.server.port" "default" 9091) }}
    - name: management
      containerPort: {{ include "vedette.port" (dict "config" $s.config "path" "management.server.port" "default" 7003) }}
    {{- if include "vedette.hasPeers" . }}
    - name: peers
      containerPort: {{ include "vedette.port" (dict "config" $s.config "path" "server.peers.port" "default" 7004) }}
    {{- end }}
    {{- if and $shared (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}
    lifecycle:
      # Until all nodes know that the pod ends, Services still lead to it. Then the server stops: it ends what it does within 8 seconds, and its agents
      # leave within 5.
      preStop:
        sleep: {seconds: 5}
    {{- end }}
    startupProbe:
      httpGet: {path: /health/liveness, port: management}
      # Nobody gets an answer until this has succeeded.
      periodSeconds: 1
      # A migration of a large database takes minutes.
      failureThreshold: 1800
    livenessProbe:
      httpGet: {path: /health/liveness, port: management}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /health/readiness, port: management}
      periodSeconds: 2
      timeoutSeconds: 5
    resources:
      {{- toYaml $s.resources | nindent 6 }}
    volumeMounts:
    - name: config
      mountPath: /opt/vedette/config
      readOnly: true
    - name: data
      mountPath: /var/lib/vedette
    {{- if include "vedette.operationKey" . }}
    - name: operation-key
      mountPath: /var/lib/vedette/operations.key
      subPath: operations.key
      readOnly: true
    {{- end }}
    - name: tmp
      mountPath: /tmp
    {{- if ne $s.tls.mode "off" }}
    - name: tls
      mountPath: /etc/vedette/tls
      readOnly: true
    {{- end }}
    {{- with $s.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
  - name: config
    projected:
      sources:
      {{- include "vedette.configSource" (dict "root" . "component" "server" "name" $name) | nindent 6 }}
      {{- with $s.configSecret }}
      - secret:
          name: {{ . | quote }}
          items:
          - key: vedette-server-secret.yml
            path: vedette-server-secret.yml
      {{- end }}
  - name: tmp
    emptyDir: {}
  {{- if ne $s.tls.mode "off" }}
  - name: tls
    secret:
      secretName: {{ include "vedette.serverTLS" . | quote }}
  {{- end }}
  {{- with include "vedette.operationKey" . }}
  - name: operation-key
    secret:
      secretName: {{ . | quote }}
  {{- end }}
  {{- if or $shared (not $s.persistence.enabled) }}
  - name: data
    emptyDir: {}
  {{- else if $s.persistence.existingClaim }}
  - name: data
    persistentVolumeClaim:
      claimName: {{ $s.persistence.existingClaim | quote }}
  {{- end }}
  {{- with $s.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
