//go:build linux

package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/test/controlplane"
)

// world is the API server of all batches, and an operator for it.
type world struct {
	plane    *controlplane.Plane
	operator *operate.Operator
	batches  atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Log: os.Stderr})
	require(t, err)
	t.Cleanup(func() { require(t, errors.Join(plane.Err(), plane.Stop())) })
	c, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	require(t, err)
	t.Cleanup(c.Close)
	operator, err := operate.New(c, operate.Config{})
	require(t, err)
	w := &world{plane: plane, operator: operator}
	for _, k := range kinds {
		if k.custom {
			w.define(t, k)
		}
	}
	return w
}

func (w *world) define(t *testing.T, k *kind) {
	t.Helper()
	spec := looseSpec
	if k.name == "Widget" {
		spec = widgetSpec
	}
	require(t, w.plane.Create(t.Context(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(k, spec)))
	require(t, w.plane.Await(t.Context(), k.path+"/"+k.plural, func(object) bool { return true }))
	require(t, w.plane.Await(t.Context(), "/openapi/v3"+k.path, func(o object) bool { // because kubectl reads it
		raw, err := json.Marshal(o)
		return err == nil && bytes.Contains(raw, []byte(`"kind":"`+k.name+`"`))
	}))
}

func require(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// side is one of the two namespaces of a batch.
type side struct {
	*world
	namespace string
	byKubectl bool
	dir       string
}

// newSides creates the namespaces of a batch.
func (w *world) newSides(t *testing.T) [2]*side {
	t.Helper()
	n := w.batches.Add(1)
	var sides [2]*side
	for i, name := range []string{"twin-of-kubectl", "twin-of-vedette"} {
		s := &side{world: w, namespace: fmt.Sprintf("%s-%d", name, n), byKubectl: i == 0, dir: t.TempDir()}
		require(t, w.plane.Create(t.Context(), "/api/v1/namespaces", object{"metadata": object{"name": s.namespace}}))
		require(t, w.plane.Create(t.Context(), "/api/v1/namespaces/"+s.namespace+"/serviceaccounts", object{"metadata": object{"name": "default"}}))
		sides[i] = s
	}
	return sides
}

// objectName returns the name of a sequence's object.
func (s *side) objectName(k *kind, n int) string {
	if k.cluster {
		return fmt.Sprintf("s%d-%s", n, s.namespace)
	}
	return fmt.Sprintf("s%d", n)
}

func (s *side) path(k *kind, n int) string {
	if k.cluster {
		return path.Join(k.path, k.plural, s.objectName(k, n))
	}
	return path.Join(k.path, "namespaces", s.namespace, k.plural, s.objectName(k, n))
}

// withName returns a copy of a manifest with name and namespace for the side.
func (s *side) withName(k *kind, n int, manifest object) object {
	m := maps.Clone(manifest)
	meta := maps.Clone(m["metadata"].(object))
	meta["name"] = s.objectName(k, n)
	m["metadata"] = meta
	return m
}

// task is one step of one sequence of a batch.
type task struct {
	n    int
	kind *kind
	step step
}

// results holds the errors of tasks by number, nil for success.
type results struct {
	mu     sync.Mutex
	errors map[int]error
}

func (r *results) record(n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[n] = err
}

// runTasks runs the given steps.
func (s *side) runTasks(ctx context.Context, tasks []task) (map[int]error, error) {
	r := &results{errors: map[int]error{}}
	applies := map[applyMode][]task{}
	var group errgroup.Group
	group.SetLimit(6)
	for _, t := range tasks {
		if t.step.action == "apply" && (s.byKubectl || t.step.byKubectl) {
			applies[t.step.mode] = append(applies[t.step.mode], t)
			continue
		}
		group.Go(func() error { r.record(t.n, s.runTask(ctx, t)); return nil })
	}
	for mode, tasks := range applies {
		group.Go(func() error { return s.kubectlApply(ctx, mode, tasks, r) })
	}
	return r.errors, group.Wait()
}

func (s *side) runTask(ctx context.Context, t task) error {
	switch t.step.action {
	case "apply":
		return s.operate(ctx, vedette.ApplyArgs{Manifest: encode(s.withName(t.kind, t.n, t.step.body)), Namespace: s.namespace, Strategy: strategies[t.step.mode]})
	case "replace":
		if s.byKubectl {
			return s.kubectlReplace(ctx, t)
		}
		return s.operate(ctx, vedette.ApplyArgs{Manifest: encode(s.withName(t.kind, t.n, t.step.body)), Namespace: s.namespace, Strategy: vedette.StrategyReplace})
	case "scale":
		if s.byKubectl {
			_, err := s.plane.Kubectl(ctx, "-n", s.namespace, "scale", t.kind.plural, s.objectName(t.kind, t.n), fmt.Sprint("--replicas=", t.step.replicas))
			return err
		}
		return s.operate(ctx, vedette.ScaleArgs{Target: vedette.Target{Kind: t.kind.name, APIVersion: t.kind.apiVersion, Namespace: s.namespace, Name: s.objectName(t.kind, t.n)}, Replicas: int64(t.step.replicas)})
	case "patch":
		patchType := "application/strategic-merge-patch+json"
		if t.kind.custom {
			patchType = "application/merge-patch+json"
		}
		return s.request(ctx, http.MethodPatch, s.path(t.kind, t.n)+"?fieldManager=injector", patchType, encode(t.step.body))
	case "foreign":
		return s.request(ctx, http.MethodPatch, s.path(t.kind, t.n)+"?fieldManager=foreign&force=true", "application/apply-patch+yaml", encode(s.withName(t.kind, t.n, t.step.body)))
	case "delete":
		return s.request(ctx, http.MethodDelete, s.path(t.kind, t.n), "application/json", []byte(`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`))
	}
	panic("unknown action: " + t.step.action)
}

var strategies = map[applyMode]vedette.Strategy{clientSide: vedette.StrategyClientSide, serverSide: vedette.StrategyServerSide, forced: vedette.StrategyForceConflicts}

func (s *side) operate(ctx context.Context, args vedette.Args) error {
	out := s.operator.Execute(ctx, vedette.Operation{ID: "01", Args: args, Deadline: time.Now().Add(time.Minute)})
	if out.State == vedette.Done {
		return nil
	}
	return fmt.Errorf("%s %d %s: %s", out.State, out.Status, out.Reason, out.Message)
}

// kubectlApply applies the manifests of tasks with one process, which prints the names of those
// that succeed.
func (s *side) kubectlApply(ctx context.Context, w applyMode, tasks []task, r *results) error {
	var manifests bytes.Buffer
	for _, t := range tasks {
		manifests.Write(encode(s.withName(t.kind, t.n, t.step.body)))
		manifests.WriteByte('\n')
	}
	file := filepath.Join(s.dir, strings.ReplaceAll(string(w), ", ", "-")+".json")
	if err := os.WriteFile(file, manifests.Bytes(), 0o600); err != nil {
		return err
	}
	args := []string{"-n", s.namespace, "apply", "-o", "name", "-f", file}
	switch w {
	case serverSide:
		args = append(args, "--server-side")
	case forced:
		args = append(args, "--server-side", "--force-conflicts")
	}
	printed, err := s.plane.Kubectl(ctx, args...)
	done := map[string]bool{}
	for line := range strings.Lines(string(printed)) {
		done[path.Base(strings.TrimSpace(line))] = true
	}
	for _, t := range tasks {
		if done[s.objectName(t.kind, t.n)] {
			r.record(t.n, nil)
			continue
		}
		if err == nil {
			return fmt.Errorf("kubectl printed nothing about %s: %s", s.objectName(t.kind, t.n), printed)
		}
		r.record(t.n, errorFor(s.objectName(t.kind, t.n), err))
	}
	return nil
}

func (s *side) kubectlReplace(ctx context.Context, t task) error {
	file := filepath.Join(s.dir, fmt.Sprintf("replace-%d.json", t.n))
	if err := os.WriteFile(file, encode(s.withName(t.kind, t.n, t.step.body)), 0o600); err != nil {
		return err
	}
	_, err := s.plane.Kubectl(ctx, "-n", s.namespace, "replace", "-f", file)
	return err
}

// errorFor returns kubectl's message about one of many objects.
func errorFor(name string, err error) error {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if strings.Contains(line, `"`+name+`"`) || strings.Contains(line, "Name: \""+name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if lines == nil {
		return err
	}
	return errors.New("kubectl: " + strings.Join(lines, " "))
}

// request sends a request as another client.
func (s *side) request(ctx context.Context, method, fieldPath, contentType string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, s.plane.URL+fieldPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := s.plane.Client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, fieldPath, resp.StatusCode, answer)
	}
	return err
}

// live reads the object of a sequence, or returns nil if it does not exist.
func (s *side) live(ctx context.Context, k *kind, n int) (object, error) {
	var o object
	err := s.plane.Get(ctx, s.path(k, n), &o)
	if refused, ok := errors.AsType[*controlplane.StatusError](err); ok && refused.Code == http.StatusNotFound {
		return nil, nil
	}
	return o, err
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // cannot happen: it contains only values that can be encoded
		panic(err)
	}
	return raw
}
