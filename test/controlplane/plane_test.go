//go:build unix

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	configMaps  = "/api/v1/namespaces/default/configmaps"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
)

// testContext returns a context with a timeout for what takes a second or two unless the machine is
// busy.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStatus fails the test unless err is an error of the API server with the given HTTP status.
func wantStatus(t *testing.T, err error, code int) {
	t.Helper()
	var status *StatusError
	if !errors.As(err, &status) || status.Code != code {
		t.Fatalf("got %v, want status %d", err, code)
	}
}

func configMap(name string) Object {
	return Object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": Object{"name": name}, "data": Object{"key": "value"},
	}
}

// resourceVersion returns the resourceVersion of the object or list at a path.
func (p *Plane) resourceVersion(ctx context.Context, path string) (string, error) {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	err := p.Get(ctx, path, &object)
	return object.Metadata.ResourceVersion, err
}

func TestDeploymentGetsRunningPods(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 3})
	ctx := testContext(t)
	must(t, p.Create(ctx, deployments, deployment("web", 4)))
	must(t, p.Await(ctx, deployments+"/web", func(d Object) bool {
		return field(d, "status", "readyReplicas") == 4.0
	}))
	var pods struct {
		Items []struct {
			Spec   struct{ NodeName string }
			Status struct{ Phase, PodIP string }
		}
	}
	must(t, p.Get(ctx, "/api/v1/namespaces/default/pods", &pods))
	if len(pods.Items) != 4 {
		t.Fatalf("got %d pods, want 4", len(pods.Items))
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != "Running" || pod.Status.PodIP == "" || !strings.HasPrefix(pod.Spec.NodeName, "node-") {
			t.Errorf("a pod is not running: %+v", pod)
		}
	}
	must(t, p.Delete(ctx, deployments+"/web"))
	must(t, p.Await(ctx, "/api/v1/namespaces/default/pods", func(list Object) bool {
		return len(list["items"].([]any)) == 0
	}))
}

func TestPlanesAreIsolated(t *testing.T) {
	t.Parallel()
	a, b := New(t, Options{}), New(t, Options{})
	ctx := testContext(t)
	must(t, a.Create(ctx, configMaps, configMap("only-in-a")))
	must(t, a.Get(ctx, configMaps+"/only-in-a", nil))
	wantStatus(t, b.Get(ctx, configMaps+"/only-in-a", nil), http.StatusNotFound)
	otherClient, err := b.UserClient(adminName, adminGroup)
	must(t, err)
	if err := send(ctx, otherClient, a.URL, apiRequest{method: http.MethodGet, path: configMaps}, nil); err == nil {
		t.Error("a client trusts the certificate of another plane")
	}
}

func TestAPIServerRestartKeepsData(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.Create(ctx, configMaps, configMap("kept")))
	for _, end := range []func() error{
		func() error { p.KillAPIServer(); return nil },
		func() error { return p.StopAPIServer(ctx) },
	} {
		watch := p.watch(ctx, t, "")
		must(t, end())
		if _, err := io.Copy(io.Discard, watch); ctx.Err() != nil {
			t.Fatalf("a watch outlived its API server (%v)", err)
		}
		if err := p.Get(ctx, configMaps+"/kept", nil); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("connecting to a killed API server: got %v, want refused", err)
		}
		must(t, p.StartAPIServer(ctx))
		must(t, p.Get(ctx, configMaps+"/kept", nil))
	}
}

func TestControllersSurviveAPIServerRestart(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 1})
	ctx := testContext(t)
	must(t, p.Create(ctx, deployments, deployment("before", 1)))
	must(t, p.Expire(ctx))
	must(t, p.Create(ctx, deployments, deployment("after", 2)))
	must(t, p.Await(ctx, deployments+"/after", func(d Object) bool {
		return field(d, "status", "readyReplicas") == 2.0
	}))
}

func TestKilledControllersDoNotAct(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 1})
	ctx := testContext(t)
	p.KillControllers()
	if running := len(p.PIDs()); running != 2 {
		t.Errorf("got %d processes, want etcd and the API server", running)
	}
	must(t, p.Create(ctx, deployments, deployment("web", 1)))
	var web Object
	must(t, p.Get(ctx, deployments+"/web", &web))
	if status := field(web, "status").(Object); len(status) > 0 {
		t.Errorf("a controller has acted on the Deployment: %v", status)
	}
	must(t, p.StartControllers(ctx))
	must(t, p.Await(ctx, deployments+"/web", func(d Object) bool {
		return field(d, "status", "readyReplicas") == 1.0
	}))
}

