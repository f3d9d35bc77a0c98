package hostile

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// startServices starts everything that the server asks, and that lies or does not end.
func (w *hostileWorld) startServices() error {
	w.field.Services = map[string]string{}
	git, err := w.makeRepository()
	if err != nil {
		return err
	}
	for name, handler := range map[string]http.HandlerFunc{"fiat": w.fiat, "front50": w.front50, "upstream": w.upstream, "helm": w.helm, "store": w.store, "vault": vault,
		"github": github, "files": w.files, "git": git, "branches": endlessBranches} {
		server := httptest.NewUnstartedServer(handler)
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		server.Start()
		w.field.Services[name] = server.URL
	}
	return nil
}

// write writes a text so often; 0 means until the client leaves or 10 seconds have passed.
func write(out io.Writer, text string, times int) {
	for began, n := time.Now(), 0; times == 0 && time.Since(began) < 10*time.Second || n < times; n++ {
		if _, err := io.WriteString(out, text); err != nil {
			return
		}
	}
}

// fiat answers at length, late, or not at all.
func (w *hostileWorld) fiat(out http.ResponseWriter, r *http.Request) {
	user, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/authorize/"), "-")
	switch user {
	case "endless":
		fmt.Fprint(out, `{"name":"`)
		write(out, strings.Repeat("x", 1<<20), 0)
	case "wide": // as large as is accepted
		fmt.Fprint(out, `{"accounts":[{}`)
		write(out, strings.Repeat(`,{"name":"a"}`, 50_000), 15)
		fmt.Fprint(out, `]}`)
	case "many":
		fmt.Fprint(out, `{"applications":[{}`)
		write(out, strings.Repeat(`,{"name":"`+strings.Repeat("a", 1000)+`","authorizations":["READ"]}`, 1000), 60)
		fmt.Fprint(out, `]}`)
	case "deep":
		fmt.Fprint(out, strings.Repeat("[", 16<<20))
	case "slow":
		respondRepeatedly(`{"name":"`, constant("x"), 20*time.Millisecond)(out, r)
	default:
		http.Error(out, strings.Repeat("x", 1<<20), http.StatusNotFound)
	}
}

func (w *hostileWorld) front50(out http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v2/applications") {
		fmt.Fprint(out, `[{"name":"huge"}`)
		write(out, strings.Repeat(`,{"name":"a"}`, 10_000), 100)
		fmt.Fprint(out, `]`)
		return
	}
	fmt.Fprint(out, `{"config":{"clusters":[{}`)
	write(out, strings.Repeat(`,{"a":0}`, 10_000), 200)
	fmt.Fprint(out, `]}}`)
}

// upstream lies, does not end, and is compressed.
func (w *hostileWorld) upstream(out http.ResponseWriter, r *http.Request) {
	switch w.pick(5) {
	case 0:
		fmt.Fprint(out, `[{"name":"other","name":"beside"}`)
		write(out, strings.Repeat(`,{"name":"x","a":"`+strings.Repeat("x", 1000)+`"}`, 1000), 0)
	case 1:
		write(out, "["+strings.Repeat(`{},`, 1<<20), 10)
	case 2:
		out.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(out, gzipBomb())
	case 3:
		respondRepeatedly(`[{"name":"`, constant("x"), 20*time.Millisecond)(out, r)
	default:
		fmt.Fprint(out, strings.Repeat("[", 1<<20))
	}
}

// helm has indexes at the limit of a chart, beyond it, and without an end.
func (w *hostileWorld) helm(out http.ResponseWriter, _ *http.Request) {
	switch w.pick(3) {
	case 0:
		fmt.Fprint(out, "entries:\n  chart:\n")
		write(out, strings.Repeat("  -\n", 1000), 390)
	case 1:
		fmt.Fprint(out, "entries:\n")
		write(out, strings.Repeat("  other:\n  - version: '1'\n", 1000), 0)
	default:
		fmt.Fprint(out, `{"entries":{"chart":[{}`)
		write(out, strings.Repeat(",{}", 1000), 0)
	}
}

func (w *hostileWorld) store(out http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("tagging") {
		fmt.Fprint(out, `<Tagging><TagSet><Tag><Key>application</Key><Value>app</Value></Tag></TagSet></Tagging>`)
		return
	}
	write(out, strings.Repeat("x", 1<<20), 31+w.pick(2)*31)
}

func github(out http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(out, `{"download_url":"http://x","a":[{}`)
	write(out, strings.Repeat(",{}", 1000), 1300)
	fmt.Fprint(out, `]}`)
}

func (w *hostileWorld) files(out http.ResponseWriter, _ *http.Request) {
	if w.pick(2) == 0 {
		out.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(out, gzipBomb())
		return
	}
	write(out, strings.Repeat("x", 1<<20), 200)
}

// vault has a document at the limit, and one of very many values.
func vault(out http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/bomb") {
		fmt.Fprint(out, `{"data":{"id":"t","ttl":0,"renewable":false}}`)
		return
	}
	fmt.Fprint(out, `{"data":{"metadata":{},"data":{"x":[0`)
	write(out, strings.Repeat(`,{"":0}`, 10_000), 0)
	fmt.Fprint(out, `]}}}`)
}

