//go:build linux

package discover_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/discover"
)

// apiServer is an API server of which a test decides what it answers. It grants all rights.
type apiServer struct {
	*httptest.Server
	kubeconfig string

	mu          sync.Mutex
	list, watch http.HandlerFunc
	watchedFrom []string // resourceVersions
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	a := &apiServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"discovery.k8s.io","versions":[{"version":"v1"}]}]}`)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","status":{"allowed":true}}`)
	})
	mux.HandleFunc("GET /apis/discovery.k8s.io/v1/namespaces/ns/endpointslices", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		handle := a.list
		if r.FormValue("watch") != "" {
			handle = a.watch
			a.watchedFrom = append(a.watchedFrom, r.FormValue("resourceVersion"))
		}
		a.mu.Unlock()
		handle(w, r)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	a.kubeconfig = writeKubeconfig(t, a.URL, "{token: hunter2}")
	a.answer(text(listOf("1", itemA)), silence)
	return a
}

func writeKubeconfig(t *testing.T, url, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: ns}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: %s}]}`, url, user)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer sets what lists and watches are answered with from now on.
func (a *apiServer) answer(list, watch http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list, a.watch = list, watch
}

// versions returns the versions from which watches have begun.
func (a *apiServer) versions() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.watchedFrom, " ")
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// silence begins an answer that does not go on.
func silence(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// frozen never begins to answer.
func frozen(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// then sends a text and does not go on.
func then(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, body)
		silence(w, r)
	}
}

// fromVersion answers watches from a version with a handler, and others with silence.
func fromVersion(version string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("resourceVersion") == version {
			handle(w, r)
			return
		}
		silence(w, r)
	}
}

const (
	itemA = `{"metadata":{"name":"s","namespace":"ns","resourceVersion":"1","labels":{"kubernetes.io/service-name":"spin-clouddriver"}},"addressType":"IPv4",` +
		`"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true},"targetRef":{"kind":"Pod","name":"a"}}],"ports":[{"name":"http","port":7002}]}`
	itemB = `{"metadata":{"name":"t","namespace":"ns","resourceVersion":"5","labels":{"kubernetes.io/service-name":"spin-clouddriver"}},"addressType":"IPv4",` +
		`"endpoints":[{"addresses":["10.0.0.2"],"conditions":{"ready":true},"targetRef":{"kind":"Pod","name":"b"}}],"ports":[{"name":"http","port":7002}]}`
)

func listOf(version string, items ...string) string {
	return fmt.Sprintf(`{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":%q},"items":[%s]}`, version, strings.Join(items, ","))
}

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

func (a *apiServer) run(t *testing.T) *source {
	t.Helper()
	cfg := discover.KubernetesConfig{ServicePrefix: "spin-clouddriver", PortName: "http", KubeconfigFile: a.kubeconfig}
	return run(t, cfg.WithTiming(discover.Timing{Request: 300 * time.Millisecond, List: 500 * time.Millisecond, Idle: 300 * time.Millisecond,
		Pause: 5 * time.Millisecond, Lasting: time.Nanosecond, Empty: time.Hour}))
}

// TestHalfAnswersAreNotBelieved checks that only a whole list of the right kind becomes the list.
func TestHalfAnswersAreNotBelieved(t *testing.T) {
	for name, tt := range map[string]struct {
		list http.HandlerFunc
		said string
	}{
		"frozen":                   {frozen, "no whole answer within"},
		"half, and silence":        {then(strings.TrimSuffix(listOf("1", itemA), "}")), "no whole answer within"},
		"half, and an end":         {text(strings.TrimSuffix(listOf("1", itemA), "]}")), "read the answer"},
		"an empty object":          {text(`{}`), "has no items"},
		"a page of a proxy":        {text("<html>welcome</html>"), "read the answer"},
		"another kind":             {text(`{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}`), `of kind \"PodList\"`},
		"no version":               {text(`{"kind":"EndpointSliceList","metadata":{},"items":[]}`), "resourceVersion"},
		"items twice":              {text(`{"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[],"items":[` + itemA + `]}`), "two lists"},
		"items that are not there": {text(`{"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":{}}`), "not a list"},
		"more after it":            {text(listOf("1", itemA) + "{}"), "does not end"},
		"an error":                 {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "status 503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "status 302"},
		"the second page fails": {func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("continue") != "" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, strings.Replace(listOf("1", itemA), `"metadata":{`, `"metadata":{"continue":"more",`, 1))
		}, "status 500"},
		"an object without an end": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[{"a":"`)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "read the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			a.answer(tt.list, silence)
			s := a.run(t)
			awaitLog(t, s.log, tt.said)
			if got := s.Servers(); got != nil {
				t.Errorf("got %v, want that no list is known", got)
			}
			a.answer(text(listOf("1", itemA)), silence)
			s.expect(t, aReady)
			if len(s.log.Lines("hunter2")) > 0 {
				t.Errorf("the log has the token: %s", s.log)
			}
		})
	}
}

