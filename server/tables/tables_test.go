package tables_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/tables"
	"github.com/vedette-io/vedette/server/tables/tablestest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// cell returns one column of an object with the given fields.
func cell(t *testing.T, apiVersion, kind, column, rest string) string {
	t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, apiVersion, kind, rest)
	o := tablestest.Object(t, manifest)
	v := tables.ForKind(o.Kind)
	cells := v.Cells(&o, now)
	if len(cells) != len(v.Columns) {
		t.Fatalf("got %d cells, want %d", len(cells), len(v.Columns))
	}
	for i, c := range v.Columns {
		if c.Name == column {
			return cells[i]
		}
	}
	t.Fatalf("%s: got no column %s", kind, column)
	return ""
}

func TestPodStatusMatchesKubectl(t *testing.T) {
	const meta = `"metadata":{"name":"p","creationTimestamp":"2026-11-20T11:00:00Z"}`
	const deleting = `"metadata":{"name":"p","creationTimestamp":"2026-11-20T11:00:00Z","deletionTimestamp":"2026-11-20T11:59:00Z"}`
	const two = `"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}`
	const inits = `"spec":{"initContainers":[{"name":"i1"},{"name":"i2"}],"containers":[{"name":"a"}]}`
	const sidecar = `"spec":{"initContainers":[{"name":"proxy","restartPolicy":"Always"},{"name":"setup"}],"containers":[{"name":"a"}]}`
	const running = `"ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-11-20T11:00:00Z"}}`
	tests := []struct{ name, meta, spec, status, ready, phase, restarts string }{
		{"all containers run", meta, two, `"phase":"Running","containerStatuses":[{` + running + `},{` + running + `}]`, "2/2", "Running", "0"},
		{"nothing is scheduled yet", meta, two, `"phase":"Pending"`, "0/2", "Pending", "0"},
		{"scheduling is gated", meta, two, `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]`, "0/2", "SchedulingGated", "0"},
		{"images are being pulled", meta, two, `"phase":"Pending","containerStatuses":[{"ready":false,"restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}},{"ready":false,"restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}}]`, "0/2", "ContainerCreating", "0"},
		{"one container is in a crash loop", meta, two, `"phase":"Running","containerStatuses":[{` + running + `},{"ready":false,"restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-11-20T11:55:00Z"}}}]`, "1/2", "CrashLoopBackOff", "7 (5m ago)"},
		{"the state of the first failing container is shown", meta, two, `"phase":"Pending","containerStatuses":[{"ready":false,"restartCount":0,"state":{"waiting":{"reason":"ImagePullBackOff"}}},{"ready":false,"restartCount":0,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]`, "0/2", "ImagePullBackOff", "0"},
		{"all are done", meta, two, `"phase":"Succeeded","containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "0/2", "Completed", "0"},
		{"one is done, one runs, and the Pod is ready", meta, two, `"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{` + running + `}]`, "1/2", "Running", "0"},
		{"one is done, one runs, and the Pod is not ready", meta, two, `"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{` + running + `}]`, "1/2", "NotReady", "0"},
		{"one is done, one failed", meta, two, `"phase":"Failed","containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`, "0/2", "OOMKilled", "0"},
		{"killed by a signal without a reason", meta, two, `"phase":"Failed","containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":137,"signal":9}}}]`, "0/2", "Signal:9", "0"},
		{"ended without a reason", meta, two, `"phase":"Failed","containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":3}}}]`, "0/2", "ExitCode:3", "0"},
		{"evicted", meta, two, `"phase":"Failed","reason":"Evicted"`, "0/2", "Evicted", "0"},
		{"being deleted", deleting, two, `"phase":"Running","containerStatuses":[{` + running + `},{` + running + `}]`, "2/2", "Terminating", "0"},
		{"being deleted after its end", deleting, two, `"phase":"Succeeded","containerStatuses":[{"ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`, "0/2", "Completed", "0"},
		{"being deleted from a lost node", deleting, two, `"phase":"Running","reason":"NodeLost"`, "0/2", "Unknown", "0"},
		{"the second init container runs", meta, inits, `"phase":"Pending","initContainerStatuses":[{"name":"i1","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},{"name":"i2","ready":false,"restartCount":0,"state":{"running":{"startedAt":"2026-11-20T11:00:00Z"}}}],"containerStatuses":[{"ready":false,"restartCount":0,"state":{"waiting":{"reason":"PodInitializing"}}}]`, "0/1", "Init:1/2", "0"},
		{"an init container crashes", meta, inits, `"phase":"Pending","initContainerStatuses":[{"name":"i1","ready":false,"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-11-20T11:58:30Z"}}}]`, "0/1", "Init:CrashLoopBackOff", "4 (90s ago)"},
		{"an init container failed", meta, inits, `"phase":"Pending","initContainerStatuses":[{"name":"i1","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]`, "0/1", "Init:Error", "0"},
		{"an init container failed without a reason", meta, inits, `"phase":"Pending","initContainerStatuses":[{"name":"i1","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":2}}}]`, "0/1", "Init:ExitCode:2", "0"},
		{"restarts of init containers do not count later", meta, inits, `"phase":"Running","initContainerStatuses":[{"name":"i1","ready":true,"restartCount":3,"state":{"terminated":{"exitCode":0}}},{"name":"i2","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0}}}],"containerStatuses":[{` + running + `}]`, "1/1", "Running", "0"},
		{"a sidecar counts as a container", meta, sidecar, `"phase":"Running","initContainerStatuses":[{"name":"proxy","ready":true,"started":true,"restartCount":2,"state":{"running":{"startedAt":"2026-11-20T11:00:00Z"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-11-20T09:00:00Z"}}},{"name":"setup","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0}}}],"containerStatuses":[{` + running + `}]`, "2/2", "Running", "2 (3h ago)"},
		{"initialized, though an init container runs again", meta, inits, `"phase":"Running","conditions":[{"type":"Initialized","status":"True"}],"initContainerStatuses":[{"name":"i1","ready":false,"restartCount":0,"state":{"running":{"startedAt":"2026-11-20T11:00:00Z"}}}],"containerStatuses":[{` + running + `}]`, "1/1", "Init:0/2", "0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rest := tt.meta + "," + tt.spec + `,"status":{` + tt.status + `}`
			for column, want := range map[string]string{"READY": tt.ready, "STATUS": tt.phase, "RESTARTS": tt.restarts, "AGE": "60m"} {
				if got := cell(t, "v1", "Pod", column, rest); got != want {
					t.Errorf("%s: got %q, want %q", column, got, want)
				}
			}
		})
	}
}

