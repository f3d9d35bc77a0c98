package watch_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestSecretsUseTheProxy checks that requests for Secrets use the configured proxy.
func TestSecretsUseTheProxy(t *testing.T) {
	server := newAPIServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"10"},"items":[{"kind":"PartialObjectMetadata","metadata":{"name":"a","resourceVersion":"5"}}]}`)
	})
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := parseProxyAuth(r); user != "u" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		proxied.Add(1)
		proxyConnect(w, r.Host)
	}))
	t.Cleanup(proxy.Close)
	config := strings.Replace(string(kubetest.Kubeconfig(server.URL, kubetest.CertPEM(server))), "    server:", "    proxy-url: "+strings.Replace(proxy.URL, "http://", "http://u:p@", 1)+"\n    server:", 1)
	c, err := kube.Connect(kube.Access{KubeconfigContents: []byte(config)}, kube.Options{})
	must(t, err)
	t.Cleanup(c.Close)
	r := newRecorder()
	_, stop := start(t, c, watch.Selection{Kinds: []string{"secret"}}, r, watch.Config{}, nil)
	r.await(t, "the Secret", func() bool { return r.has(secretFeed, "/a") })
	stop()
	r.check(t)
	if n := proxied.Load(); n < 2 {
		t.Errorf("got %d connections through the proxy, want at least 2", n)
	}
}

// parseProxyAuth returns the proxy credentials of a request.
func parseProxyAuth(r *http.Request) (user, password string, ok bool) {
	copied := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return copied.BasicAuth()
}

// proxyConnect handles CONNECT as a proxy does.
func proxyConnect(w http.ResponseWriter, host string) {
	to, err := net.Dial("tcp", host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	w.WriteHeader(http.StatusOK)
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}
