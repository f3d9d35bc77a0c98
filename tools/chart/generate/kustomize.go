package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// namespace is the one for which bases are rendered. They do not have it, but the ClusterRole's name begins with it.
const namespace = "vedette"

// A base is a component of the chart as a Kustomization.
type base struct {
	name      string
	prefix    string // of the environment variables that set its configuration
	configMap string
	file      string // key of the configuration
	values    map[string]any
}

var (
	server = base{"server", "VEDETTE_SERVER_", "spin-clouddriver-vedette", "vedette-server.yml",
		values("agent.enabled", false, "server.tls.mode", "secret")}
	agent = base{"agent", "VEDETTE_AGENT_", "spin-armory-agent", "vedette-agent.yml",
		values("server.enabled", false, "agent.server.tlsSecret", "spin-armory-agent-tls", "agent.account.name", exampleAccount)}
	bases = []base{server, agent}
)

// A component changes a base as a value of the chart does.
type component struct {
	name    string
	comment string
	base    base
	values  map[string]any // besides those of the base
}

var components = []component{
	{name: "front", base: server, values: values("server.clouddriver.mode", "front"),
		comment: "The Service spin-clouddriver becomes the server's, and the Clouddriver that is there gets spin-clouddriver-upstream, behind it."},
	{name: "replace", base: server, values: values("server.clouddriver.mode", "replace"),
		comment: "The Service spin-clouddriver is the server's, for installations without Clouddriver."},
	{name: "database", base: server, values: values("server.database.passwordSecret", "vedette-database", "server.env", []any{
		map[string]any{"name": "VEDETTE_SERVER_SQL_URL",
			"valueFrom": values("secretKeyRef.name", "vedette-database", "secretKeyRef.key", "url")}}),
		comment: "PostgreSQL, MariaDB or MySQL: the Secret vedette-database has the keys url (without a password) and password."},
	{name: "several-servers", base: server, values: values("server.replicas", 3, "server.config.kubesvc.cluster", "database",
		"server.operationKeySecret", "vedette-operations", "server.database.passwordSecret", "vedette-database", "server.env", []any{
			map[string]any{"name": "VEDETTE_SERVER_SQL_URL",
				"valueFrom": values("secretKeyRef.name", "vedette-database", "secretKeyRef.key", "url")}}),
		comment: "Three servers that share a database. Secret vedette-database as for component database, without which this is; Secret vedette-operations has operations.key, 26 random characters or more."},
	{name: "no-volume", base: server, values: values("server.persistence.enabled", false),
		comment: "The server has no volume: after each start of its pod everything is read anew."},
	{name: "load-balancer", base: server, values: values("server.grpc.type", "LoadBalancer"),
		comment: "Agents of other clusters reach the server by a load balancer."},
	{name: "cert-manager", base: server, values: values("server.tls.mode", "certManager", "server.tls.issuer.name", "vedette"),
		comment: "Certificates of server and agents come from the Issuer vedette, which you create."},
	{name: "server-monitoring", base: server, values: values("monitoring.operator.enabled", true),
		comment: "A PodMonitor of the server, for the Prometheus Operator."},
	{name: "agent-monitoring", base: agent, values: values("monitoring.operator.enabled", true),
		comment: "A PodMonitor of the agent, for the Prometheus Operator."},
	{name: "alerts", base: server, values: values("monitoring.rules.enabled", true),
		comment: "The alerts of docs/alerts.md, for the Prometheus Operator."},
	{name: "read-only", base: agent, values: values("agent.rbac.readOnly", true),
		comment: "The agent may only read: operations fail."},
	{name: "two-agents", base: agent, values: values("agent.replicas", 2),
		comment: "Two replicas: when one is lost, the other takes over within seconds."},
}

// render returns a base's objects without their namespace, which users of Kustomize choose.
func (b base) render(c chart, more map[string]any) ([]object, error) {
	objects, err := c.render(namespace, merge(b.values, more))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		delete(at(o, "metadata"), "namespace")
		subjects, _ := o["subjects"].([]any)
		for _, subject := range subjects {
			delete(subject.(map[string]any), "namespace")
		}
		// Names with a namespace: agents of the same one do not need them, and others are in a patch of the user's.
		if spec, ok := o["spec"].(map[string]any); ok && o.kind() == "Certificate" && spec["dnsNames"] != nil {
			spec["dnsNames"] = slices.DeleteFunc(spec["dnsNames"].([]any), func(name any) bool {
				return strings.Contains(name.(string), "."+namespace)
			})
		}
	}
	return objects, nil
}

// files returns the base: its objects, and its configuration as a file, so that overlays can add another one beside it.
func (b base) files(c chart) (map[string]string, error) {
	objects, err := b.render(c, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(objects, func(o object) bool { return o.kind() == "ConfigMap" && o.name() == b.configMap })
	config, err := b.config(objects[i])
	if err != nil {
		return nil, err
	}
	delete(config, "kubernetes") // accounts, which are the overlay's
	labels := at(objects[i], "metadata", "labels")
	objects = slices.Delete(objects, i, i+1)
	return map[string]string{
		"resources.yaml": documents(objects),
		b.file:           encode(config),
		"kustomization.yaml": encode(map[string]any{
			"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{"resources.yaml"},
			"configMapGenerator": []any{map[string]any{"name": b.configMap, "files": []string{b.file}, "options": map[string]any{"labels": labels}}},
		}),
	}, nil
}

// config returns the configuration in a ConfigMap.
func (b base) config(o object) (map[string]any, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(at(o, "data")[b.file].(string)), &config); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", b.name, err)
	}
	return config, nil
}

