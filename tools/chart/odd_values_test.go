package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// oddTexts would be something else than texts, or more than one value, if a template wrote them as they are.
var oddTexts = []string{"123", "1e3", "0x1f", "true", "null", "~", "2001-01-01", "a: b", "x\n    injected: true", "x #y", `a"b`, "a'b", "- a", "*a", "&a b", "!!int 1",
	"[a]", "{a: b}", "{{ .Release.Name }}", "a\tb", "\\n"}

// withoutKeys are values with which the chart generates no keys, which takes long.
var withoutKeys = set("server.tls.mode", "certManager")

// plain is a text that stands for odd ones.
const plain = "zzplain"

// textPlaces are values that let each text be somewhere, by the path of the text.
func textPlaces(c *chart.Chart) map[string]func(text string) map[string]any {
	base := map[string]any{
		"server": map[string]any{"database": map[string]any{"passwordSecret": "a"}, "clouddriver": map[string]any{"mode": "front"},
			"tls": map[string]any{"mode": "certManager"}},
		"agent":      map[string]any{"account": map[string]any{"name": "prod"}, "replicas": 2, "rbac": map[string]any{"namespaces": []any{"a"}}},
		"monitoring": map[string]any{"operator": map[string]any{"enabled": true}, "rules": map[string]any{"enabled": true}},
	}
	places := map[string]func(text string) map[string]any{}
	for _, path := range leaves(c.Values, "") {
		if _, isText := value(c.Values, path).(string); isText {
			places[path] = func(text string) map[string]any { return merge(base, set(path, text)) }
		}
	}
	for path, of := range map[string]func(text string) any{
		"commonLabels":                     func(text string) any { return map[string]any{"a": text} },
		"commonAnnotations":                func(text string) any { return map[string]any{"a": text} },
		"image.pullSecrets":                func(text string) any { return []any{text} },
		"server.grpc.hosts":                func(text string) any { return []any{text} },
		"server.podLabels":                 func(text string) any { return map[string]any{"a": text} },
		"agent.podAnnotations":             func(text string) any { return map[string]any{"a": text} },
		"agent.rbac.namespaces":            func(text string) any { return []any{text} },
		"agent.rbac.extra":                 func(text string) any { return []any{map[string]any{"group": "g", "resource": text}} },
		"agent.kubeconfigs":                func(text string) any { return map[string]any{text: map[string]any{"secret": text, "key": text}} },
		"agent.account.settings":           func(text string) any { return map[string]any{"environment": text} },
		"agent.config.kubernetes.accounts": func(text string) any { return []any{map[string]any{"name": text}} },
		"server.config.agents":             func(string) any { return map[string]any{} },
	} {
		places[path] = func(text string) map[string]any { return merge(base, set(path, of(text))) }
	}
	return places
}

