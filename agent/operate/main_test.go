//go:build linux

package operate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/test/controlplane"
)

type object = controlplane.Object

// plane is the control plane of all tests here. Each has a namespace of its own.
// The first that needs it starts it, so that those without, and the workers of
// fuzzing, do not.
var (
	plane      *controlplane.Plane
	startPlane = sync.OnceValue(func() (err error) {
		plane, err = controlplane.Start(context.Background(), controlplane.Options{Controllers: true, Log: os.Stderr})
		return err
	})
)

func TestMain(m *testing.M) {
	if manifest := os.Getenv(childManifest); manifest != "" {
		runVersionChild(manifest, os.Getenv(childKubeconfig))
		return
	}
	code := m.Run()
	if plane != nil {
		if err := errors.Join(plane.Err(), plane.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// testbed is a namespace and an operator for it.
type testbed struct {
	testing.TB
	namespace string
	op        *operate.Operator
}

func newTestbed(t testing.TB, cfg operate.Config) *testbed {
	t.Helper()
	must(t, startPlane())
	c, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	op, err := operate.New(c, cfg)
	must(t, err)
	b := &testbed{TB: t, namespace: "t-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ",", "").Replace(t.Name())), op: op}
	b.namespace = strings.Trim(b.namespace[:min(len(b.namespace), 60)], "-")
	must(t, plane.Create(t.Context(), "/api/v1/namespaces", object{"metadata": object{"name": b.namespace}}))
	return b
}

// execute executes an operation, within a minute.
func (b *testbed) execute(args vedette.Args) vedette.Outcome {
	b.Helper()
	out := b.op.Execute(b.Context(), vedette.Operation{ID: "01", Args: args, Deadline: time.Now().Add(time.Minute)})
	return readMore(out)
}

// readMore returns an outcome with all its objects, as the uplink sends it.
func readMore(out vedette.Outcome) vedette.Outcome {
	if out.More == nil {
		return out
	}
	defer out.More.Close()
	for {
		raw, err := out.More.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			return out.More.Failure(err)
		}
		out.Objects = append(out.Objects, bytes.Clone(raw))
	}
}

// executeBriefly executes an operation that waits until its deadline, within a second. If the outcome
// is not as expected, the machine may have been too slow to come so far, so it tries again with more
// time.
func (b *testbed) executeBriefly(args vedette.Args, isExpected func(vedette.Outcome) bool) vedette.Outcome {
	b.Helper()
	for limit := time.Second; ; limit *= 4 {
		out := b.op.Execute(b.Context(), vedette.Operation{Args: args, Deadline: time.Now().Add(limit)})
		if isExpected(out) || limit > time.Minute {
			return out
		}
	}
}

// mustExecute executes an operation that must succeed.
func (b *testbed) mustExecute(args vedette.Args) vedette.Outcome {
	b.Helper()
	out := b.execute(args)
	if out.State != vedette.Done {
		b.Fatalf("%s: got %s %d %s: %s", args.Verb(), out.State, out.Status, out.Reason, out.Message)
	}
	return out
}

// wantFailure executes an operation that must fail with a status and a message that contains words.
func (b *testbed) wantFailure(args vedette.Args, status int, words ...string) vedette.Outcome {
	b.Helper()
	out := b.execute(args)
	if out.State != vedette.Failed || out.Status != status {
		b.Errorf("%s: got %s %d %s: %s, want failed %d", args.Verb(), out.State, out.Status, out.Reason, out.Message, status)
	}
	for _, w := range words {
		if !strings.Contains(out.Message, w) {
			b.Errorf("%s: got %q, want it to contain %q", args.Verb(), out.Message, w)
		}
	}
	return out
}

func (b *testbed) apply(strategy vedette.Strategy, o object) vedette.Outcome {
	b.Helper()
	return b.mustExecute(vedette.ApplyArgs{Manifest: encode(b, o), Namespace: b.namespace, Strategy: strategy})
}

func (b *testbed) target(kind, name string) vedette.Target {
	return vedette.Target{Kind: kind, Namespace: b.namespace, Name: name}
}

// kubectl runs kubectl in the namespace. It must succeed.
func (b *testbed) kubectl(args ...string) string {
	b.Helper()
	out, err := plane.Kubectl(b.Context(), append([]string{"-n", b.namespace}, args...)...)
	must(b, err)
	return string(out)
}

// kubectlApply applies objects by kubectl, with further flags.
func (b *testbed) kubectlApply(objects []object, flags ...string) {
	b.Helper()
	if len(objects) == 0 {
		return
	}
	items := make([]any, len(objects))
	for i, o := range objects {
		items[i] = o
	}
	file := filepath.Join(b.TempDir(), "m.json")
	must(b, os.WriteFile(file, encode(b, object{"apiVersion": "v1", "kind": "List", "items": items}), 0o600))
	b.kubectl(append([]string{"apply", "-f", file}, flags...)...)
}

// path returns the path of a namespaced object of a core or apps kind.
func (b *testbed) path(group, plural, name string) string {
	return strings.TrimSuffix(group+"/namespaces/"+b.namespace+"/"+plural+"/"+name, "/")
}

func (b *testbed) live(group, plural, name string) object {
	b.Helper()
	var o object
	must(b, plane.Get(b.Context(), b.path(group, plural, name), &o))
	return o
}

const (
	core = "/api/v1"
	apps = "/apis/apps/v1"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return raw
}

// decode reads JSON into a tree.
func decode(t testing.TB, raw []byte) object {
	t.Helper()
	var o object
	must(t, json.Unmarshal(raw, &o))
	return o
}

// dig follows members by name and elements by index.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				return nil
			}
			v = list[s]
		}
	}
	return v
}
