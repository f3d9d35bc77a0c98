package infrastructure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store/read"
)

// object returns an object of account prod from "kind namespace/name", for example
// "replicaSet shop/web-v000". Its uid is that text, and its cluster the name. change may be nil.
func object(text string, change func(*Object)) Object {
	kindText, path, _ := strings.Cut(text, " ")
	namespace, name, _ := strings.Cut(path, "/")
	kind, ok := FindKind(kindText)
	if !ok {
		panic("unknown kind " + kindText)
	}
	o := Object{Key: vedette.Key{Kind: kind, Namespace: namespace, Name: name}, Account: "prod", UID: text,
		Moniker: vedette.Moniker{App: "web", Cluster: name}}
	if change != nil {
		change(&o)
	}
	return o
}

// ownedBy makes an object the owner of another.
func ownedBy(text string) func(*Object) {
	kindText, path, _ := strings.Cut(text, " ")
	_, name, _ := strings.Cut(path, "/")
	kind, _ := FindKind(kindText)
	return func(o *Object) { o.Owner = vedette.Owner{Kind: kind, Name: name, UID: text} }
}

func labeled(labels string) func(*Object) {
	return func(o *Object) { o.TemplateLabels = parseLabels(labels) }
}

func selecting(labels string) func(*Object) {
	return func(o *Object) { o.Selector = parseLabels(labels) }
}

func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for entry := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(entry, "=")
		labels[name] = value
	}
	return labels
}

// describe prints an application, a line for each object.
func describe(a *Application) string { return describeWith(a, &Rows{}) }

// describeWith is describe with the workloads of other applications.
func describeWith(a *Application, rows *Rows) string {
	var b strings.Builder
	for _, g := range a.ServerGroups {
		fmt.Fprintf(&b, "%s %s/%s: instances %s, balancers %v, manager %q, disabled %v\n", g.Account, g.Namespace, FullName(g.Object),
			instanceNames(g), g.LoadBalancers, g.Manager, g.Disabled)
	}
	for _, m := range a.Managers {
		fmt.Fprintf(&b, "%s %s/%s: manages %s\n", m.Account, m.Namespace, FullName(m.Object), objectNames(m.ServerGroups))
	}
	for _, l := range a.Balance(rows) {
		fmt.Fprintf(&b, "%s %s/%s: balances %s\n", l.Account, l.Namespace, FullName(l.Object), objectNames(serverGroupObjects(l.ServerGroups)))
	}
	for _, o := range a.SecurityGroups {
		fmt.Fprintf(&b, "%s %s/%s\n", o.Account, o.Namespace, FullName(o))
	}
	return b.String()
}

func instanceNames(g *ServerGroup) []string {
	names := []string{}
	for _, i := range g.Instances {
		names = append(names, i.Name)
	}
	return names
}

func objectNames(objects []*Object) []string {
	names := []string{}
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}