// TestTextsStayTexts sets each text to odd ones. Each is refused, or is where a plain one would be, and nothing else changes.
func TestTextsStayTexts(t *testing.T) {
	c := load(t)
	texts, least := oddTexts, 500
	if testing.Short() {
		texts, least = []string{"123", "a: b", "x\n    injected: true", `a"b`}, 100
	}
	accepted := 0
	for path, values := range textPlaces(c) {
		rendered, err := render(c, "vedette", "spinnaker", values(plain))
		if err != nil && strings.Contains(err.Error(), "schema") { // an enumeration
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		want := contentsOf(t, rendered)
		for _, odd := range texts {
			rendered, err := render(c, "vedette", "spinnaker", values(odd))
			if err != nil {
				if !strings.Contains(err.Error(), "schema") && path != "namePrefix" {
					t.Errorf("%s: %q: got %v, want it to be refused by the schema", path, odd, err)
				}
				continue
			}
			accepted++
			if got, want := contentsOf(t, rendered), replaced(want, plain, odd); !equal(got, want) {
				t.Errorf("%s: %q is not where a plain text would be:\n%s", path, odd, difference(got, want))
			}
		}
	}
	if accepted < least {
		t.Errorf("%d texts were accepted, so the test tries less than it did", accepted)
	}
	for _, name := range []string{"123", "true"} {
		rendered, err := render(c, name, name, set("agent.account.name", "prod"))
		if err != nil {
			t.Fatal(err)
		}
		plainly, err := render(c, plain, plain, set("agent.account.name", "prod"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := contentsOf(t, rendered), replaced(contentsOf(t, plainly), plain, name); !equal(got, want) {
			t.Errorf("a release and a namespace with the name %s:\n%s", name, difference(got, want))
		}
	}
}

// contentsOf returns the content of all objects, with configurations as trees, and without what follows from other content.
func contentsOf(t *testing.T, rendered map[string]string) (contents []any) {
	t.Helper()
	for _, o := range objects(t, rendered) {
		if o.Kind == "Secret" { // with a new key each time
			continue
		}
		content := o.content.(map[string]any)
		if data, ok := content["data"].(map[string]any); ok {
			for name, text := range data {
				var tree any
				if err := yaml.Unmarshal([]byte(text.(string)), &tree); err != nil {
					t.Fatalf("%s in %s: %v\n%s", name, o.Metadata.Name, err, text)
				}
				data[name] = tree
			}
		}
		if annotations, ok := at(content, "spec", "template", "metadata", "annotations").(map[string]any); ok {
			delete(annotations, "checksum/config")
		}
		contents = append(contents, content)
	}
	return contents
}

// replaced returns a copy in which a part of all texts and names is another.
func replaced[T any](content T, old, text string) T {
	var replace func(any) any
	replace = func(content any) any {
		switch content := content.(type) {
		case string:
			return strings.ReplaceAll(content, old, text)
		case []any:
			list := make([]any, len(content))
			for i := range content {
				list[i] = replace(content[i])
			}
			return list
		case map[string]any:
			m := map[string]any{}
			for name := range content {
				m[strings.ReplaceAll(name, old, text)] = replace(content[name])
			}
			return m
		}
		return content
	}
	return replace(any(content)).(T)
}

func lines(content []any) (all []string) {
	for _, o := range content {
		encoded, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		all = append(all, string(encoded))
	}
	return all
}

func equal(a, b []any) bool { return slices.Equal(lines(a), lines(b)) }

func difference(got, want []any) string {
	a, b := lines(got), lines(want)
	if len(a) != len(b) {
		return fmt.Sprintf("got %d objects, want %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + b[i]
		}
	}
	return ""
}

// groups returns the paths of all groups of values.
func groups(values map[string]any, prefix string) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if below, ok := values[name].(map[string]any); ok && len(below) > 0 {
			paths = append(append(paths, prefix+name), groups(below, prefix+name+".")...)
		}
	}
	return paths
}

// TestNullIsEmptyOrNamed sets each value and each group to null, as a file does in which everything below a key is a comment. What may be empty
// is; what may not is named.
func TestNullIsEmptyOrNamed(t *testing.T) {
	c := load(t)
	for _, path := range append(leaves(c.Values, ""), groups(c.Values, "")...) {
		name := path[strings.LastIndexByte(path, '.')+1:]
		rendered, err := render(c, "vedette", "spinnaker", merge(merge(set("agent.account.name", "prod"), withoutKeys), set(path, nil)))
		if err != nil {
			if path != "agent.account" && !strings.Contains(err.Error(), "missing property '"+name+"'") {
				t.Errorf("without %s: got %v, want an error that names it", path, err)
			}
			continue
		}
		if got := text(t, objects(t, rendered)); strings.Contains(got, "<nil>") {
			t.Errorf("without %s: an object contains <nil>", path)
		}
		if isSet, ok := value(c.Values, path).(bool); ok && isSet {
			t.Errorf("without %s, which is true by default, it counts as false", path)
		}
	}
}

// TestLimitsOfValues checks values that an API server, or a clock, would refuse later.
func TestLimitsOfValues(t *testing.T) {
	c := load(t)
	for path, wrong := range map[string][]any{
		"namePrefix":              {"", "Spin", "1spin", "-spin", "spin.a", "spin_a", strings.Repeat("s", 33)},
		"server.service.port":     {0, 65536, -1},
		"server.grpc.port":        {0, 65536},
		"server.clouddriver.port": {0, 70000},
		"server.tls.days":         {0, 200_000},
		"agent.rbac.namespaces":   {[]any{"A"}, []any{""}},
		"server.grpc.hosts":       {[]any{""}, []any{"a,b"}},
		"agent.replicas":          {-1, "two"},
	} {
		name := path[strings.LastIndexByte(path, '.')+1:]
		for _, v := range wrong {
			if _, err := render(c, "vedette", "spinnaker", merge(withoutKeys, set(path, v))); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s = %v: got %v, want an error that names it", path, v, err)
			}
		}
	}
	rendered := mustRender(t, c, map[string]any{"namePrefix": strings.Repeat("s", 32), "server": map[string]any{"clouddriver": map[string]any{"mode": "front"}}})
	for _, o := range objects(t, rendered) {
		if o.Kind == "StatefulSet" && len(o.Metadata.Name+"-1234567890") > 63 {
			t.Errorf("a hash does not fit into the label of pods of %s", o.Metadata.Name)
		}
		if o.Kind == "Service" && len(o.Metadata.Name) > 63 {
			t.Errorf("a Service cannot have the name %s", o.Metadata.Name)
		}
	}
	long := map[string]any{"namePrefix": "team.a-" + strings.Repeat("s", 33), "server": map[string]any{"enabled": false}}
	if _, err := render(c, "vedette", "spinnaker", long); err != nil {
		t.Errorf("a prefix that is right for an agent: %v", err)
	}
}

