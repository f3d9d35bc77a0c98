//go:build linux

package discover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/logbuffer"
)

type object = controlplane.Object

const (
	slicesPath    = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"
	endpointsPath = "/api/v1/namespaces/%s/endpoints"
)

func create(t *testing.T, plane *controlplane.Plane, path string, body object) {
	t.Helper()
	if err := plane.Create(t.Context(), path, body); err != nil {
		t.Fatal(err)
	}
}

func newNamespace(t *testing.T, plane *controlplane.Plane, name string) {
	t.Helper()
	create(t, plane, "/api/v1/namespaces", object{"metadata": object{"name": name}})
	create(t, plane, "/api/v1/namespaces/"+name+"/serviceaccounts", object{"metadata": object{"name": "server"}})
}

// serviceAccount writes what Kubernetes mounts into pods.
func serviceAccount(t *testing.T, plane *controlplane.Plane, namespace string) discover.ServiceAccount {
	t.Helper()
	token, err := plane.ServiceAccountToken(t.Context(), namespace, "server")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"token": token, "ca.crt": string(ca), "namespace": namespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(plane.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	return discover.ServiceAccount{Host: host, Port: port, Dir: dir}
}

// allow grants the verbs get, list and watch on a resource.
func allow(t *testing.T, plane *controlplane.Plane, namespace, group, resource string) {
	t.Helper()
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	create(t, plane, path+"/roles", object{"metadata": object{"name": resource},
		"rules": []object{{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": []string{"get", "list", "watch"}}}})
	create(t, plane, path+"/rolebindings", object{"metadata": object{"name": resource},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": resource},
		"subjects": []object{{"kind": "ServiceAccount", "name": "server", "namespace": namespace}}})
}

// pod is an address of a Service.
type pod struct {
	name, ip string
	isReady  bool
}

func slice(name, service, port string, pods ...pod) object {
	all := []object{}
	for _, p := range pods {
		all = append(all, object{"addresses": []string{p.ip}, "conditions": object{"ready": p.isReady},
			"targetRef": object{"kind": "Pod", "name": p.name}})
	}
	return object{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": object{"name": name, "labels": object{"kubernetes.io/service-name": service}},
		"addressType": "IPv4", "endpoints": all, "ports": []object{{"name": port, "port": 7002, "protocol": "TCP"}}}
}

func endpointsOf(service, port string, pods ...pod) object {
	ready, notReady := []object{}, []object{}
	for _, p := range pods {
		address := object{"ip": p.ip}
		if p.name != "" {
			address["targetRef"] = object{"kind": "Pod", "name": p.name}
		}
		if p.isReady {
			ready = append(ready, address)
		} else {
			notReady = append(notReady, address)
		}
	}
	return object{"apiVersion": "v1", "kind": "Endpoints", "metadata": object{"name": service},
		"subsets": []object{{"addresses": ready, "notReadyAddresses": notReady, "ports": []object{{"name": port, "port": 7002}}}}}
}

func apply(t *testing.T, plane *controlplane.Plane, path, name string, body object) {
	t.Helper()
	if err := plane.Apply(t.Context(), path+"/"+name, body); err != nil {
		t.Fatal(err)
	}
}

// source is a source that runs until the test ends.
type source struct {
	discover.Source
	log  *logbuffer.Buffer
	done chan error
	stop context.CancelFunc
}

func run(t *testing.T, cfg discover.KubernetesConfig) *source {
	t.Helper()
	log := &logbuffer.Buffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	s := runSource(t, discover.NewKubernetes(cfg))
	s.log = log
	return s
}

func runSource(t *testing.T, of discover.Source) *source {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &source{of, &logbuffer.Buffer{}, make(chan error, 1), cancel}
	go func() { s.done <- s.Run(ctx); close(s.done) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.done; err != nil {
			t.Errorf("the source ended with %v", err)
		}
	})
	return s
}

// describe returns a list as "id url ready|unready".
func describe(servers []discover.Server) string {
	if servers == nil {
		return "unknown"
	}
	lines := make([]string, 0, len(servers))
	for _, s := range servers {
		lines = append(lines, fmt.Sprint(s.ID, " ", s.BaseURL, " ", map[bool]string{true: "ready", false: "unready"}[s.Ready]))
	}
	return strings.Join(lines, ", ")
}

// expect waits until the list is as wanted.
func (s *source) expect(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		changed := s.Changed()
		got := describe(s.Servers())
		if got == want {
			return
		}
		select {
		case <-changed:
		case err := <-s.done:
			t.Fatalf("the source ended with %v", err)
		case <-deadline:
			t.Fatalf("got %q, want %q\n%s", got, want, s.log)
		}
	}
}

const (
	aReady   = "a http://10.0.0.1:7002 ready"
	aUnready = "a http://10.0.0.1:7002 unready"
	bReady   = "b http://10.0.0.2:7002 ready"
)

// TestServersOfACluster follows changes of both kinds in a real cluster, over watches that break, expire and lose their rights.
func TestServersOfACluster(t *testing.T) {
	plane := controlplane.New(t, controlplane.Options{})
	base := discover.KubernetesConfig{ServicePrefix: "spin-clouddriver", PortName: "http"}
	base = base.WithTiming(discover.Timing{Pause: 50 * time.Millisecond, Review: 200 * time.Millisecond, Empty: 20 * time.Second})

	t.Run("EndpointSlices", func(t *testing.T) {
		newNamespace(t, plane, "slices")
		allow(t, plane, "slices", "discovery.k8s.io", "endpointslices")
		path := fmt.Sprintf(slicesPath, "slices")
		cfg := base
		cfg.ServiceAccount = serviceAccount(t, plane, "slices")
		apply(t, plane, path, "other", slice("other", "other-clouddriver", "http", pod{"x", "10.0.9.9", true}))
		apply(t, plane, path, "grpc", slice("grpc", "spin-clouddriver-grpc", "grpc", pod{"y", "10.0.9.8", true}))
		apply(t, plane, path, "one", slice("one", "spin-clouddriver", "http", pod{"a", "10.0.0.1", false}))
		s := run(t, cfg)
		s.expect(t, aUnready)
		apply(t, plane, path, "one", slice("one", "spin-clouddriver", "http", pod{"a", "10.0.0.1", true}))
		s.expect(t, aReady)
		apply(t, plane, path, "two", slice("two", "spin-clouddriver-caching", "http", pod{"b", "10.0.0.2", true}, pod{"a", "10.0.0.1", true}))
		s.expect(t, aReady+", "+bReady)
		if err := plane.Delete(t.Context(), path+"/two"); err != nil {
			t.Fatal(err)
		}
		s.expect(t, aReady)
		known := s.Servers()[0].LastUpdated

		plane.KillAPIServer() // the watch breaks; the list stays, with its age
		if got := s.Servers(); describe(got) != aReady || !got[0].LastUpdated.Equal(known) {
			t.Errorf("got %v without an API server, want the last list with its age of %v", got, known)
		}
		if err := plane.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		apply(t, plane, path, "two", slice("two", "spin-clouddriver-caching", "http", pod{"b", "10.0.0.2", true}))
		s.expect(t, aReady+", "+bReady)
		if !s.Servers()[0].LastUpdated.After(known) {
			t.Error("the list is as old as before the API server came back")
		}
		if err := plane.Expire(t.Context()); err != nil { // 410 Gone
			t.Fatal(err)
		}
		if err := plane.Delete(t.Context(), path+"/one"); err != nil {
			t.Fatal(err)
		}
		s.expect(t, bReady)
	})

	t.Run("Endpoints only", func(t *testing.T) {
		newNamespace(t, plane, "legacy")
		allow(t, plane, "legacy", "", "endpoints")
		path := fmt.Sprintf(endpointsPath, "legacy")
		cfg := base
		cfg.ServiceAccount, cfg.IsTLS, cfg.DomainName = serviceAccount(t, plane, "legacy"), true, "cluster.local"
		apply(t, plane, path, "spin-clouddriver", endpointsOf("spin-clouddriver", "http", pod{"a", "10.0.0.1", false}, pod{"", "10.0.0.7", true}))
		apply(t, plane, path, "other", endpointsOf("other", "http", pod{"x", "10.0.9.9", true}))
		s := run(t, cfg)
		const last = "10.0.0.7 https://10-0-0-7.legacy.pod.cluster.local:7002 ready"
		s.expect(t, last+", a https://10-0-0-1.legacy.pod.cluster.local:7002 unready")
		apply(t, plane, path, "spin-clouddriver", endpointsOf("spin-clouddriver", "http", pod{"a", "10.0.0.1", true}, pod{"", "10.0.0.7", true}))
		s.expect(t, last+", a https://10-0-0-1.legacy.pod.cluster.local:7002 ready")
		if err := plane.Delete(t.Context(), "/apis/rbac.authorization.k8s.io/v1/namespaces/legacy/rolebindings/endpoints"); err != nil {
			t.Fatal(err)
		}
		plane.KillAPIServer()
		if err := plane.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitLog(t, s.log, "may not list and watch")
		s.expect(t, last+", a https://10-0-0-1.legacy.pod.cluster.local:7002 ready")
	})

	t.Run("missing rights", func(t *testing.T) {
		newNamespace(t, plane, "denied")
		path := fmt.Sprintf(slicesPath, "denied")
		apply(t, plane, path, "one", slice("one", "spin-clouddriver", "http", pod{"a", "10.0.0.1", true}))
		cfg := base
		cfg.ServiceAccount = serviceAccount(t, plane, "denied")
		err := discover.NewKubernetes(cfg).Run(t.Context())
		if vedette.KindOf(err) != vedette.Denied {
			t.Fatalf("got %v, want that rights are missing", err)
		}
		if _, probeErr := cfg.Probe(t.Context()); vedette.KindOf(probeErr) != vedette.Denied {
			t.Errorf("got %v of a probe, want that rights are missing", probeErr)
		}
		cfg.KeepRunning = true
		cfg.Fallback = func() []discover.Server {
			return []discover.Server{{ID: "row", BaseURL: "http://10.0.0.3:7002", Ready: true}}
		}
		s := run(t, cfg)
		s.expect(t, "row http://10.0.0.3:7002 ready")
		awaitLog(t, s.log, "using the database")

		_, yaml, _ := strings.Cut(err.Error(), "\n\n")
		file := filepath.Join(t.TempDir(), "rights.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := plane.Kubectl(t.Context(), "apply", "-f", file); err != nil { // as its reader would
			t.Fatal(err)
		}
		s.expect(t, aReady)
		if found, err := cfg.Probe(t.Context()); err != nil || found != "1 servers in the endpointslices of namespace denied" {
			t.Errorf("got %q, %v of a probe", found, err)
		}
	})

	t.Run("strangers", func(t *testing.T) {
		newNamespace(t, plane, "strangers")
		path := fmt.Sprintf(slicesPath, "strangers")
		apply(t, plane, path, "one", slice("one", "spin-clouddriver", "http", pod{"a", "10.0.0.1", true}, pod{"named-otherwise", "10.0.0.2", true}))
		apply(t, plane, path, "upstream", slice("upstream", "spin-clouddriver-upstream", "http", pod{"x", "10.0.0.9", true}))
		cfg := base
		cfg.KubeconfigFile, cfg.Namespace = plane.Kubeconfig(), "strangers"
		var table atomic.Pointer[[]discover.Server]
		s := runSource(t, discover.New(discover.Config{Mode: discover.ModeKubernetes, Kubernetes: cfg}, discover.Local{Table: func() []discover.Server {
			if rows := table.Load(); rows != nil {
				return *rows
			}
			return nil
		}}, slog.New(slog.DiscardHandler)))
		rows := []discover.Server{{ID: "a", BaseURL: "http://10.0.0.1:7002"}, {ID: "b", BaseURL: "http://10.0.0.2:7002"}, {ID: "gone", BaseURL: "http://10.0.0.7:7002"}}
		table.Store(&rows)
		s.expect(t, aReady+", "+bReady)
		later := append(slices.Clone(rows), discover.Server{ID: "x", BaseURL: "http://10.0.0.9:7002"})
		table.Store(&later)
		s.expect(t, aReady+", "+bReady+", x http://10.0.0.9:7002 ready")
		table.Store(&rows)
		s.expect(t, aReady+", "+bReady)
	})

	t.Run("no servers", func(t *testing.T) {
		newNamespace(t, plane, "empty")
		cfg := base.WithTiming(discover.Timing{Empty: 100 * time.Millisecond})
		cfg.KubeconfigFile, cfg.Namespace = plane.Kubeconfig(), "empty"
		err := discover.NewKubernetes(cfg).Run(t.Context())
		if vedette.KindOf(err) != vedette.NotFound || !strings.Contains(err.Error(), `namespace empty has no Service with a name that begins with "spin-clouddriver"`) {
			t.Errorf("got %v, want that there are no servers", err)
		}
		cfg.KeepRunning = true
		s := run(t, cfg)
		s.expect(t, "")
		apply(t, plane, fmt.Sprintf(slicesPath, "empty"), "one", slice("one", "spin-clouddriver", "http", pod{"b", "10.0.0.2", true}))
		s.expect(t, bReady)
	})
}

func awaitLog(t *testing.T, log *logbuffer.Buffer, part string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("timeout"))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(log.Lines(part)) == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the log has no line with %q: %s", part, log)
		}
	}
}