func TestEtcdRestartKeepsData(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.Create(ctx, configMaps, configMap("kept")))
	p.KillEtcd()
	must(t, p.StartEtcd(ctx))
	must(t, p.waitUntil(ctx, "the API server has found etcd again", func(ctx context.Context) error {
		return p.Apply(ctx, configMaps+"/later", configMap("later"))
	}))
	must(t, p.Get(ctx, configMaps+"/kept", nil))
}

func TestRestoreGoesBackToTheBackup(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.Create(ctx, configMaps, configMap("before")))
	backup := filepath.Join(t.TempDir(), "etcd")
	must(t, p.Backup(ctx, backup))
	must(t, p.Create(ctx, configMaps, configMap("after")))
	after, err := p.resourceVersion(ctx, configMaps+"/after")
	must(t, err)
	must(t, p.Restore(ctx, backup))
	must(t, p.Get(ctx, configMaps+"/before", nil))
	if err := p.Get(ctx, configMaps+"/after", nil); err == nil {
		t.Error("got an object that was created after the backup")
	}
	must(t, p.Create(ctx, configMaps, configMap("other")))
	other, err := p.resourceVersion(ctx, configMaps+"/other")
	must(t, err)
	if x, y := atoi(t, other), atoi(t, after); x > y+100 {
		t.Errorf("got resourceVersion %d, want one from before %d", x, y)
	}
}

// TestStoredChangesAreWatched watches etcd while the API server comes and goes.
func TestStoredChangesAreWatched(t *testing.T) {
	t.Parallel()
	p := New(t, Options{APIServerFlags: []string{"--storage-media-type=application/json"}})
	ctx := testContext(t)
	first, err := p.Mark(ctx, "/registry/configmaps/default/~first")
	must(t, err)
	must(t, p.Create(ctx, configMaps, configMap("a")))
	created, err := p.resourceVersion(ctx, configMaps+"/a")
	must(t, err)
	p.KillAPIServer()
	must(t, p.StartAPIServer(ctx))
	must(t, p.Delete(ctx, configMaps+"/a"))
	last, err := p.Mark(ctx, "/registry/configmaps/default/~last")
	must(t, err)
	var got []StoredChange
	errEnd := errors.New("the last change")
	err = p.WatchStored(ctx, "/registry/configmaps/default/", first+1, func(c StoredChange) error {
		got = append(got, c)
		if c.Revision >= last {
			return errEnd
		}
		return nil
	})
	if !errors.Is(err, errEnd) || len(got) != 3 {
		t.Fatalf("got %d changes, %v, want 3", len(got), err)
	}
	var o struct{ Kind string }
	if c := got[0]; c.Key != "/registry/configmaps/default/a" || fmt.Sprint(c.Revision) != created || json.Unmarshal(c.Value, &o) != nil || o.Kind != "ConfigMap" || c.Previous != nil {
		t.Errorf("created at %s: got %+v", created, c)
	}
	if c := got[1]; c.Key != got[0].Key || c.Value != nil || string(c.Previous) != string(got[0].Value) || c.Revision <= got[0].Revision {
		t.Errorf("deleted: got %+v", c)
	}
	if c := got[2]; c.Revision != last || c.Value == nil {
		t.Errorf("marked: got %+v", c)
	}
	p.KillEtcd()
	if err := p.WatchStored(ctx, "/registry/", first, nil); err == nil {
		t.Error("got no error without etcd")
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

func TestPausedAPIServerAnswersAfterResume(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.PauseAPIServer())
	if err := probe(ctx, p.client, p.URL+"/readyz"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused API server: got %v, want a timeout", err)
	}
	must(t, p.ResumeAPIServer())
	must(t, p.Get(ctx, configMaps, nil))
}

func TestWatchFromExpiredVersionIsGone(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.Create(ctx, configMaps, configMap("before")))
	old, err := p.resourceVersion(ctx, configMaps+"/before")
	must(t, err)
	must(t, p.Create(ctx, configMaps, configMap("after")))

	if event := p.firstEvent(ctx, t, old); event["type"] != "ADDED" {
		t.Fatalf("watch from %s: got first event %v, want the object that was added after it", old, event)
	}
	must(t, p.Expire(ctx))
	event := p.firstEvent(ctx, t, old)
	if event["type"] != "ERROR" || field(event, "object", "code") != 410.0 {
		t.Errorf("watch from expired %s: got first event %v, want ERROR 410", old, event)
	}
	now, err := p.resourceVersion(ctx, configMaps)
	must(t, err)
	must(t, p.Create(ctx, configMaps, configMap("later")))
	if event := p.firstEvent(ctx, t, now); field(event, "object", "metadata", "name") != "later" {
		t.Errorf("watch from %s after Expire: got first event %v", now, event)
	}
}