// TestNumbersAreWhole checks that large numbers are not written as YAML has floating-point ones.
func TestNumbersAreWhole(t *testing.T) {
	c := load(t)
	values := map[string]any{"agent": map[string]any{"replicas": float64(2_000_000), "terminationGracePeriodSeconds": float64(3_000_000)}}
	for _, want := range []string{"replicas: 2000000\n", "terminationGracePeriodSeconds: 3000000\n"} {
		if got := mustRender(t, c, values)["vedette/templates/agent/deployment.yaml"]; !strings.Contains(got, want) {
			t.Errorf("the Deployment lacks %q", want)
		}
	}
}

// TestPortsFollowTheConfiguration checks that probes and Services lead to where the programs listen. What a variable says is not known, so the
// default counts.
func TestPortsFollowTheConfiguration(t *testing.T) {
	c := load(t)
	ports := map[string]int{"server.config.server.port": 7002, "server.config.grpc.server.port": 9091, "server.config.management.server.port": 7003,
		"agent.config.server.port": 8082, "agent.config.prometheus.port": 8008}
	for path, usual := range ports {
		for v, want := range map[any]int{7100: 7100, "7100": 7100, "${PORT}": usual} {
			got := text(t, objects(t, mustRender(t, c, merge(withoutKeys, set(path, v)))))
			if port := fmt.Sprintf(`"containerPort":%d,`, want); !strings.Contains(got, port) {
				t.Errorf("with %s %v, no container has %s", path, v, port)
			}
		}
	}
}

