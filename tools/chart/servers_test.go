package chart

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
)

// shared are values of three servers that share a database.
func shared(cluster string) map[string]any {
	return merge(withoutKeys, map[string]any{"server": map[string]any{"tls": map[string]any{"mode": "certManager"}, "replicas": 3,
		"database": map[string]any{"url": "postgres://vedette@db.example.com:5432/vedette"},
		"config":   map[string]any{"kubesvc": map[string]any{"cluster": cluster}}}})
}

// kinds returns how often each kind is among objects.
func kinds(found []object) map[string]int {
	counts := map[string]int{}
	for _, o := range found {
		counts[o.Kind]++
	}
	return counts
}

// serverOf returns the workload of the servers.
func serverOf(t *testing.T, found []object) object {
	t.Helper()
	for _, o := range found {
		if (o.Kind == "Deployment" || o.Kind == "StatefulSet") && o.Metadata.Name == "spin-clouddriver-vedette" {
			return o
		}
	}
	t.Fatal("there is no server")
	return object{}
}

// TestServersThatShareNothingAreRefused checks that several servers without a common database, or without knowing each other, are an error that
// says what to set.
func TestServersThatShareNothingAreRefused(t *testing.T) {
	c := load(t)
	const cluster, database, volume, id = "set server.config.kubesvc.cluster to", "set server.database.url to it", "server.persistence.existingClaim", "server.config.server.id"
	url := set("server.database.url", "postgres://vedette@db/vedette")
	known := set("server.config.kubesvc.cluster", "database")
	both := merge(url, known)
	three := set("server.replicas", 3)
	variable := func(value any) map[string]any {
		return set("server.env", []any{map[string]any{"name": "VEDETTE_SERVER_SQL_URL", "value": value}})
	}
	for name, test := range map[string]struct {
		values   map[string]any
		problems []string
	}{
		"nothing is set":                       {three, []string{cluster, database}},
		"a database alone":                     {merge(three, url), []string{cluster}},
		"none":                                 {merge(three, merge(url, set("server.config.kubesvc.cluster", "none"))), []string{cluster}},
		"local in other letters":               {merge(three, merge(url, set("server.config.kubesvc.cluster", "LOCAL"))), []string{cluster}},
		"the embedded database":                {merge(three, known), []string{database}},
		"SQLite":                               {merge(three, merge(known, set("server.database.url", "sqlite:///var/lib/vedette/a.db"))), []string{database}},
		"SQLite that counts more":              {merge(three, merge(both, set("server.config.sql.url", "sqlite:/a"))), []string{database}},
		"SQLite in a variable":                 {merge(three, merge(both, variable("sqlite:/a"))), []string{database}},
		"a URL that only a Secret has":         {merge(three, merge(known, set("server.configSecret", "mine"))), []string{database}},
		"a volume":                             {merge(both, set("server.persistence.existingClaim", "mine")), []string{volume}},
		"one name for all":                     {merge(both, set("server.config.server.id", "server")), []string{id}},
		"what is needed":                       {merge(three, both), nil},
		"in other letters":                     {merge(three, merge(url, set("server.config.kubesvc.cluster", "Database"))), nil},
		"redis, which means the database":      {merge(three, merge(url, set("server.config.kubesvc.cluster", "redis"))), nil},
		"Clouddriver's form of a database":     {merge(three, merge(known, set("server.config.sql.connectionPools.default.jdbcUrl", "jdbc:mysql://db/v"))), nil},
		"a variable with the URL":              {merge(three, merge(known, variable("postgres://db/v"))), nil},
		"a variable with the URL, of a Secret": {merge(three, merge(known, variable(nil))), nil},
		"the servers are elsewhere":            {merge(three, set("server.enabled", false)), nil},
	} {
		_, err := render(c, "vedette", "spinnaker", merge(withoutKeys, test.values))
		for _, p := range []string{cluster, database, volume, id} {
			if want := slices.Contains(test.problems, p); want != (err != nil && strings.Contains(err.Error(), p)) {
				t.Errorf("%s: got %v, want it to say %q: %t", name, err, p, want)
			}
		}
		if test.problems == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServersThatShareADatabase checks what servers that share a database have, and others do not.
func TestServersThatShareADatabase(t *testing.T) {
	c := load(t)
	alone := merge(withoutKeys, set("server.database.url", "postgres://vedette@db.example.com:5432/vedette"))
	for name, test := range map[string]struct {
		values                     map[string]any
		workload                   string
		budget, peers, lists, keys bool
	}{
		"one server":                        {alone, "StatefulSet", false, false, false, false},
		"three":                             {shared("database"), "Deployment", true, true, false, true},
		"three that list pods":              {shared("kubernetes"), "Deployment", true, true, true, true},
		"with credentials of their own":     {merge(shared("kubernetes"), set("server.config.kubesvc.cluster-kubernetes.kubeconfigFile", "/k")), "Deployment", true, true, false, true},
		"one that others may join":          {merge(shared("database"), set("server.replicas", 1)), "Deployment", false, true, false, true},
		"none, while something is repaired": {merge(shared("database"), set("server.replicas", 0)), "Deployment", false, true, false, true},
		"with a key of the user's":          {merge(shared("database"), set("server.operationKeySecret", "mine")), "Deployment", true, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := objects(t, mustRender(t, c, test.values))
			counts, all, pod := kinds(found), text(t, found), text(t, []object{serverOf(t, found)})
			if got := serverOf(t, found).Kind; got != test.workload {
				t.Errorf("got a %s, want a %s", got, test.workload)
			}
			check := func(what string, got, want bool) {
				t.Helper()
				if got != want {
					t.Errorf("%s: got %t, want %t", what, got, want)
				}
			}
			isShared := test.workload == "Deployment"
			check("a PodDisruptionBudget", counts["PodDisruptionBudget"] > 0, test.budget)
			check("a Secret with a key", counts["Secret"] > 0, test.keys)
			check("the key in the pods", strings.Contains(pod, `"mountPath":"/var/lib/vedette/operations.key"`), isShared)
			check("a port for other servers", strings.Contains(pod, `"name":"peers"`), test.peers)
			check("a policy for that port", strings.Contains(all, `{"from":[{"podSelector":{"matchLabels":{"app.kubernetes.io/component":"server","app.kubernetes.io/instance":"vedette",`+
				`"app.kubernetes.io/name":"vedette"}}}],"ports":[{"port":"peers"}]}`), test.peers)
			check("the pod's name", strings.Contains(pod, `{"name":"VEDETTE_SERVER_SERVER_ID","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}`), test.peers)
			check("the pod's address", strings.Contains(pod, `{"name":"VEDETTE_SERVER_SERVER_PEERS_ADVERTISE","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}`), test.peers)
			check("a pause before the end", strings.Contains(pod, `"preStop":{"sleep":{"seconds":5}}`), isShared)
			check("a spread", strings.Contains(pod, `"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway"`), isShared)
			check("a volume that is kept", strings.Contains(pod, "volumeClaimTemplates"), !isShared)
			check("a token", strings.Contains(pod, `"automountServiceAccountToken":true`), test.lists)
			check("the right to list pods", strings.Contains(all, `"resources":["endpointslices"],"verbs":["get","list","watch"]`), test.lists)
			check("a new server before an old one leaves", strings.Contains(pod, `"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}`), isShared)
			check("one at a time may be missing", strings.Contains(all, `"maxUnavailable":1,"selector"`), test.budget)
		})
	}
	notes := mustRender(t, c, shared("database"))["vedette/templates/NOTES.txt"]
	if !strings.Contains(notes, "rollout status deployment/spin-clouddriver-vedette") || !strings.Contains(notes, "3 servers share the database") {
		t.Errorf("got the notes %s", notes)
	}
	advertised := merge(shared("database"), set("server.config.server.peers.advertise", "gateway.example.com"))
	if got := text(t, objects(t, mustRender(t, c, advertised))); strings.Contains(got, "status.podIP") || !strings.Contains(got, "advertise: gateway.example.com") {
		t.Errorf("the user's address does not count: %s", got)
	}
	port := merge(shared("database"), set("server.config.server.peers.port", 7100))
	if got := text(t, objects(t, mustRender(t, c, port))); !strings.Contains(got, `{"containerPort":7100,"name":"peers"}`) || strings.Contains(got, "7004") {
		t.Errorf("the user's port does not count: %s", got)
	}
	role := merge(shared("kubernetes"), set("server.config.kubesvc.cluster-kubernetes.namespace", "servers"))
	if got := text(t, objects(t, mustRender(t, c, role))); !strings.Contains(got, `"name":"spin-clouddriver-vedette","namespace":"servers"},"roleRef"`) {
		t.Errorf("the RoleBinding is not where the Services are: %s", got)
	}
}

// TestOldClustersGetNoPause checks that API servers that do not know the pause before the end of a container are not sent one: they refuse the
// whole Deployment.
func TestOldClustersGetNoPause(t *testing.T) {
	c := load(t)
	for text, want := range map[string]bool{"v1.29.14": false, "v1.30.0": true, "v1.36.1": true} {
		version, err := common.ParseKubeVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := renderFor(c, version, "vedette", "spinnaker", shared("database"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(rendered["vedette/templates/server/deployment.yaml"], "preStop"); got != want {
			t.Errorf("%s: got a pause: %t, want %t", text, got, want)
		}
	}
}

// TestGeneratedOperationKey checks that the key is long enough for the server, and another one in each installation.
func TestGeneratedOperationKey(t *testing.T) {
	c := load(t)
	keys := map[string]bool{}
	for range 2 {
		for _, o := range objects(t, mustRender(t, c, shared("database"))) {
			if o.Kind != "Secret" {
				continue
			}
			key, err := base64.StdEncoding.DecodeString(o.Data["operations.key"])
			if err != nil || len(key) < 26 {
				t.Errorf("got the key %q (%v), want at least 26 characters", key, err)
			}
			keys[string(key)] = true
		}
	}
	if len(keys) != 2 {
		t.Errorf("got the keys %q, want two that differ", slices.Collect(maps.Keys(keys)))
	}
}

// TestServicesOfServersAreFound checks that servers that list pods find those of the Service that has the REST API, and not those of the Clouddriver
// behind them.
func TestServicesOfServersAreFound(t *testing.T) {
	c := load(t)
	for _, mode := range []string{"none", "replace", "front"} {
		found := objects(t, mustRender(t, c, merge(shared("kubernetes"), set("server.clouddriver.mode", mode))))
		_, rest, _ := strings.Cut(text(t, found), "clouddriverServiceNamePrefix: ")
		prefix, _, _ := strings.Cut(rest, `\n`)
		var services []string
		for _, o := range found {
			if o.Kind == "Service" && strings.HasPrefix(o.Metadata.Name, prefix) && strings.Contains(fmt.Sprint(o.content), "name:http ") {
				services = append(services, o.Metadata.Name)
			}
		}
		want := map[string]string{"none": "spin-clouddriver-vedette", "replace": "spin-clouddriver", "front": "spin-clouddriver"}[mode]
		if !slices.Equal(services, []string{want}) {
			t.Errorf("%s: servers list the pods of the Services %q, want those of %s", mode, services, want)
		}
	}
}