func TestCompactedRevisionIsGoneFromEtcd(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	must(t, p.Create(ctx, configMaps, configMap("a")))
	old, err := p.revision(ctx)
	must(t, err)
	must(t, p.Create(ctx, configMaps, configMap("b")))
	read := Object{"key": encodeKey("a"), "revision": fmt.Sprint(old)}
	must(t, p.callEtcd(ctx, "/v3/kv/range", read, nil))
	must(t, p.Compact(ctx))
	err = p.callEtcd(ctx, "/v3/kv/range", read, nil)
	if err == nil || !strings.Contains(err.Error(), "has been compacted") {
		t.Errorf("reading at a compacted revision: got %v", err)
	}
}

func TestUserHasRBACPermissions(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	ctx := testContext(t)
	jane, err := p.UserClient("jane", "team-a")
	must(t, err)
	list := apiRequest{method: http.MethodGet, path: configMaps}
	wantStatus(t, send(ctx, jane, p.URL, list, nil), http.StatusForbidden)
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
	must(t, p.Create(ctx, rbac+"/roles", Object{
		"metadata": Object{"name": "reader"},
		"rules":    []Object{{"apiGroups": []string{""}, "resources": []string{"configmaps"}, "verbs": []string{"list"}}},
	}))
	must(t, p.Create(ctx, rbac+"/rolebindings", Object{
		"metadata": Object{"name": "team-a"},
		"roleRef":  Object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []Object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "team-a"}},
	}))
	must(t, p.waitUntil(ctx, "the binding takes effect", func(ctx context.Context) error {
		return send(ctx, jane, p.URL, list, nil)
	}))
	wantStatus(t, send(ctx, jane, p.URL, apiRequest{http.MethodPost, configMaps, "application/json", configMap("x")}, nil), http.StatusForbidden)
}

func TestKubeconfigsWorkForKubectl(t *testing.T) {
	t.Parallel()
	p := New(t, Options{Controllers: true, Nodes: 1})
	ctx := testContext(t)
	user, err := p.UserKubeconfig("system:node:x", "team a")
	must(t, err)
	account, err := p.ServiceAccountKubeconfig(ctx, "default", "default")
	must(t, err)
	for kubeconfig, wantUser := range map[string]string{
		p.Kubeconfig(): "admin",
		user:           "system:node:x",
		account:        "system:serviceaccount:default:default",
	} {
		out, err := p.KubectlAs(ctx, kubeconfig, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		must(t, err)
		if string(out) != wantUser {
			t.Errorf("%s: got user %s, want %s", filepath.Base(kubeconfig), out, wantUser)
		}
	}
	out, err := p.Kubectl(ctx, "get", "nodes", "-o", "name")
	must(t, err)
	if string(out) != "node/node-0\n" {
		t.Errorf("kubectl get nodes: got %q", out)
	}
}

func TestAdminTokenIsAdmin(t *testing.T) {
	t.Parallel()
	p := New(t, Options{})
	request, err := http.NewRequestWithContext(testContext(t), http.MethodGet, p.URL+"/api/v1/secrets", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+p.AdminToken)
	client := &http.Client{Transport: p.pki.transport()}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("listing secrets with the token: got %s", response.Status)
	}
}

func TestStartReportsBadFlagAndCleansUp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "p")
	_, err := Start(testContext(t), Options{Dir: dir, APIServerFlags: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got error %v, want kube-apiserver's message", err)
	}
	wantCleanedUp(t, dir)
}

// watch opens a watch of ConfigMaps from a resourceVersion. It is closed when the test ends.
func (p *Plane) watch(ctx context.Context, t *testing.T, version string) io.Reader {
	t.Helper()
	url := fmt.Sprintf("%s%s?watch=1&resourceVersion=%s", p.URL, configMaps, version)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	response, err := p.Client().Do(request)
	must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("watch from %q: %s", version, response.Status)
	}
	return response.Body
}

// firstEvent returns the first event of a watch from a resourceVersion.
func (p *Plane) firstEvent(ctx context.Context, t *testing.T, version string) (event Object) {
	t.Helper()
	must(t, json.NewDecoder(p.watch(ctx, t, version)).Decode(&event))
	return event
}

// processesOf returns the command lines of processes that contain a directory.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range files {
		line, err := os.ReadFile(file) // fails if the process has just ended
		if err == nil && bytes.Contains(line, []byte(dir)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func wantCleanedUp(t *testing.T, dir string) {
	t.Helper()
	if found := processesOf(t, dir); len(found) > 0 {
		t.Errorf("processes are left: %q", found)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s is left (%v)", dir, err)
	}
}

// field returns a nested field of an object, or nil if a step is missing.
func field(object any, path ...string) any {
	for _, name := range path {
		o, _ := object.(Object)
		object = o[name]
	}
	return object
}