// TestWatchesThatBreak checks that the last list stays, with its age, and from where watches go on.
func TestWatchesThatBreak(t *testing.T) {
	expired := `{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}`
	huge := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("x", 1<<16))); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		watch    http.HandlerFunc
		versions string // at the begin
	}{
		"frozen":                  {frozen, "1 1"},
		"silence":                 {silence, "1 1"},
		"an end":                  {text(""), "1 1"},
		"garbage":                 {text("<html>"), "1 1"},
		"an unknown event":        {text(event("RENAMED", itemA)), "1 1"},
		"a bookmark":              {text(event("BOOKMARK", `{"metadata":{"resourceVersion":"4"}}`)), "1 4"},
		"a bookmark of nothing":   {text(event("BOOKMARK", `{"metadata":{"resourceVersion":"0"}}`)), "1 1"},
		"an error":                {text(event("ERROR", `{"kind":"Status","code":500,"message":"etcd"}`)), "1 1"},
		"an object without end":   {huge, "1 1"},
		"another namespace's end": {text(event("DELETED", `{"metadata":{"name":"s","namespace":"x","resourceVersion":"6"}}`)), "1 6"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t)
			a.answer(text(listOf("1", itemA)), tt.watch)
			s := a.run(t)
			s.expect(t, aReady)
			a.await(t, func() bool { return strings.HasPrefix(a.versions()+" ", tt.versions+" ") })
			s.expect(t, aReady)
			a.answer(text(listOf("9")), then(event("ADDED", itemB)))
			s.expect(t, aReady+", "+bReady)
		})
	}
	t.Run("the version is gone", func(t *testing.T) {
		a := newAPIServer(t)
		watch := fromVersion("1", text(event("ERROR", expired)))
		a.answer(text(listOf("1", itemA)), watch)
		s := a.run(t)
		s.expect(t, aReady)
		a.answer(text(listOf("9", itemB)), watch)
		s.expect(t, bReady)
	})
	t.Run("an event that cannot be read", func(t *testing.T) {
		a := newAPIServer(t)
		watch := fromVersion("1", then(event("MODIFIED", "{\"metadata\":{\"name\":\"\xff\"}}")))
		a.answer(text(listOf("1", itemA)), watch)
		s := a.run(t)
		s.expect(t, aReady)
		a.answer(text(listOf("9", itemB, "{\"metadata\":{\"name\":\"\xff\"}}")), watch)
		s.expect(t, bReady)
		awaitLog(t, s.log, "left out")
	})
}

func (a *apiServer) await(t *testing.T, condition func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout: watched from %s", a.versions())
		}
	}
}

// TestLatency checks that slow answers within the deadlines are awaited, and that the age is that of the request, not of the answer.
func TestLatency(t *testing.T) {
	a := newAPIServer(t)
	began := make(chan time.Time, 1)
	a.answer(func(w http.ResponseWriter, r *http.Request) {
		began <- time.Now()
		timer := time.NewTimer(100 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		text(listOf("1", itemA))(w, r)
	}, silence)
	s := a.run(t)
	s.expect(t, aReady)
	if asked := <-began; s.Servers()[0].LastUpdated.After(asked) {
		t.Errorf("got a list of %v, which was asked for at %v", s.Servers()[0].LastUpdated, asked)
	}
}

// TestUnrelatedObjectsTakeNoMemory lists many large objects of other Services.
func TestUnrelatedObjectsTakeNoMemory(t *testing.T) {
	a := newAPIServer(t)
	const objects, size = 24, 2 << 20
	large := strings.Replace(strings.Replace(itemB, "spin-clouddriver", "other", 1), `"addressType"`, `"padding":"`+strings.Repeat("x", size)+`","addressType"`, 1)
	a.answer(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"EndpointSliceList","metadata":{"resourceVersion":"1"},"items":[`+itemA)
		for range objects {
			_, _ = io.WriteString(w, ","+large)
		}
		_, _ = io.WriteString(w, `]}`)
	}, silence)
	cfg := discover.KubernetesConfig{ServicePrefix: "spin-clouddriver", PortName: "http", KubeconfigFile: a.kubeconfig}
	s := run(t, cfg)
	s.expect(t, aReady)
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 24<<20 {
		t.Errorf("%d MiB are in use after %d MiB of unrelated objects", after.HeapAlloc>>20, objects*size>>20)
	}
}

// TestAccess checks what is said of kubeconfigs and service accounts that cannot be used.
func TestAccess(t *testing.T) {
	incomplete := t.TempDir()
	if err := os.WriteFile(filepath.Join(incomplete, "token"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]discover.KubernetesConfig{
		"does not run in a pod":          {},
		"automountServiceAccountToken":   {ServiceAccount: discover.ServiceAccount{Host: "h", Port: "1", Dir: t.TempDir()}},
		"the file " + incomplete + "/ca": {ServiceAccount: discover.ServiceAccount{Host: "h", Port: "1", Dir: incomplete}, Namespace: "ns"},
		"does not exist":                 {KubeconfigFile: "/nowhere/kubeconfig"},
		"is not a file of at most":       {KubeconfigFile: t.TempDir()},
		"has exec or auth-provider":      {KubeconfigFile: writeKubeconfig(t, "https://k", "{exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}")},
		"no such file":                   {KubeconfigFile: writeKubeconfig(t, "https://k", "{client-certificate: /nowhere/c, client-key: /nowhere/k}")},
	} {
		if err := discover.NewKubernetes(cfg).Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := (discover.KubernetesConfig{KubeconfigFile: "/nowhere/kubeconfig"}).Validate(); err == nil {
		t.Error("a kubeconfig that does not exist is valid")
	}
}
