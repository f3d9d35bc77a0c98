// Package chart tests the Helm chart with Helm's own code, and against real API servers. It is a module of its own, because Helm's
// libraries must not be in ours.
package chart

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const dir = "../../deploy/helm/vedette"

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart as "helm install RELEASE --namespace NAMESPACE" does, without a cluster.
func render(c *chart.Chart, release, namespace string, values map[string]any) (map[string]string, error) {
	return renderFor(c, &common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}, release, namespace, values)
}

// renderFor renders the chart as for a cluster with a version of Kubernetes.
func renderFor(c *chart.Chart, version *common.KubeVersion, release, namespace string, values map[string]any) (map[string]string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	merged, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, merged)
}

// An object is one that the chart renders.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Type string
	Data map[string]string

	content any
}

// objects returns what rendered templates contain.
func objects(t *testing.T, rendered map[string]string) (found []object) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for decoder := yaml.NewDecoder(strings.NewReader(rendered[path])); ; {
			var document yaml.Node
			if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, rendered[path])
			}
			var o object
			if err := errors.Join(document.Decode(&o), document.Decode(&o.content)); err != nil {
				t.Fatalf("%s: %v\n%s", path, err, rendered[path])
			}
			if o.Kind != "" {
				found = append(found, o)
			}
		}
	}
	return found
}

// text returns objects as JSON in lines, for searches.
func text(t *testing.T, found []object) string {
	t.Helper()
	var b strings.Builder
	for _, o := range found {
		encoded, err := json.Marshal(o.content)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(encoded, '\n'))
	}
	return b.String()
}