func TestCellsMatchKubectl(t *testing.T) {
	tests := []struct{ name, apiVersion, kind, rest, want string }{
		{"a Pod's wide columns", "v1", "Pod",
			`"metadata":{"name":"p","creationTimestamp":"2026-11-20T11:59:00Z"},"spec":{"nodeName":"n1","readinessGates":[{"conditionType":"lb"},{"conditionType":"dns"}],"containers":[{"name":"a"}]},"status":{"phase":"Running","podIP":"10.0.0.7","nominatedNodeName":"n2","conditions":[{"type":"lb","status":"True"},{"type":"dns","status":"False"}]}`,
			"0/1|Running|0|60s|10.0.0.7|n1|n2|1/2"},
		{"a Deployment", "apps/v1", "Deployment",
			`"metadata":{"name":"d","creationTimestamp":"2026-11-15T10:00:00Z"},"spec":{"replicas":3,"selector":{"matchLabels":{"b":"2","a":"1"},"matchExpressions":[{"key":"tier","operator":"In","values":["web","api"]},{"key":"old","operator":"DoesNotExist"},{"key":"new","operator":"Exists"},{"key":"zone","operator":"NotIn","values":["x"]}]},"template":{"spec":{"containers":[{"name":"a","image":"r/a:1"},{"name":"b","image":"r/b:2"}]}}},"status":{"replicas":3,"readyReplicas":2,"updatedReplicas":3,"availableReplicas":2}`,
			"2/3|3|2|5d2h|a,b|r/a:1,r/b:2|a=1,b=2,new,!old,tier in (api,web),zone notin (x)"},
		{"a Deployment without a status", "apps/v1", "Deployment", `"metadata":{"name":"d"},"spec":{"replicas":1}`, "0/1|0|0|<unknown>|||<none>"},
		{"a ReplicaSet", "apps/v1", "ReplicaSet", `"metadata":{"name":"d","creationTimestamp":"2026-11-20T11:53:29Z"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"1"}}},"status":{"replicas":2,"readyReplicas":1}`, "2|2|1|6m31s|||a=1"},
		{"a StatefulSet", "apps/v1", "StatefulSet", `"metadata":{"name":"d","creationTimestamp":"2026-11-20T04:30:00Z"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"db","image":"pg"}]}}},"status":{"replicas":2,"readyReplicas":2}`, "2/2|7h30m|db|pg"},
		{"a DaemonSet", "apps/v1", "DaemonSet", `"metadata":{"name":"d","creationTimestamp":"2026-11-19T12:00:00Z"},"spec":{"selector":{"matchLabels":{"a":"1"}},"template":{"spec":{"nodeSelector":{"os":"linux"},"containers":[{"name":"db","image":"pg"}]}}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"numberReady":2,"updatedNumberScheduled":1,"numberAvailable":2}`, "3|3|2|1|2|os=linux|24h|db|pg|a=1"},
		{"a complete Job", "batch/v1", "Job", `"metadata":{"name":"j","creationTimestamp":"2026-11-20T11:00:00Z"},"spec":{"completions":1},"status":{"succeeded":1,"startTime":"2026-11-20T11:00:00Z","completionTime":"2026-11-20T11:00:42Z","conditions":[{"type":"Complete","status":"True"}]}`, "Complete|1/1|42s|60m|||<none>"},
		{"a failed Job", "batch/v1", "Job", `"metadata":{"name":"j"},"spec":{"completions":2},"status":{"conditions":[{"type":"Failed","status":"True"}]}`, "Failed|0/2||<unknown>|||<none>"},
		{"a running Job with a work queue", "batch/v1", "Job", `"metadata":{"name":"j"},"spec":{"parallelism":4},"status":{"startTime":"2026-11-20T11:58:00Z"}`, "Running|0/1 of 4|2m|<unknown>|||<none>"},
		{"a CronJob", "batch/v1", "CronJob", `"metadata":{"name":"c","creationTimestamp":"2025-11-20T12:00:00Z"},"spec":{"schedule":"*/5 * * * *","suspend":false},"status":{"active":[{"name":"x"}],"lastScheduleTime":"2026-11-20T11:55:00Z"}`, "*/5 * * * *|<none>|False|1|5m|365d|||<none>"},
		{"a ClusterIP Service", "v1", "Service", `"metadata":{"name":"s"},"spec":{"type":"ClusterIP","clusterIP":"10.1.0.1","ports":[{"port":80,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],"selector":{"app":"web"}}`, "ClusterIP|10.1.0.1|<none>|80/TCP,53/UDP|<unknown>|app=web"},
		{"a LoadBalancer without an address", "v1", "Service", `"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","clusterIP":"10.1.0.1","ports":[{"port":443,"nodePort":30443,"protocol":"TCP"}]}`, "LoadBalancer|10.1.0.1|<pending>|443:30443/TCP|<unknown>|<none>"},
		{"a LoadBalancer with two addresses", "v1", "Service", `"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","clusterIP":"10.1.0.1"},"status":{"loadBalancer":{"ingress":[{"hostname":"lb.example.com"},{"ip":"1.2.3.4"}]}}`, "LoadBalancer|10.1.0.1|1.2.3.4,lb.example.com|<none>|<unknown>|<none>"},
		{"an ExternalName", "v1", "Service", `"metadata":{"name":"s"},"spec":{"type":"ExternalName","externalName":"db.example.com"}`, "ExternalName|<none>|db.example.com|<none>|<unknown>|<none>"},
		{"an Ingress with many hosts", "networking.k8s.io/v1", "Ingress", `"metadata":{"name":"i"},"spec":{"ingressClassName":"nginx","tls":[{}],"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"},{"host":"e"}]}`, "nginx|a,b,c + 2 more...||80, 443|<unknown>"},
		{"an Ingress for every host", "networking.k8s.io/v1", "Ingress", `"metadata":{"name":"i"},"spec":{"rules":[{"http":{}}]},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}`, "<none>|*|1.2.3.4|80|<unknown>"},
		{"a NetworkPolicy for all Pods", "networking.k8s.io/v1", "NetworkPolicy", `"metadata":{"name":"n"},"spec":{"podSelector":{}}`, "<none>|<unknown>"},
		{"a ConfigMap", "v1", "ConfigMap", `"metadata":{"name":"c"},"data":{"a":"1","b":"2"},"binaryData":{"c":"AA=="}`, "3|<unknown>"},
		{"a bound claim", "v1", "PersistentVolumeClaim", `"metadata":{"name":"c"},"spec":{"volumeName":"pv1","storageClassName":"fast","volumeMode":"Filesystem"},"status":{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany","ReadWriteOnce"]}`, "Bound|pv1|1Gi|RWO,RWX|fast|<unset>|<unknown>|Filesystem"},
		{"a pending claim", "v1", "PersistentVolumeClaim", `"metadata":{"name":"c"},"spec":{"storageClassName":"fast"},"status":{"phase":"Pending"}`, "Pending||||fast|<unset>|<unknown>|<unset>"},
		{"a volume", "v1", "PersistentVolume", `"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"persistentVolumeReclaimPolicy":"Retain","claimRef":{"namespace":"n","name":"c"}},"status":{"phase":"Bound"}`, "1Gi|RWO|Retain|Bound|n/c||<unset>||<unknown>|<unset>"},
		{"a storage class with defaults", "storage.k8s.io/v1", "StorageClass", `"metadata":{"name":"s"},"provisioner":"p"`, "p|Delete|Immediate|false|<unknown>"},
		{"a cordoned node", "v1", "Node", `"metadata":{"name":"n","labels":{"node-role.kubernetes.io/control-plane":"","kubernetes.io/role":"etcd"}},"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"Unknown"}],"nodeInfo":{"kubeletVersion":"v1.36.3","kernelVersion":"6.1","architecture":"amd64"},"addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"10.0.0.1"}]}`, "NotReady,SchedulingDisabled|control-plane,etcd|<unknown>|v1.36.3|10.0.0.1|<none>|<unknown>|6.1 (amd64)|<unknown>"},
		{"a namespace", "v1", "Namespace", `"metadata":{"name":"n"},"status":{"phase":"Active"}`, "Active|<unknown>"},
		{"a definition", "apiextensions.k8s.io/v1", "CustomResourceDefinition", `"metadata":{"name":"x","creationTimestamp":"2026-11-20T11:00:00Z"}`, "2026-11-20T11:00:00Z"},
		{"an autoscaler", "autoscaling/v2", "HorizontalPodAutoscaler", `"metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web"},"maxReplicas":5},"status":{"currentReplicas":2}`, "Deployment/web|<unset>|5|2|<unknown>"},
		{"a budget", "policy/v1", "PodDisruptionBudget", `"metadata":{"name":"h"},"spec":{"maxUnavailable":"25%"},"status":{"disruptionsAllowed":1}`, "N/A|25%|1|<unknown>"},
		{"a Secret", "v1", "Secret", `"metadata":{"name":"s","creationTimestamp":"2026-11-20T11:59:59Z"}`, "1s"},
		{"an unknown kind", "stable.example.com/v1", "CronTab", `"metadata":{"name":"s"},"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"False"}]}`, "<unknown>|False"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tablestest.Object(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, tt.apiVersion, tt.kind, tt.rest))
			if got := strings.Join(tables.ForKind(o.Kind).Cells(&o, now), "|"); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestCellsOfBrokenSummary(t *testing.T) {
	for _, r := range append(tables.KnownResources(), vedette.Resource{Kind: vedette.Kind{Group: "x", Name: "Y"}}) {
		v := tables.ForKind(r.Kind)
		for _, raw := range []string{"", "null", "[]", `{"ready":"x"}`, `{"conditionTypes":["Ready"]}`, `{"initStatuses":["a"],"exits":[null]}`} {
			o := vedette.Object{Summary: json.RawMessage(raw)}
			if got := len(v.Cells(&o, now)); got != len(v.Columns) {
				t.Errorf("%s with summary %q: got %d cells, want %d", r.Kind, raw, got, len(v.Columns))
			}
		}
	}
}

func TestAgeMatchesKubectl(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-5 * time.Second: "<invalid>", -time.Millisecond: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m",
		9*time.Minute + 59*time.Second: "9m59s", 10*time.Minute + 3*time.Second: "10m", 179 * time.Minute: "179m", 3 * time.Hour: "3h",
		7*time.Hour + 59*time.Minute: "7h59m", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 122 * time.Hour: "5d2h",
		8*24*time.Hour + time.Hour: "8d", 729 * 24 * time.Hour: "729d", 731 * 24 * time.Hour: "2y1d", 3000 * 24 * time.Hour: "8y",
	} {
		if got := tables.Age(d); got != want {
			t.Errorf("Age(%v): got %q, want %q", d, got, want)
		}
	}
}

func TestLiftsNameEachFieldOnce(t *testing.T) {
	kinds := map[vedette.Kind]bool{}
	for _, l := range tables.Projections() {
		if kinds[l.Kind] {
			t.Errorf("got two projections of %s", l.Kind)
		}
		kinds[l.Kind] = true
		names := map[string]bool{}
		for _, f := range l.Fields {
			if names[f.Name] || f.Path == "" {
				t.Errorf("%s: field %q is duplicate or has no path", l.Kind, f.Name)
			}
			names[f.Name] = true
		}
	}
}

func FuzzCells(f *testing.F) {
	f.Add(`{"phase":"Running","ready":[true],"running":["x"]}`)
	f.Add(`{"initStatuses":["a","b"],"initExits":[null],"restarted":["z"]}`)
	f.Fuzz(func(t *testing.T, summary string) {
		for _, r := range tables.KnownResources() {
			o := vedette.Object{Summary: []byte(summary)}
			v := tables.ForKind(r.Kind)
			if got := len(v.Cells(&o, now)); got != len(v.Columns) {
				t.Errorf("%s: got %d cells, want %d", r.Kind, got, len(v.Columns))
			}
		}
	})
}

func BenchmarkPodCells(b *testing.B) {
	o := vedette.Object{Summary: []byte(`{"conditionTypes":["PodReadyToStartContainers","Initialized","Ready","ContainersReady","PodScheduled"],"conditionStatuses":["True","True","True","True","True"],"phase":"Running","node":"n1","ip":"10.0.0.1","containers":["a"],"images":["r/a:1"],"ready":[true],"restarts":[0],"running":["2026-11-20T11:00:00Z"]}`)}
	v := tables.ForKind(vedette.Kind{Name: "Pod"})
	for b.Loop() {
		v.Cells(&o, now)
	}
}