// files returns the component: objects that it adds, and patches of those that it changes. What it changes in the configuration
// becomes environment variables, because Kustomize cannot change a part of a file, and several components may be used at once.
func (p component) files(c chart) (map[string]string, error) {
	before, err := p.base.render(c, nil)
	if err != nil {
		return nil, err
	}
	after, err := p.base.render(c, merge(p.values, nil))
	if err != nil {
		return nil, err
	}
	variables, err := p.variables(before, after)
	if err != nil {
		return nil, err
	}
	var added []object
	var patches []any
	for _, o := range after {
		i := slices.IndexFunc(before, func(other object) bool { return other.id() == o.id() })
		switch {
		case o.kind() == "ConfigMap" && o.name() == p.base.configMap:
		case i < 0:
			addVariables(o, variables)
			added = append(added, o)
		default:
			addVariables(o, variables)
			patch, err := difference(before[i], o)
			if err != nil {
				return nil, err
			}
			if patch != "" {
				patches = append(patches, map[string]any{"patch": patch})
			}
		}
	}
	for _, o := range before {
		if !slices.ContainsFunc(after, func(other object) bool { return other.id() == o.id() }) {
			patches = append(patches, map[string]any{"patch": encode(withID(o, map[string]any{"$patch": "delete"}))})
		}
	}
	kustomization := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
	files := map[string]string{}
	if len(added) > 0 {
		files["resources.yaml"] = documents(added)
		kustomization["resources"] = []string{"resources.yaml"}
	}
	if len(patches) > 0 {
		kustomization["patches"] = patches
	}
	files["kustomization.yaml"] = "# " + p.comment + "\n" + encode(kustomization)
	return files, nil
}

// variables returns the environment variables that change the configuration as the component does.
func (p component) variables(before, after []object) (map[string]string, error) {
	var configs [2]map[string]string
	for i, objects := range [][]object{before, after} {
		at := slices.IndexFunc(objects, func(o object) bool { return o.kind() == "ConfigMap" && o.name() == p.base.configMap })
		config, err := p.base.config(objects[at])
		if err != nil {
			return nil, err
		}
		configs[i] = map[string]string{}
		flatten(config, p.base.prefix, configs[i])
	}
	variables := map[string]string{}
	for name, value := range configs[1] {
		if was, ok := configs[0][name]; !ok || was != value {
			variables[name] = value
		}
	}
	for name := range configs[0] {
		if _, ok := configs[1][name]; !ok {
			return nil, fmt.Errorf("the component removes %s from the configuration, which an environment variable cannot", name)
		}
	}
	return variables, nil
}

// flatten writes the values of a configuration by the names of the environment variables that set them.
func flatten(config map[string]any, prefix string, into map[string]string) {
	for key, value := range config {
		name := prefix + strings.ToUpper(key)
		if below, ok := value.(map[string]any); ok {
			flatten(below, name+"_", into)
		} else {
			into[name] = fmt.Sprint(value)
		}
	}
}

// addVariables adds environment variables to the only container of a workload.
func addVariables(o object, variables map[string]string) {
	if o.kind() != "StatefulSet" && o.kind() != "Deployment" {
		return
	}
	container := at(o, "spec", "template", "spec")["containers"].([]any)[0].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		list, _ := container["env"].([]any)
		container["env"] = append(list, map[string]any{"name": name, "value": variables[name]})
	}
}

// order matches what patches say about the order of lists. Kustomize does not know it.
var order = regexp.MustCompile(`^\$(setElementOrder|retainKeys)`)

// difference returns the patch that makes one object out of another, empty if they are equal.
func difference(before, after object) (string, error) {
	if reflect.DeepEqual(before, after) {
		return "", nil
	}
	old, err := json.Marshal(before)
	if err != nil {
		return "", err
	}
	changed, err := json.Marshal(after)
	if err != nil {
		return "", err
	}
	version, err := schema.ParseGroupVersion(before["apiVersion"].(string))
	if err != nil {
		return "", err
	}
	typed, err := scheme.Scheme.New(version.WithKind(before.kind()))
	if err != nil {
		return "", err
	}
	encoded, err := strategicpatch.CreateTwoWayMergePatch(old, changed, typed)
	if err != nil {
		return "", err
	}
	var patch map[string]any
	if err := json.Unmarshal(encoded, &patch); err != nil {
		return "", err
	}
	withoutOrder(patch)
	return encode(withID(before, patch)), nil
}

func withoutOrder(content any) {
	switch content := content.(type) {
	case []any:
		for _, below := range content {
			withoutOrder(below)
		}
	case map[string]any:
		for name, below := range content {
			if order.MatchString(name) {
				delete(content, name)
				continue
			}
			withoutOrder(below)
		}
	}
}

// withID returns a patch of an object.
func withID(o object, patch map[string]any) map[string]any {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = o.name()
	patch["apiVersion"], patch["kind"] = o["apiVersion"], o.kind()
	patch["metadata"] = metadata
	return patch
}

// merge returns values with those of more in them.
func merge(values, more map[string]any) map[string]any {
	merged := maps.Clone(values)
	for name, value := range more {
		below, isMap := value.(map[string]any)
		if group, ok := merged[name].(map[string]any); ok && isMap {
			value = merge(group, below)
		}
		merged[name] = value
	}
	return merged
}
