package beside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/apistub"
	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/proxy"
)

// newBadWorld starts everything. The agents' side has the account west, the stand-in has east and extra. timeouts are those of settings.
func newBadWorld(t *testing.T, timeouts string) *badWorld {
	t.Helper()
	w := &badWorld{t: t, standIn: standin.Start(t, []standin.Account{{Name: east}, {Name: extra}}, slices.Concat(
		upstreamObjects(t, east), upstreamObjects(t, extra)))}
	w.link = proxy.New(t, strings.TrimPrefix(w.standIn.URL(), "http://"))
	w.in = newInstallation(t, settings{upstream: "http://" + w.link.Address(), timeouts: timeouts, grace: time.Hour})
	recorded, err := apistub.New(slices.Concat(namespaces(), sampleObjects(sharedApplication), sampleObjects(agentsApplication)))
	if err != nil {
		t.Fatal(err)
	}
	api := apistub.Start(recorded)
	t.Cleanup(api.Close)
	a := w.in.newAgent(west, w.in.write("kubeconfig", string(api.Kubeconfig())))
	a.Start()
	await(t, 2*time.Minute, "west is synchronized", func(ctx context.Context) error { return w.in.checkSynchronized(ctx, west) })
	await(t, time.Minute, "agents answer for west", func(ctx context.Context) error { return w.in.checkOwner(ctx, west, agents) })
	return w
}

// upstreamObjects returns what the stand-in has in an account.
func upstreamObjects(t *testing.T, account string) (objects []standin.Object) {
	t.Helper()
	for _, raw := range slices.Concat(sampleObjects(sharedApplication), sampleObjects(upstreamApplication)) {
		o, err := standin.ParseObject(account, raw)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// namespaces returns the namespaces that each cluster has. The uid of kube-system identifies the cluster.
func namespaces() []json.RawMessage {
	var list []json.RawMessage
	for _, name := range []string{"kube-system", namespace} {
		list = append(list, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"uid":"00000000-0000-4000-8000-%012x",
			"resourceVersion":"1","creationTimestamp":"2026-01-02T03:04:05Z"}}`, name, len(name)))
	}
	return list
}

// sampleObjects returns a Deployment of an application with its ReplicaSet, Pod, Service and NetworkPolicy, as an API server shows them.
func sampleObjects(application string) []json.RawMessage {
	uid := func(kind string) string {
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", len(application)<<8|int(application[0]), len(kind))
	}
	metadata := func(kind, name, owner string) string {
		cluster := "deployment " + application
		if kind == "Service" || kind == "NetworkPolicy" {
			cluster = strings.ToLower(kind[:1]) + kind[1:] + " " + name
		}
		references := ""
		if owner != "" {
			references = fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":"x","uid":%q,"controller":true}]`, owner, uid(owner))
		}
		return fmt.Sprintf(`"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"run":%q},
			"annotations":{"moniker.spinnaker.io/application":%[4]q,"moniker.spinnaker.io/cluster":%[5]q}%[6]s}`, name, namespace, uid(kind), application, cluster, references)
	}
	template := fmt.Sprintf(`"replicas":1,"selector":{"matchLabels":{"run":%q}},"template":{"metadata":{"labels":{"run":%[1]q}},
		"spec":{"containers":[{"name":"main","image":"registry.example.com/%[1]s:1"}]}}`, application)
	objects := []string{
		`{"apiVersion":"apps/v1","kind":"Deployment",` + metadata("Deployment", application, "") + `,"spec":{` + template + `}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet",` + metadata("ReplicaSet", application+"-1", "Deployment") + `,"spec":{` + template + `}}`,
		`{"apiVersion":"v1","kind":"Pod",` + metadata("Pod", application+"-1-a", "ReplicaSet") + `,"spec":{"containers":[{"name":"main","image":"i:1"}]},"status":{"phase":"Running"}}`,
		`{"apiVersion":"v1","kind":"Service",` + metadata("Service", application, "") + `,"spec":{"selector":{"run":"` + application + `"},"ports":[{"port":80}]}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",` + metadata("NetworkPolicy", application, "") + `,"spec":{"podSelector":{}}}`,
	}
	var raw []json.RawMessage
	for _, text := range objects {
		raw = append(raw, json.RawMessage(text))
	}
	return raw
}

// canonical returns JSON without the order of lists, which has no meaning in Clouddriver's answers.
func canonical(body []byte) string {
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return string(body)
	}
	return string(canonicalJSON(tree))
}

func canonicalJSON(tree any) []byte {
	switch node := tree.(type) {
	case []any:
		elements := make([][]byte, 0, len(node))
		for _, element := range node {
			elements = append(elements, canonicalJSON(element))
		}
		slices.SortFunc(elements, bytes.Compare)
		return slices.Concat([]byte("["), bytes.Join(elements, []byte(",")), []byte("]"))
	case map[string]any:
		members := map[string]json.RawMessage{}
		for name, value := range node {
			members[name] = canonicalJSON(value)
		}
		tree = members
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		panic(err) // cannot happen: the tree comes from JSON
	}
	return raw
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-40)
	return fmt.Sprintf("from byte %d on got …%.160s, want …%.160s", at, got[min(from, len(got)):], want[min(from, len(want)):])
}