// endlessBranches lists branches of a Git repository that do not end.
func endlessBranches(out http.ResponseWriter, _ *http.Request) {
	out.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	fmt.Fprint(out, "001e# service=git-upload-pack\n0000")
	name := strings.Repeat("b", 60_000)
	for i, began := 0, time.Now(); time.Since(began) < 10*time.Second; i++ {
		line := fmt.Sprintf("%040x refs/heads/%s%d\n", i+1, name, i)
		if i == 0 {
			line = fmt.Sprintf("%040x refs/heads/b0\x00\n", 1)
		}
		if _, err := fmt.Fprintf(out, "%04x%s", len(line)+4, line); err != nil {
			return
		}
	}
}

// repository makes a Git repository by Git's own program.
type repository struct {
	dir string
	err error
}

func (r *repository) git(input io.Reader, args ...string) string {
	if r.err != nil {
		return ""
	}
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = r.dir, input
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.Output()
	if err != nil {
		r.err = fmt.Errorf("git %q: %w", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) branch(name, tree string) {
	r.git(nil, "update-ref", "refs/heads/"+name, r.git(nil, "commit-tree", "-m", name, tree))
}

func (r *repository) tree(lines ...string) string {
	return r.git(strings.NewReader(strings.Join(lines, "\n")+"\n"), "mktree")
}

// makeRepository makes a repository with branches that are small and become large: a file of zeros, random data,
// and nested directories that share a file of attributes.
func (w *hostileWorld) makeRepository() (http.HandlerFunc, error) {
	r := &repository{dir: filepath.Join(w.dir, "repo.git")}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return nil, err
	}
	r.git(nil, "init", "-q", "--bare", ".")
	blob := func(content io.Reader) string { return r.git(content, "hash-object", "-w", "--stdin") }
	r.branch("zeros", r.tree("100644 blob "+blob(bytes.NewReader(make([]byte, 60<<20)))+"\tzeros"))
	random := make([]byte, 16<<20)
	for i := range random {
		random[i] = byte(i*i>>7 ^ i*31>>3 ^ i>>11)
	}
	r.branch("large", r.tree("100644 blob "+blob(bytes.NewReader(random))+"\trandom"))
	attributes := blob(strings.NewReader(strings.Repeat("a b\n", 262_143)))
	tree := r.tree("100644 blob " + attributes + "\t.gitattributes")
	for range 40 {
		tree = r.tree("100644 blob "+attributes+"\t.gitattributes", "040000 tree "+tree+"\td")
	}
	r.branch("attributes", tree)
	program := filepath.Join(r.git(nil, "--exec-path"), "git-http-backend")
	handler := &cgi.Handler{Path: program, Env: []string{"GIT_PROJECT_ROOT=" + w.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"}, Stderr: io.Discard,
		Logger: slog.NewLogLogger(slog.DiscardHandler, 0)}
	return handler.ServeHTTP, r.err
}

var endlessLog = sync.OnceValue(func() string { return strings.Repeat("l", 1<<20) + "\n" })

// containers is a cluster with pods whose logs do not end, and a Job of very many values.
func containers(out http.ResponseWriter, r *http.Request) bool {
	pod := func(name, rest string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"n","name":%q,"uid":"u","resourceVersion":"5"}%s}`, name, rest)
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/pods/properties/log"):
		write(out, "SPINNAKER_CONFIG_JSON={\"a\":["+strings.Repeat(`{"":0},`, 1<<20)+"0]}\n", 2)
	case strings.HasSuffix(path, "/log"):
		write(out, endlessLog(), 0)
	case path == "/api/v1":
		fmt.Fprint(out, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]},{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]}]}`)
	case path == "/apis":
		fmt.Fprint(out, `{"kind":"APIGroupList","groups":[{"name":"batch","versions":[{"groupVersion":"batch/v1","version":"v1"}],"preferredVersion":{"groupVersion":"batch/v1","version":"v1"}}]}`)
	case path == "/apis/batch/v1":
		fmt.Fprint(out, `{"kind":"APIResourceList","groupVersion":"batch/v1","resources":[{"name":"jobs","singularName":"job","namespaced":true,"kind":"Job","verbs":["get","list","watch"]}]}`)
	case strings.HasSuffix(path, "/pods/endless"):
		fmt.Fprint(out, pod("endless", `,"spec":{"containers":[{"name":"c"}`+strings.Repeat(`,{"name":"c"}`, 99)+`]}`))
	case strings.HasSuffix(path, "/pods/properties"):
		fmt.Fprint(out, pod("properties", ""))
	case strings.HasSuffix(path, "/jobs/small"):
		fmt.Fprint(out, strings.Replace(pod("small", `,"status":{"conditions":[{}`+strings.Repeat(",{}", 5<<20)+`]}`), `"Pod","apiVersion":"v1"`, `"Job","apiVersion":"batch/v1"`, 1))
	default:
		return false
	}
	return true
}
