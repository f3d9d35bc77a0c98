package clouddriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readtest"
)

// fakeCluster is a cluster that answers from a script, by keys like "get configMap
// shop/settings". Everything else is not found.
type fakeCluster struct {
	answers map[string]vedette.Outcome

	mu       sync.Mutex
	received []string
}

func (c *fakeCluster) Execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	name := string(op.Args.Verb())
	switch a := op.Args.(type) {
	case vedette.GetArgs:
		name += " " + a.Kind + " " + a.Namespace + "/" + a.Name
	case vedette.ListArgs:
		name += " " + a.Kind + " " + a.Namespace + " " + a.LabelSelector
	case vedette.EventsArgs:
		name += " " + a.Kind + " " + a.Namespace + "/" + a.Name
	case vedette.MetricsArgs:
		name += " " + a.Namespace + "/" + a.Name
	case vedette.LogsArgs:
		name += " " + a.Namespace + "/" + a.Name + "/" + a.Container
	case vedette.DeleteArgs:
		name += fmt.Sprintf(" %s %s/%s %s %t %t", a.Kind, a.Namespace, a.Name, a.Propagation, a.MissingOK, a.NoWait)
	}
	c.mu.Lock()
	const unit = 5 * time.Second // to which the rest of the time is rounded up: some of it may have passed
	within := (time.Until(op.Deadline) + unit - 1).Truncate(unit)
	c.received = append(c.received, fmt.Sprintf("%s in %s for %s within %s", strings.TrimSpace(name), op.Account, op.Requester.User, within))
	c.mu.Unlock()
	out, ok := c.answers[strings.TrimSpace(name)]
	switch {
	case !ok:
		return vedette.Outcome{State: vedette.Failed, Status: 404, Reason: "NotFound", Message: name + " not found"}
	case out.Reason == "hangs":
		<-ctx.Done()
		return vedette.Outcome{State: vedette.Lost, Status: 504, Reason: "Timeout", Message: "the agent did not answer in time"}
	}
	out.Objects = slices.Clone(out.Objects)
	return out
}

func (c *fakeCluster) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.received))
}

func objectsOutcome(manifests ...string) vedette.Outcome {
	out := vedette.Outcome{State: vedette.Done, Status: 200}
	for _, m := range manifests {
		out.Objects = append(out.Objects, json.RawMessage(m))
	}
	return out
}

func logOutcome(text string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Done, Stream: io.NopCloser(strings.NewReader(text))}
}

func failedOutcome(status int, message string) vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: status, Message: message}
}

var hangingOutcome = vedette.Outcome{Reason: "hangs"}

const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-v001","namespace":"shop","uid":"6e0f","creationTimestamp":"2026-11-20T12:00:00Z",
	"annotations":{"moniker.spinnaker.io/application":"web","moniker.spinnaker.io/cluster":"configMap settings"}},"data":{"replicas":"3"}}`

const web0 = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","namespace":"shop","labels":{"app":"web"},"creationTimestamp":"2026-11-20T12:00:00Z"},
	"spec":{"initContainers":[{"name":"migrate","image":"r.io/migrate:1"}],"containers":[{"name":"web","image":"r.io/web:1"},{"name":"sidecar","image":"r.io/s:1"}]},"status":{"phase":"Running"}}`

func event(name, first, last string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":%q,"namespace":"shop"},"involvedObject":{"kind":"Pod","name":"web-0"},"count":2,"firstTimestamp":%s,"lastTimestamp":%s}`, name, first, last)
}

const usage = `{"apiVersion":"metrics.k8s.io/v1beta1","kind":"PodMetrics","metadata":{"name":"web-0"},"containers":[
	{"name":"web","usage":{"cpu":"1234567n","memory":"7900Ki"}},{"name":"sidecar","usage":{"cpu":"250m","memory":"128Mi"}}]}`

func replicaSet(name, created, cluster string, replicas int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":%q,"namespace":"shop","creationTimestamp":%q,
		"annotations":{"moniker.spinnaker.io/application":"web","moniker.spinnaker.io/cluster":%q}},"spec":{"replicas":%d}}`, name, created, cluster, replicas)
}

func job(name, status string) string {
	return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q,"namespace":"shop","creationTimestamp":"2026-11-20T12:00:00Z"},
		"spec":{"completions":1,"selector":{"matchLabels":{"controller-uid":"1"}}}%s}`, name, status)
}