// TestSecretsAreNotInConfigMaps checks that nothing secret is where everyone who may read ConfigMaps reads it, and that the notes name it.
func TestSecretsAreNotInConfigMaps(t *testing.T) {
	c := load(t)
	list := func(key string, v any) any {
		return []any{map[string]any{"name": "a"}, map[string]any{"name": "b", key: v}}
	}
	const hidden = "hunter2"
	for path, of := range map[string]func(text string) any{
		"server.database.url":                         func(text string) any { return "postgres://vedette:" + text + "@db:5432/vedette" },
		"server.config.sql.url":                       func(text string) any { return "mysql://vedette:" + text + "@db/vedette" },
		"server.config.sql.password":                  func(text string) any { return text },
		"server.config.sql.connectionPools":           func(text string) any { return map[string]any{"default": map[string]any{"password": text}} },
		"server.config.sql.connectionPools.a.jdbcUrl": func(text string) any { return "jdbc:mysql://vedette:" + text + "@db/vedette" },
		"server.config.upstream.headers":              func(text string) any { return map[string]any{"X-Token": text} },
		"server.config.artifacts.github.accounts":     func(text string) any { return list("token", text) },
		"agent.config.server.adminToken":              func(text string) any { return text },
		"agent.config.kubernetes.accounts":            func(text string) any { return list("kubeconfigContents", text) },
		"agent.account.settings.kubeconfigContents":   func(text string) any { return text },
		"agent.kubeconfigs.a": func(text string) any {
			return map[string]any{"secret": "s", "settings": map[string]any{"kubeconfigContents": text}}
		},
		"agent.config.secrets.vault.token":               func(text string) any { return text },
		"agent.config.clouddriver.tls.clientKeyPassword": func(text string) any { return text }, // an alias
	} {
		component, _, _ := strings.Cut(path, ".")
		base := merge(withoutKeys, set("agent.account.name", "prod"))
		rendered := mustRender(t, c, merge(base, set(path, of(hidden))))
		kinds := map[string]string{} // of the objects with configurations
		for _, o := range objects(t, rendered) {
			content, err := json.Marshal(o.content)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), hidden) != (o.Kind == "Secret") {
				t.Errorf("%s: %s %s: %s", path, o.Kind, o.Metadata.Name, content)
			}
			if o.Kind == "Secret" || o.Kind == "ConfigMap" {
				kinds[o.Metadata.Labels["app.kubernetes.io/component"]] = o.Kind
			}
		}
		if other := map[string]string{"server": "agent", "agent": "server"}[component]; kinds[component] != "Secret" || kinds[other] != "ConfigMap" {
			t.Errorf("%s: got configurations in %v", path, kinds)
		}
		workload := rendered["vedette/templates/agent/deployment.yaml"]
		if component == "server" {
			workload = rendered["vedette/templates/server/statefulset.yaml"]
		}
		if !strings.Contains(workload, "- secret:\n              name: \"spin-") {
			t.Errorf("%s: the pod does not mount the Secret:\n%s", path, workload)
		}
		notes := rendered["vedette/templates/NOTES.txt"]
		if !strings.Contains(notes, "\n  "+path) || strings.Contains(notes, hidden) {
			t.Errorf("%s: got the notes %s", path, notes)
		}
		if strings.HasSuffix(strings.ToLower(path), "url") {
			continue
		}
		for _, reference := range []string{"${PASSWORD}", "encrypted:k8s!n:a!k:b", "encryptedFile:k8s!n:a!k:b"} {
			if got := text(t, objects(t, mustRender(t, c, merge(base, set(path, of(reference)))))); strings.Contains(got, `"kind":"Secret"`) {
				t.Errorf("%s: %s counts as a secret", path, reference)
			}
		}
	}
	for _, url := range []string{"postgres://vedette@db.example.com:5432/vedette", "mysql://u@[2001:db8::1]:3306/v?a=b:c", "sqlite:/var/lib/vedette/v.db"} {
		if got := text(t, objects(t, mustRender(t, c, merge(withoutKeys, set("server.database.url", url))))); strings.Contains(got, `"kind":"Secret"`) {
			t.Errorf("%s counts as a secret", url)
		}
	}
}

// TestLabelsAreThereOnce checks that the chart's labels count more than the user's, and common ones more than those of pods, and that no label is
// there twice, which some tools refuse.
func TestLabelsAreThereOnce(t *testing.T) {
	c := load(t)
	own := map[string]any{"app.kubernetes.io/component": "mine", "app.kubernetes.io/version": "mine", "helm.sh/chart": "mine", "vedette.io/clouddriver": "mine"}
	pods := merge(own, map[string]any{"app.kubernetes.io/name": "mine", "app.kubernetes.io/instance": "mine", "a": "pods", "b": "pods"})
	values := map[string]any{"commonLabels": merge(own, map[string]any{"a": "common"}), "server": map[string]any{"podLabels": pods}, "agent": map[string]any{"podLabels": pods}}
	got := text(t, objects(t, mustRender(t, c, merge(withoutKeys, values)))) // fails if a name is there twice
	if strings.Contains(got, `"mine"`) || strings.Contains(got, `"a":"pods"`) || strings.Count(got, `"b":"pods"`) != 2 {
		t.Errorf("got %s", got)
	}
	for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance"} {
		_, err := render(c, "vedette", "spinnaker", merge(withoutKeys, map[string]any{"commonLabels": map[string]any{label: "mine"}}))
		if err == nil || !strings.Contains(err.Error(), "commonLabels: the chart sets the label "+label) {
			t.Errorf("%s: got %v, want an error that names it", label, err)
		}
	}
}

// TestAccountsAreThereOnce checks that an account is not in two places.
func TestAccountsAreThereOnce(t *testing.T) {
	c := load(t)
	kubeconfig := map[string]any{"prod": map[string]any{"secret": "a"}}
	listed := map[string]any{"kubernetes": map[string]any{"accounts": []any{map[string]any{"name": "prod"}}}}
	for name, agent := range map[string]map[string]any{
		"account and kubeconfigs": {"account": map[string]any{"name": "prod"}, "kubeconfigs": kubeconfig},
		"account and config":      {"account": map[string]any{"name": "prod"}, "config": listed},
		"kubeconfigs and config":  {"kubeconfigs": kubeconfig, "config": listed},
	} {
		if _, err := render(c, "vedette", "spinnaker", map[string]any{"agent": agent}); err == nil || !strings.Contains(err.Error(), "one is there twice") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}