func TestObjectsAreRelatedWithinTheirAccount(t *testing.T) {
	inDev := func(o *Object) { o.Account = "dev" }
	for _, tt := range []struct {
		name string
		rows Rows
		want []string
	}{
		{"Pods belong to their direct owner, in its account", Rows{
			Own: []Object{object("replicaSet shop/web-2", nil), object("replicaSet shop/web-1", ownedBy("deployment shop/web"))},
			Pods: []Object{object("pod shop/b", ownedBy("replicaSet shop/web-1")), object("pod shop/a", ownedBy("replicaSet shop/web-1")),
				object("pod shop/c", func(o *Object) { ownedBy("replicaSet shop/web-1")(o); inDev(o) }), object("pod shop/d", nil)},
		}, []string{`prod shop/replicaSet web-1: instances [a b], balancers [], manager "web", disabled false`,
			`prod shop/replicaSet web-2: instances [], balancers [], manager "", disabled false`}},
		{"an owner in another namespace is none", Rows{
			Own:         []Object{object("replicaSet shop/web-1", nil), object("deployment shop/web", nil)},
			Pods:        []Object{object("pod evil/a", ownedBy("replicaSet shop/web-1")), object("pod shop/b", ownedBy("replicaSet shop/web-1"))},
			ReplicaSets: []Object{object("replicaSet evil/c", ownedBy("deployment shop/web"))},
		}, []string{`prod shop/replicaSet web-1: instances [b], balancers [], manager "", disabled false`, `prod shop/deployment web: manages []`}},
		{"a CronJob has no instances, its Job has", Rows{
			Own:  []Object{object("cronJob shop/nightly", nil), object("job shop/nightly-1", ownedBy("cronJob shop/nightly"))},
			Pods: []Object{object("pod shop/p", ownedBy("job shop/nightly-1"))},
		}, []string{`prod shop/cronJob nightly: instances [], balancers [], manager "", disabled false`,
			`prod shop/job nightly-1: instances [p], balancers [], manager "", disabled false`}},
		{"a Deployment manages ReplicaSets of any application", Rows{
			Own:         []Object{object("deployment shop/web", nil), object("replicaSet shop/web-1", ownedBy("deployment shop/web"))},
			ReplicaSets: []Object{object("replicaSet shop/web-1", ownedBy("deployment shop/web")), object("replicaSet shop/web-2", ownedBy("deployment shop/web"))},
		}, []string{`prod shop/replicaSet web-1: instances [], balancers [], manager "web", disabled false`,
			`prod shop/deployment web: manages [web-1 web-2]`}},
		{"a Service selects ReplicaSets of its namespace by all of its labels", Rows{
			Own: []Object{object("replicaSet shop/web-1", labeled("app=web tier=front")), object("replicaSet shop/web-2", labeled("app=web")),
				object("replicaSet other/web-3", labeled("app=web tier=front")), object("daemonSet shop/logs", labeled("app=web tier=front")),
				object("service shop/web", selecting("app=web tier=front"))},
			Services: []Object{object("service shop/web", selecting("app=web tier=front")), object("service shop/all", selecting("")),
				object("service shop/app", selecting("app=web"))},
		}, []string{`prod other/replicaSet web-3: instances [], balancers [], manager "", disabled false`,
			`prod shop/daemonSet logs: instances [], balancers [], manager "", disabled false`,
			`prod shop/replicaSet web-1: instances [], balancers [service app service web], manager "", disabled false`,
			`prod shop/replicaSet web-2: instances [], balancers [service app], manager "", disabled false`,
			`prod shop/service web: balances [web-1]`}},
		{"a StatefulSet belongs to the Service that it names, if that exists", Rows{
			Own: []Object{object("statefulSet shop/db", func(o *Object) { o.Attributes.Services = []string{"db"} }),
				object("statefulSet shop/gone", func(o *Object) { o.Attributes.Services = []string{"gone"} })},
			Services: []Object{object("service shop/db", nil), object("service other/gone", nil)},
		}, []string{`prod shop/statefulSet db: instances [], balancers [service db], manager "", disabled false`,
			`prod shop/statefulSet gone: instances [], balancers [], manager "", disabled false`}},
		{"the annotation adds load balancers; without traffic the server group is disabled", Rows{
			Own: []Object{object("replicaSet shop/off", func(o *Object) { o.LoadBalancers = []string{"Service web", "nonsense"} }),
				object("replicaSet shop/on", func(o *Object) { labeled("app=web")(o); o.LoadBalancers = []string{"service web"} }),
				object("replicaSet shop/odd", func(o *Object) { o.LoadBalancers = []string{"nonsense"} })},
			Services: []Object{object("service shop/web", selecting("app=web"))},
		}, []string{`prod shop/replicaSet odd: instances [], balancers [], manager "", disabled false`,
			`prod shop/replicaSet off: instances [], balancers [service web], manager "", disabled true`,
			`prod shop/replicaSet on: instances [], balancers [service web], manager "", disabled false`}},
		{"a load balancer shows workloads of other applications", Rows{
			Own: []Object{object("service shop/web", selecting("app=web")), object("ingress shop/web", func(o *Object) { o.Attributes.Services = []string{"web"} })},
			Workloads: []Object{object("replicaSet shop/other-2", labeled("app=web")), object("replicaSet shop/other-1", labeled("app=web")),
				object("replicaSet shop/unrelated", labeled("app=x"))},
			WorkloadPods: []Object{object("pod shop/p", ownedBy("replicaSet shop/other-1"))},
		}, []string{`prod shop/ingress web: balances []`, `prod shop/service web: balances [other-1 other-2]`}},
		{"hidden objects are no relations either", Rows{
			Own: []Object{object("replicaSet shop/hidden", func(o *Object) { o.Ignored = true }), object("replicaSet shop/web", labeled("app=web"))},
			Pods: []Object{object("pod shop/p", func(o *Object) { ownedBy("replicaSet shop/web")(o); o.Ignored = true }),
				object("pod shop/q", ownedBy("replicaSet shop/web"))},
			Services: []Object{object("service shop/s", func(o *Object) { selecting("app=web")(o); o.Ignored = true })},
		}, []string{`prod shop/replicaSet web: instances [q], balancers [], manager "", disabled false`}},
		{"some accounts show only what Spinnaker deployed", Rows{
			Visibility: Visibility{OnlyManaged: map[vedette.AccountName]bool{"prod": true}},
			Own: []Object{object("replicaSet shop/by-hand", nil), object("replicaSet shop/web", func(o *Object) { o.Managed = true }),
				object("replicaSet shop/dev", inDev), object("networkPolicy shop/deny", func(o *Object) { o.Managed = true })},
		}, []string{`dev shop/replicaSet dev: instances [], balancers [], manager "", disabled false`,
			`prod shop/replicaSet web: instances [], balancers [], manager "", disabled false`, `prod shop/networkPolicy deny`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := strings.Join(tt.want, "\n") + "\n"
			if got := describeWith(Build("web", &tt.rows), &tt.rows); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestOwnersOfOtherApplicationsAreNamed(t *testing.T) {
	rows := Rows{Own: []Object{object("service shop/web", selecting("app=web")), object("replicaSet shop/own", labeled("app=web"))},
		Workloads: []Object{object("replicaSet shop/own", labeled("app=web")), object("replicaSet shop/other", labeled("app=web")),
			object("replicaSet shop/unrelated", labeled("app=x"))}}
	want := []read.OwnerRef{{Account: "prod", UID: "replicaSet shop/other"}}
	if got := Build("web", &rows).OtherOwners(&rows); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestIndexFindsWhatSelectorsMatch compares the index with a comparison of each Service with each ReplicaSet.
func TestIndexFindsWhatSelectorsMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	labels := func(most int) string {
		var entries []string
		for range random.IntN(most + 1) {
			entries = append(entries, fmt.Sprintf("l%d=%d", random.IntN(4), random.IntN(3)))
		}
		return strings.Join(entries, " ")
	}
	related := 0
	for range 200 {
		var services, workloads []*Object
		for i := range 10 {
			s := object(fmt.Sprintf("service n%d/s%d", i%2, i), selecting(labels(2)))
			w := object(fmt.Sprintf("replicaSet n%d/w%d", i%2, i), labeled(labels(4)))
			services, workloads = append(services, &s), append(workloads, &w)
		}
		index := newServiceIndex(services)
		for _, w := range workloads {
			var want []*Object
			for _, s := range services {
				if len(s.Selector) > 0 && s.Namespace == w.Namespace && selects(s.Selector, w.TemplateLabels) {
					want = append(want, s)
				}
			}
			related += len(want)
			if got := index.servicesOf(w); !slices.Equal(objectNames(got), objectNames(want)) {
				t.Fatalf("services of %v: got %v, want %v", w.TemplateLabels, objectNames(got), objectNames(want))
			}
		}
	}
	if related < 100 {
		t.Errorf("got %d relations, want some to compare", related)
	}
}

// TestServicesOfAWorkloadAreLimited has thousands of Services with the same selector, of which those
// of the application itself must show.
func TestServicesOfAWorkloadAreLimited(t *testing.T) {
	rows := Rows{Own: []Object{object("service shop/web", selecting("app=web"))}}
	const workloads = 100
	for i := range workloads {
		rows.Own = append(rows.Own, object(fmt.Sprint("replicaSet shop/web-", i), labeled("a=b app=web")))
	}
	for i := range 5000 {
		rows.Services = append(rows.Services, object(fmt.Sprintf("service shop/a%04d", i), selecting([]string{"a=b", "app=web"}[i%2])))
	}
	rand.Shuffle(len(rows.Services), func(i, j int) { rows.Services[i], rows.Services[j] = rows.Services[j], rows.Services[i] })
	a := Build("web", &rows)
	for _, g := range a.ServerGroups {
		if n := len(g.LoadBalancers); n != maxServices || g.LoadBalancers[0] != "service a0000" || g.LoadBalancers[n-1] != "service web" {
			t.Fatalf("got %d load balancers from %s to %s, want %d with service web", n, g.LoadBalancers[0], g.LoadBalancers[n-1], maxServices)
		}
	}
	if got := a.Balance(&Rows{}); len(got[0].ServerGroups) != workloads {
		t.Errorf("got %d server groups of the Service, want all", len(got[0].ServerGroups))
	}
}

func TestServerGroupsAreGroupedByCluster(t *testing.T) {
	inCluster := func(name string) func(*Object) { return func(o *Object) { o.Moniker.Cluster = name } }
	a := Build("web", &Rows{
		Own: []Object{object("deployment shop/web", inCluster("deployment web")), object("replicaSet shop/web-1", func(o *Object) {
			inCluster("deployment web")(o)
			labeled("app=web")(o)
		}), object("replicaSet other/web-2", inCluster("deployment web")), object("deployment shop/empty", inCluster("deployment empty")),
			object("job shop/odd", inCluster("")), object("job shop/dev", func(o *Object) { o.Account = "dev" })},
		Services: []Object{object("service shop/web", selecting("app=web"))},
	})
	var got []string
	for _, c := range a.Clusters() {
		var balancers []string
		for _, b := range c.LoadBalancers() {
			balancers = append(balancers, b.Name+fmt.Sprint(objectNames(serverGroupObjects(b.ServerGroups))))
		}
		got = append(got, fmt.Sprint(c.Account, " ", c.Name, ": ", objectNames(serverGroupObjects(c.ServerGroups)), balancers))
	}
	want := []string{"dev dev: [dev] []", "prod deployment empty: [] []", "prod deployment web: [web-2 web-1] [web[web-1]]"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := a.Cluster("prod", "deployment web"); c == nil || len(c.ServerGroups) != 2 {
		t.Errorf("deployment web: got %v, want a cluster of 2", c)
	}
	for _, missing := range [][2]string{{"prod", "dev"}, {"dev", "deployment web"}, {"prod", ""}, {"", ""}} {
		if c := a.Cluster(vedette.AccountName(missing[0]), missing[1]); c != nil {
			t.Errorf("%q: got %v, want nothing", missing, c)
		}
	}
	for account, n := range map[vedette.AccountName]int{"dev": 1, "prod": 2, "a": 0, "z": 0} {
		if got := a.ClustersOf(account); len(got) != n {
			t.Errorf("clusters of %s: got %d, want %d", account, len(got), n)
		}
	}
}

func TestHealthFollowsPhaseAndContainers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		phase string
		ready string // a letter for each container: r is ready
		state HealthState
		parts string
	}{
		{"a Pod without a status", "", "", Unknown, ""},
		{"ready", "Running", "rr", Up, "Up Up Up"},
		{"one container is not ready", "Running", "r-", Down, "Up Up Down"},
		{"pending", "Pending", "", Down, "Down"},
		{"a container is ready before the phase says so", "pending", "r", Down, "Down Up"},
		{"ended", "Succeeded", "-", Down, "Unknown Down"},
		{"ended, but still ready", "Failed", "r", Up, "Unknown Up"},
		{"an unknown phase without containers", "Unknown", "", Unknown, "Unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := object("pod shop/p", func(o *Object) { o.Phase = tt.phase })
			for _, letter := range tt.ready {
				pod.Containers = append(pod.Containers, containerState("c", letter == 'r'))
			}
			i := newInstance(&pod)
			var parts []string
			for h := range i.Health() {
				parts = append(parts, string(h.State))
			}
			if got := strings.Join(parts, " "); i.State != tt.state || got != tt.parts {
				t.Errorf("got %s from %q, want %s from %q", i.State, got, tt.state, tt.parts)
			}
			for range i.Health() { // stopping early must not panic
				break
			}
		})
	}
}

func TestOnlyShownKindsAreFound(t *testing.T) {
	for name, want := range map[string]string{"replicaSet": "replicaSet", "RS": "replicaSet", "pod": "pod", "POD": "pod", "svc": "service",
		"netpol": "networkPolicy", "cronjob": "cronJob", "deploy": "deployment", "configMap": "", "secret": "", "Deployment.example.com": "", "": ""} {
		kind, ok := FindKind(name)
		if ok != (want != "") || ok && manifest.KindName(kind) != want {
			t.Errorf("%q: got %v %v, want %q", name, kind, ok, want)
		}
	}
}