func jobPod(name, status string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop","labels":{"controller-uid":"1"}},"status":%s}`, name, status)
}

// prodWorld returns an account that caches pods and ReplicaSets, and a cluster that has other
// kinds too.
func prodWorld(t *testing.T) (*readtest.Fixture, *fakeCluster) {
	w := readtest.New(t)
	w.Account("prod", "pods", "replicasets", "deployments")
	w.Put("prod", web0,
		replicaSet("web-v001", "2026-11-20T12:00:00Z", "replicaSet web", 5), replicaSet("web-v002", "2026-11-20T13:00:00Z", "replicaSet web", 1),
		replicaSet("web-v003", "2026-11-20T14:00:00Z", "replicaSet web", 3), replicaSet("web-canary-v000", "2026-11-20T15:00:00Z", "replicaSet web-canary", 9),
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-v004","namespace":"shop"},"spec":{"replicas":7}}`,
		jobPod("migrate-b", `{"phase":"Failed","startTime":"2026-11-20T12:00:09Z","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":2,"reason":"Error","message":"no table"}}}]}`),
		jobPod("migrate-a", `{"phase":"Failed","startTime":"2026-11-20T12:00:03Z","initContainerStatuses":[{"name":"wait","state":{"terminated":{"exitCode":0}}}],"containerStatuses":[{"name":"main","state":{"waiting":{"reason":"ImagePullBackOff","message":"no such image"}}}]}`),
		jobPod("migrate-0", `{"phase":"Pending","conditions":[{"type":"PodScheduled","lastProbeTime":null,"observedGeneration":1}]}`))
	return w, &fakeCluster{answers: map[string]vedette.Outcome{
		"get configMap shop/settings-v001":                  objectsOutcome(settings),
		"get secret shop/hidden":                            failedOutcome(403, `secrets "hidden" is forbidden`),
		"get service shop/slow":                             {State: vedette.Lost, Message: "the agent went away"},
		"get ingress shop/mute":                             {State: vedette.Failed, Status: 500},
		"get widget shop/odd":                               objectsOutcome(),
		"get deployment shop/web":                           objectsOutcome(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`),
		"events ConfigMap shop/settings-v001":               objectsOutcome(),
		"events Pod shop/web-0":                             objectsOutcome(event("third", "null", `"2026-11-20T12:03:00Z"`), event("first", `"2026-11-20T12:01:00Z"`, "null"), event("second", `"2026-11-20T12:00:00Z"`, `"2026-11-20T12:02:00.5Z"`)),
		"metrics shop/web-0":                                objectsOutcome(usage),
		"list configMap shop":                               objectsOutcome(settings, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop","labels":{"app":"web"}}}`),
		"get unknown shop/thing":                            {State: vedette.Failed, Status: 404, Reason: vedette.ReasonKindNotServed, Message: `no kind "unknown"`},
		"list service shop":                                 failedOutcome(403, "services is forbidden"),
		"get job.batch shop/running":                        objectsOutcome(job("running", `,"status":{"active":1}`)),
		"get job.batch shop/new":                            objectsOutcome(job("new", "")),
		"get job.batch shop/done":                           objectsOutcome(job("done", `,"status":{"succeeded":1}`)),
		"get job.batch shop/failed":                         objectsOutcome(job("failed", `,"status":{"failed":2,"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"too often"}]}`)),
		"delete Job.batch shop/done background true true":   {State: vedette.Done},
		"delete Job.batch shop/failed background true true": failedOutcome(403, "jobs is forbidden"),
		"logs shop/migrate-b/main":                          logOutcome("starting\n  SPINNAKER_PROPERTY_Version=1.4.2 \nSPINNAKER_CONFIG_JSON={\"count\":3,\"nested\":{\"a\":[1.50]}}\n"),
		"logs shop/migrate-b/broken":                        logOutcome("SPINNAKER_PROPERTY_A=b\nSPINNAKER_CONFIG_JSON={\"a\":\n"),
		"logs shop/web-0/web":                               logOutcome("listening on 8080\n"),
		"logs shop/web-0/migrate":                           logOutcome("SPINNAKER_PROPERTY_STEP=2\n"),
		"logs shop/web-0/sidecar":                           failedOutcome(400, "container sidecar is waiting to start"),
	}}
}