// leaves returns the paths of all values that have none below them.
func leaves(values map[string]any, prefix string) (paths []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if below, ok := values[name].(map[string]any); ok && len(below) > 0 && name != "selector" && name != "requests" && name != "limits" {
			paths = append(paths, leaves(below, prefix+name+".")...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

// set returns values in which the one at a path is v.
func set(path string, v any) map[string]any {
	steps := strings.Split(path, ".")
	for _, step := range slices.Backward(steps) {
		v = map[string]any{step: v}
	}
	return v.(map[string]any)
}

// A valueCase sets values, and says what then is in the objects.
type valueCase struct {
	Values map[string]any
	Want   []string // in an object as JSON
	Absent []string // in none
}

func cases(t *testing.T) []valueCase {
	t.Helper()
	file, err := os.ReadFile("testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []valueCase
	decoder := yaml.NewDecoder(strings.NewReader(string(file)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestEveryValueHasAnEffect checks what each value does: that it is where the case says, and was not there before.
func TestEveryValueHasAnEffect(t *testing.T) {
	c := load(t)
	without := text(t, objects(t, mustRender(t, c, nil)))
	untested := leaves(c.Values, "")
	for i, test := range cases(t) {
		t.Run(fmt.Sprint(i, leaves(test.Values, "")), func(t *testing.T) {
			got := text(t, objects(t, mustRender(t, c, test.Values)))
			for _, want := range test.Want {
				if !strings.Contains(got, want) {
					t.Errorf("no object contains %s\n%s", want, got)
				}
				if strings.Contains(without, want) {
					t.Errorf("%s is there without the values, too", want)
				}
			}
			for _, absent := range test.Absent {
				if strings.Contains(got, absent) {
					t.Errorf("an object contains %s\n%s", absent, got)
				}
				if !strings.Contains(without, absent) {
					t.Errorf("%s is not there without the values, either", absent)
				}
			}
			if len(test.Want)+len(test.Absent) == 0 {
				t.Error("the case expects nothing")
			}
		})
		for _, path := range leaves(test.Values, "") {
			untested = slices.DeleteFunc(untested, func(leaf string) bool { return path == leaf || strings.HasPrefix(path, leaf+".") })
		}
	}
	for _, path := range untested {
		if path == "server.tls.days" { // TestGeneratedCertificates
			continue
		}
		t.Errorf("no case sets %s", path)
	}
}

func mustRender(t *testing.T, c *chart.Chart, values map[string]any) map[string]string {
	t.Helper()
	rendered, err := render(c, "vedette", "spinnaker", values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// TestWrongValuesAreNamed changes each value's key by a letter, and gives it a wrong type: both are errors that name the key.
func TestWrongValuesAreNamed(t *testing.T) {
	c := load(t)
	for _, path := range leaves(c.Values, "") {
		name := path[strings.LastIndexByte(path, '.')+1:]
		if _, err := render(c, "vedette", "spinnaker", set(path+"x", "y")); err == nil || !strings.Contains(err.Error(), name+"x") {
			t.Errorf("with %sx: got %v, want an error that names it", path, err)
		}
		var wrong any = []any{map[string]any{"a": []any{}}}
		if _, isList := value(c.Values, path).([]any); isList {
			wrong = "text"
		}
		if _, err := render(c, "vedette", "spinnaker", set(path, wrong)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with a wrong type of %s: got %v, want an error that names it", path, err)
		}
	}
}

func value(values map[string]any, path string) any {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		return values[name]
	}
	return value(values[name].(map[string]any), rest)
}

// TestWrongConfigurationsAreNamed checks that keys of the programs' configurations are checked before anything is installed.
func TestWrongConfigurationsAreNamed(t *testing.T) {
	c := load(t)
	for path, want := range map[string]string{
		"agent.config.kubernetes.acounts":     "acounts",
		"agent.config.clouddriver.grcp":       "grcp",
		"agent.account.settings.kind":         "kind",
		"server.config.server.prt":            "prt",
		"server.config.upstream.baseURL":      "baseURL",
		"server.config.services.fiat.enabeld": "enabeld",
	} {
		if _, err := render(c, "vedette", "spinnaker", set(path, "x")); err == nil || !strings.Contains(err.Error(), "'"+want+"'") {
			t.Errorf("with %s: got %v, want an error that names it", path, err)
		}
	}
	for path, wrong := range map[string]any{
		"server.config.server.port": "abc", "agent.config.kubernetes.accounts": "x", "server.config.services.fiat.enabled": "perhaps",
	} {
		if _, err := render(c, "vedette", "spinnaker", set(path, wrong)); err == nil || !strings.Contains(err.Error(), path[strings.LastIndexByte(path, '.')+1:]) {
			t.Errorf("with %s %v: got %v, want an error that names it", path, wrong, err)
		}
	}
	for path, right := range map[string]any{
		"server.config.server.port": "${PORT:7002}", "server.config.agents.pulseSeconds": 5, "agent.config.kubernetes.accounts": []any{map[string]any{"name": "a"}},
	} {
		if _, err := render(c, "vedette", "spinnaker", set(path, right)); err != nil {
			t.Errorf("with %s %v: got %v, want it to be right", path, right, err)
		}
	}
}

// TestLongNames checks a release with the longest name that Helm allows.
func TestLongNames(t *testing.T) {
	c := load(t)
	rendered, err := render(c, strings.Repeat("r", 53), strings.Repeat("n", 63), set("agent.account.name", "prod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, rendered) {
		for key, label := range o.Metadata.Labels {
			if len(label) > 63 {
				t.Errorf("%s %s: label %s has %d characters", o.Kind, o.Metadata.Name, key, len(label))
			}
		}
		if len(o.Metadata.Name) > 253 || o.Kind == "Service" && len(o.Metadata.Name) > 63 {
			t.Errorf("%s %s: its name has %d characters", o.Kind, o.Metadata.Name, len(o.Metadata.Name))
		}
	}
}

// TestGeneratedCertificates checks that the certificates of server and agent prove each to the other, by the names under which agents
// reach the server, and for as long as the values say.
func TestGeneratedCertificates(t *testing.T) {
	c := load(t)
	values := map[string]any{"server": map[string]any{"tls": map[string]any{"days": 30}, "grpc": map[string]any{"hosts": []any{"vedette.example.com"}}}}
	secrets := map[string]map[string]string{}
	for _, o := range objects(t, mustRender(t, c, values)) {
		if o.Type == "kubernetes.io/tls" {
			secrets[o.Metadata.Name] = o.Data
		}
	}
	decode := func(secret, key string) []byte {
		decoded, err := base64.StdEncoding.DecodeString(secrets[secret][key])
		if err != nil || len(decoded) == 0 {
			t.Fatalf("%s of the Secret %s: %v", key, secret, err)
		}
		return decoded
	}
	for secret, usage := range map[string]x509.ExtKeyUsage{
		"spin-clouddriver-grpc-tls": x509.ExtKeyUsageServerAuth, "spin-armory-agent-tls": x509.ExtKeyUsageClientAuth} {
		pair, err := tls.X509KeyPair(decode(secret, "tls.crt"), decode(secret, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		// The authority is the one that the other side is given.
		other := "spin-armory-agent-tls"
		if usage == x509.ExtKeyUsageClientAuth {
			other = "spin-clouddriver-grpc-tls"
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(decode(other, "ca.crt"))
		options := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
		options.CurrentTime = time.Now().AddDate(0, 0, 31)
		if _, err := pair.Leaf.Verify(options); err == nil {
			t.Errorf("%s counts after 30 days, too", secret)
		}
		if usage == x509.ExtKeyUsageClientAuth {
			continue
		}
		for _, host := range []string{"spin-clouddriver-grpc", "spin-clouddriver-grpc.spinnaker.svc", "vedette.example.com"} {
			if err := pair.Leaf.VerifyHostname(host); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFormerValuesSayTheirNewNames checks that each value of the predecessor's chart is an error that says what to set instead.
func TestFormerValuesSayTheirNewNames(t *testing.T) {
	c := load(t)
	for _, path := range []string{"agentyml", "config.clouddriver.grpc", "env", "hub.auth.armory.clientId", "image.imagePullPolicy", "image.imagePullSecrets",
		"image.repository", "kubeconfigs.a.file", "podAnnotations", "podLabels", "podResources", "replicas"} {
		_, err := render(c, "vedette", "spinnaker", set(path, "x"))
		name := path
		if !strings.HasPrefix(path, "image.") {
			name, _, _ = strings.Cut(path, ".")
		}
		if want := name + " is a value of the chart agent-k8s-full: set "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: got %v, want it to say %q", path, err, want)
		}
	}
}
