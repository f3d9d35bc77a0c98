package kube_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
	"github.com/vedette-io/vedette/internal/keypair/keypairtest"
	"github.com/vedette-io/vedette/test/proxy"
)

// identifiedServer is an API server of a cluster with a uid. All have one authority, and by default one
// certificate.
type identifiedServer struct {
	*httptest.Server
	uid       string
	team      string                               // uid of the namespace team; "" if namespaces are denied
	readUID   func(http.ResponseWriter)            // answers requests for the uid instead; nil for none
	lists     map[string]func(http.ResponseWriter) // answers to lists, by path
	mu        sync.Mutex
	requested []string // method and path of the requests but those for the identity
	conns     map[string]bool
	reads     int // of the identity
}

func startIdentified(t *testing.T, uid string, config *tls.Config, protocol string) *identifiedServer {
	t.Helper()
	s := &identifiedServer{uid: uid, conns: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.EnableHTTP2, s.TLS = protocol == "HTTP/2", config.Clone()
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *identifiedServer) address() string { return strings.TrimPrefix(s.URL, "https://") }

func (s *identifiedServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.conns[r.RemoteAddr] = true
	isIdentity := r.URL.Path == "/api/v1/namespaces/kube-system"
	if isIdentity {
		s.reads++
	} else if r.URL.Path != "/version" && !strings.HasPrefix(r.URL.Path, "/api/v1/namespaces") {
		s.requested = append(s.requested, r.Method+" "+r.URL.Path)
	}
	readUID, list := s.readUID, s.lists[r.URL.Path]
	s.mu.Unlock()
	switch {
	case isIdentity && readUID != nil:
		readUID(w)
	case isIdentity:
		fmt.Fprintf(w, `{"metadata": {"name": "kube-system", "uid": %q}}`, s.uid)
	case r.URL.Path == "/api/v1/namespaces/team" && s.team != "":
		fmt.Fprintf(w, `{"metadata": {"name": "team", "uid": %q}}`, s.team)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
		deny(w)
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
	case r.URL.Path == "/api/v1/namespaces":
		fmt.Fprint(w, emptyList)
	case list != nil && r.URL.RawQuery == "limit=1":
		list(w)
	case r.URL.Query().Get("watch") != "":
		kubetest.Hang(w, r, "event of "+s.uid+"\n")
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, s.uid)
	}
}

// setLists sets the answers to lists.
func (s *identifiedServer) setLists(answers map[string]func(http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = answers
}

// setReadUID replaces the answer to requests for the identity.
func (s *identifiedServer) setReadUID(answer func(http.ResponseWriter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readUID = answer
}

func deny(w http.ResponseWriter) { writeStatus(w, http.StatusForbidden, "Forbidden") }

func http404(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func writeStatus(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind": "Status", "code": %d, "reason": %q}`, code, reason)
}

// requests returns the requests besides those that identify the cluster.
func (s *identifiedServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requested)
}

// counts returns how many connections the server had, and how often its identity was read.
func (s *identifiedServer) counts() (conns, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.reads
}

// switchedPair are two clusters behind one address, which leads to the first at first.
type switchedPair struct {
	first, second *identifiedServer
	proxy         *proxy.Proxy
	ca            *keypairtest.Authority
}

func startPair(t *testing.T, protocol string, secondConfig func(*keypairtest.Authority) *tls.Config) *switchedPair {
	t.Helper()
	ca := keypairtest.New(t)
	config := ca.ServerTLS()
	config.ClientAuth = tls.NoClientCert
	other := config
	if secondConfig != nil {
		other = secondConfig(ca)
		other.ClientAuth = tls.NoClientCert
	}
	p := &switchedPair{first: startIdentified(t, "first", config, protocol), second: startIdentified(t, "second", other, protocol), ca: ca}
	p.proxy = proxy.New(t, p.first.address())
	return p
}

func (p *switchedPair) kubeconfig(t *testing.T, host string) []byte {
	t.Helper()
	_, port, _ := strings.Cut(p.proxy.Address(), ":")
	return kubetest.Kubeconfig("https://"+host+":"+port, []byte(readFile(t, p.ca.File)))
}

// connect returns a client that was identified as the first cluster.
func (p *switchedPair) connect(t *testing.T, opts kube.Options) *kube.Cluster {
	t.Helper()
	c := kubetest.ConnectWith(t, p.kubeconfig(t, "127.0.0.1"), opts)
	if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "first" {
		t.Fatalf("got %+v, %v", id, err)
	}
	return c
}

// switchOver makes new connections lead to a cluster, and ends those that are open.
func (p *switchedPair) switchOver(to *identifiedServer) {
	p.proxy.SetTarget(to.address())
	p.proxy.Cut()
}

// requestsOfEachTransport sends a request over each kind of connection that a Cluster has.
var requestsOfEachTransport = map[string]func(context.Context, *kube.Cluster) error{
	"list": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Get(ctx, c.Timeouts(), kube.GetRequest{Path: "/list", Accept: kube.AcceptJSON}))
	},
	"watch": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Watch(ctx, c.Timeouts(), kube.GetRequest{Path: "/watch", Query: url.Values{"watch": {"true"}}, Accept: kube.AcceptJSON}))
	},
	"stream": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Stream(ctx, kube.Request{Path: "/log"}))
	},
	"change": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Do(ctx, kube.Request{Method: http.MethodPost, Path: "/change", Body: []byte("{}")}))
	},
	"change of a Secret": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Do(ctx, kube.Request{Method: http.MethodPut, Path: "/secret", Body: []byte("{}"), WipeBuffers: true}))
	},
	"list of Secrets": func(ctx context.Context, c *kube.Cluster) error {
		return closeBody(c.Get(ctx, c.Timeouts(), kube.GetRequest{Path: "/secrets", Accept: kube.AcceptJSON, WipeBuffers: true}))
	},
}

// afterCut sends a request, again if it was written to a connection whose end was not noticed yet.
func afterCut(ctx context.Context, c *kube.Cluster, send func(context.Context, *kube.Cluster) error) error {
	for {
		err := send(ctx, c)
		if err == nil || vedette.KindOf(c.Explain(err)) != vedette.Unavailable || !kube.MayHaveBeenSent(err) {
			return err
		}
	}
}

func closeBody(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// TestSwitchedClusterGetsNoRequest switches an address to another cluster, which has the same
// certificate, authority and credentials. Whatever is requested next must not reach it.
func TestSwitchedClusterGetsNoRequest(t *testing.T) {
	otherCertificate := func(ca *keypairtest.Authority) *tls.Config { return ca.ServerTLS() }
	for name, second := range map[string]func(*keypairtest.Authority) *tls.Config{"same certificate": nil, "other certificate": otherCertificate} {
		for _, protocol := range []string{"HTTP/2", "HTTP/1.1"} {
			for request, send := range requestsOfEachTransport {
				t.Run(name+"/"+protocol+"/"+request, func(t *testing.T) {
					p := startPair(t, protocol, second)
					c := p.connect(t, kube.Options{})
					for _, before := range requestsOfEachTransport {
						must(t, before(t.Context(), c))
					}
					p.switchOver(p.second)
					err := afterCut(t.Context(), c, send)
					if !errors.Is(err, kube.ErrAnotherCluster) || vedette.KindOf(err) != vedette.Conflict {
						t.Errorf("got %v, want ErrAnotherCluster", err)
					}
					if err != nil && kube.MayHaveBeenSent(err) {
						t.Error("the request counts as sent")
					}
					if err != nil && (strings.Contains(err.Error(), "first") || strings.Contains(err.Error(), "second")) {
						t.Errorf("%v names a cluster", err)
					}
					if got := p.second.requests(); len(got) > 0 {
						t.Errorf("the other cluster got %v", got)
					}
					if is, found := c.Identities(); found == nil || is.UID != "first" || found.UID != "second" {
						t.Errorf("got %v and %v", is, found)
					}
					<-c.Switched()
					p.switchOver(p.first) // also after a switch back: nobody knows what comes next
					if err := send(t.Context(), c); !errors.Is(err, kube.ErrAnotherCluster) {
						t.Errorf("after a switch back: got %v", err)
					}
				})
			}
		}
	}
}

// TestOpenConnectionsSurviveASwitch checks that connections to the right cluster are used until
// another one is found.
func TestOpenConnectionsSurviveASwitch(t *testing.T) {
	p := startPair(t, "HTTP/2", nil)
	c := p.connect(t, kube.Options{})
	change := requestsOfEachTransport["change"]
	must(t, change(t.Context(), c))
	p.proxy.SetTarget(p.second.address())
	must(t, change(t.Context(), c))
	if err := requestsOfEachTransport["change of a Secret"](t.Context(), c); !errors.Is(err, kube.ErrAnotherCluster) { // over a new connection
		t.Errorf("got %v", err)
	}
	if err := change(t.Context(), c); !errors.Is(err, kube.ErrAnotherCluster) {
		t.Errorf("over the connection to the right cluster: got %v", err)
	}
	if got := p.first.requests(); len(got) != 2 || len(p.second.requests()) != 0 {
		t.Errorf("got %v and %v", got, p.second.requests())
	}
}

// TestSameClusterBehindNewConnections checks that a lost connection and another API server of the same
// cluster go unnoticed, and that each connection costs one request.
func TestSameClusterBehindNewConnections(t *testing.T) {
	for _, protocol := range []string{"HTTP/2", "HTTP/1.1"} {
		t.Run(protocol, func(t *testing.T) {
			p := startPair(t, protocol, func(ca *keypairtest.Authority) *tls.Config { return ca.ServerTLS() })
			p.second.uid = "first"
			var reconnects atomic.Int32
			c := p.connect(t, kube.Options{OnReconnect: func() { reconnects.Add(1) }})
			for range 3 {
				for _, send := range requestsOfEachTransport {
					must(t, send(t.Context(), c))
				}
			}
			if n := reconnects.Load(); n != 0 && protocol == "HTTP/2" {
				t.Errorf("got %d reconnects at first", n)
			}
			p.switchOver(p.second)
			for _, send := range requestsOfEachTransport {
				must(t, afterCut(t.Context(), c, send))
			}
			if reconnects.Load() == 0 {
				t.Error("got no reconnect")
			}
			for _, s := range []*identifiedServer{p.first, p.second} {
				if conns, reads := s.counts(); reads > conns || reads == 0 {
					t.Errorf("got %d reads of the identity over %d connections, want one each", reads, conns)
				}
			}
		})
	}
}

// TestConcurrentRequestsShareConnections checks that requests that start together over HTTP/2 open one
// connection, and that those over HTTP/1.1 do not wait for each other. net/http does not use a connection
// of HTTP/1.1 again on a machine that is too busy, so that some requests open another one.
func TestConcurrentRequestsShareConnections(t *testing.T) {
	for protocol, most := range map[string]int{"HTTP/2": 2, "HTTP/1.1": 1 + 3*40} { // with that of Identify
		p := startPair(t, protocol, nil)
		c := p.connect(t, kube.Options{})
		var group sync.WaitGroup
		for range 40 {
			group.Go(func() {
				if err := requestsOfEachTransport["change"](t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if conns, reads := p.first.counts(); conns > most || reads > conns {
			t.Errorf("%s: got %d connections and %d reads of the identity, want at most %d", protocol, conns, reads, most)
		}
	}
}

// TestHungVerificationDelaysNobody checks that a connection whose identity is not answered does not keep
// other requests from opening another one.
func TestHungVerificationDelaysNobody(t *testing.T) {
	p := startPair(t, "HTTP/2", nil)
	c := p.connect(t, kube.Options{})
	asked, release := make(chan struct{}), make(chan struct{})
	p.first.setReadUID(func(w http.ResponseWriter) {
		p.first.setReadUID(nil)
		close(asked)
		<-release
	})
	change := requestsOfEachTransport["change"]
	hung := make(chan error, 1)
	go func() { hung <- change(t.Context(), c) }()
	<-asked
	must(t, change(t.Context(), c))
	select {
	case err := <-hung:
		t.Errorf("the first request ended: %v", err)
	default:
	}
	close(release)
	<-hung
}

// TestIdentityThatCannotBeRead checks that nothing is sent to a cluster whose identity cannot be read,
// and that the account goes on when it can.
func TestIdentityThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		kind   vedette.ErrorKind
		want   string
	}{
		"denied":       {deny, vedette.Denied, "may not read the namespace kube-system anymore"},
		"missing":      {func(w http.ResponseWriter) { writeStatus(w, http.StatusNotFound, "NotFound") }, vedette.Denied, "kube-system"},
		"unknown path": {http404, vedette.Denied, "kube-system"},
		"a firewall":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden); fmt.Fprint(w, "<html>") }, vedette.Denied, "HTML"},
		"a gateway":    {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound); fmt.Fprint(w, "<html>") }, vedette.Unavailable, "HTML"},
		"overloaded":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, vedette.Unavailable, "429"},
		"failing":      {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, vedette.Unavailable, "500"},
		"unauthorized": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, vedette.Denied, "rejected the credentials"},
		"nonsense":     {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, vedette.Unavailable, "HTML"},
		"a sign-in":    {func(w http.ResponseWriter) { fmt.Fprint(w, `{"message": "sign in"}`) }, vedette.Unavailable, "without a uid"},
		"closing": {func(w http.ResponseWriter) {
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, `{"metadata": {"uid": "first"}}`)
		}, vedette.Unavailable, "keep-alive"},
	} {
		for _, request := range []string{"change", "change of a Secret"} {
			t.Run(name+"/"+request, func(t *testing.T) {
				p := startPair(t, "HTTP/1.1", nil)
				c := p.connect(t, kube.Options{})
				p.first.setReadUID(tt.answer)
				p.proxy.Cut()
				err := afterCut(t.Context(), c, requestsOfEachTransport[request])
				if vedette.KindOf(err) != tt.kind || !strings.Contains(fmt.Sprint(err), tt.want) || kube.MayHaveBeenSent(err) {
					t.Errorf("got %v (kind %s), want kind %s and %q", err, vedette.KindOf(err), tt.kind, tt.want)
				}
				if got := p.first.requests(); len(got) > 0 {
					t.Errorf("the cluster got %v", got)
				}
				p.first.setReadUID(nil)
				if err := requestsOfEachTransport[request](t.Context(), c); err != nil {
					t.Errorf("got %v when the identity can be read again", err)
				}
			})
		}
	}
}

// TestAnotherDocumentHidesNoUID checks that an agent that begins while a gateway answers with other documents does not take the cluster for one
// whose uid RBAC hides: from then on, its certificate would stand for it.
func TestAnotherDocumentHidesNoUID(t *testing.T) {
	for _, document := range []string{`{}`, `{"message": "sign in"}`, `{"kind": "Status", "metadata": {}, "status": "Success"}`} {
		p := startPair(t, "HTTP/2", nil)
		p.first.setReadUID(func(w http.ResponseWriter) { fmt.Fprint(w, document) })
		c := kubetest.ConnectWith(t, p.kubeconfig(t, "127.0.0.1"), kube.Options{})
		if id, _, err := c.Identify(t.Context()); err == nil || !strings.Contains(err.Error(), "without a uid") {
			t.Errorf("%s: got %+v and error %v", document, id, err)
		}
		p.first.setReadUID(nil)
		if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "first" {
			t.Errorf("%s: got %+v and error %v when the identity can be read", document, id, err)
		}
	}
}

// TestCertificateIdentifiesClusterWithoutUID checks that the certificate identifies a cluster whose uid is hidden.
func TestCertificateIdentifiesClusterWithoutUID(t *testing.T) {
	p := startPair(t, "HTTP/2", func(ca *keypairtest.Authority) *tls.Config { return ca.ServerTLS() })
	p.first.setReadUID(deny)
	c := kubetest.ConnectWith(t, p.kubeconfig(t, "127.0.0.1"), kube.Options{})
	if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "" || id.Fingerprint == "" {
		t.Fatalf("got %+v, %v", id, err)
	}
	change := requestsOfEachTransport["change"]
	must(t, change(t.Context(), c))
	p.proxy.Cut()
	must(t, afterCut(t.Context(), c, change))
	p.first.setReadUID(nil) // a uid that is shown later says nothing about the cluster before
	p.proxy.Cut()
	must(t, afterCut(t.Context(), c, change))
	p.switchOver(p.second)
	if err := afterCut(t.Context(), c, change); !errors.Is(err, kube.ErrAnotherCluster) || len(p.second.requests()) > 0 {
		t.Errorf("got %v, and requests %v", err, p.second.requests())
	}
}

// TestNamespaceShowsHiddenCluster checks that a namespace of the account shows that an API server with a
// certificate of its own belongs to the cluster whose uid is hidden, and that another does not.
func TestNamespaceShowsHiddenCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		uid  string // of the account's namespace behind the second connection; "" if it is hidden
		want error
	}{"same": {"team-1", nil}, "another": {"team-2", kube.ErrAnotherCluster}, "hidden": {"", kube.ErrAnotherCluster}} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "HTTP/2", func(ca *keypairtest.Authority) *tls.Config { return ca.ServerTLS() })
			p.first.setReadUID(deny)
			p.second.setReadUID(deny)
			p.first.team, p.second.team = "team-1", tt.uid
			c := kubetest.ConnectWith(t, p.kubeconfig(t, "127.0.0.1"), kube.Options{Namespaces: []string{"denied", "team"}})
			if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "" {
				t.Fatalf("got %+v, %v", id, err)
			}
			p.switchOver(p.second)
			for name, send := range requestsOfEachTransport {
				if err := afterCut(t.Context(), c, send); !errors.Is(err, tt.want) {
					t.Errorf("%s: got %v, want %v", name, err, tt.want)
				}
			}
			if got := p.second.requests(); tt.want != nil && len(got) > 0 {
				t.Errorf("the other cluster got %v", got)
			}
		})
	}
}

func TestClusterStaysTheIdentifiedOne(t *testing.T) {
	p := startPair(t, "HTTP/2", nil)
	c := p.connect(t, kube.Options{})
	if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "first" {
		t.Errorf("got %+v, %v", id, err)
	}
	p.first.setReadUID(deny)
	if _, _, err := c.Identify(t.Context()); vedette.KindOf(err) != vedette.Denied {
		t.Errorf("got %v while the uid is hidden", err)
	}
	p.switchOver(p.second)
	if _, _, err := c.Identify(t.Context()); !errors.Is(err, kube.ErrAnotherCluster) { // over a new connection
		t.Errorf("got %v from another cluster", err)
	}
}

// TestSwitchesOnOpenConnectionsAreNoticed checks that a proxy which leads requests of one connection to several clusters is
// noticed, and an address that DNS resolves to other machines while connections are open.
func TestSwitchesOnOpenConnectionsAreNoticed(t *testing.T) {
	t.Run("proxy", func(t *testing.T) {
		p := startPair(t, "HTTP/2", nil)
		c := p.connect(t, kube.Options{})
		must(t, c.CheckIdentity(t.Context()))
		p.first.setReadUID(deny)
		must(t, c.CheckIdentity(t.Context()))
		p.first.setReadUID(func(w http.ResponseWriter) { fmt.Fprint(w, `{"metadata": {"uid": "second"}}`) })
		if err := c.CheckIdentity(t.Context()); !errors.Is(err, kube.ErrAnotherCluster) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("address", func(t *testing.T) {
		p := startPair(t, "HTTP/2", nil)
		lookups, addresses := 0, []string{"10.0.0.2", "10.0.0.1"}
		lookup := func(_ context.Context, host string) ([]string, error) {
			lookups++
			if host != "localhost" {
				t.Errorf("looked up %q", host)
			}
			return addresses, nil
		}
		c := kubetest.ConnectWith(t, p.kubeconfig(t, "localhost"), kube.Options{LookupHost: lookup})
		_, _, err := c.Identify(t.Context())
		must(t, err)
		must(t, c.CheckIdentity(t.Context()))
		p.proxy.SetTarget(p.second.address()) // open connections stay
		must(t, c.CheckIdentity(t.Context()))
		addresses = []string{"10.0.0.1", "10.0.0.2"} // in another order
		kube.ResolveSoon(c)
		must(t, c.CheckIdentity(t.Context()))
		addresses = []string{"10.0.0.3"}
		kube.ResolveSoon(c)
		if err := c.CheckIdentity(t.Context()); !errors.Is(err, kube.ErrAnotherCluster) || lookups != 3 {
			t.Errorf("got %v after %d lookups", err, lookups)
		}
	})
}

// TestConnectionsAreUncheckedUntilIdentified checks that connections are used as they are before the cluster is
// identified, and not afterwards.
func TestConnectionsAreUncheckedUntilIdentified(t *testing.T) {
	p := startPair(t, "HTTP/2", nil)
	c := kubetest.ConnectWith(t, p.kubeconfig(t, "127.0.0.1"), kube.Options{})
	change := requestsOfEachTransport["change"]
	must(t, change(t.Context(), c))
	if _, reads := p.first.counts(); reads != 0 {
		t.Errorf("got %d reads of the identity", reads)
	}
	p.proxy.SetTarget(p.second.address()) // the open connection leads to the first cluster
	if id, _, err := c.Identify(t.Context()); err != nil || id.UID != "second" {
		t.Fatalf("got %+v, %v", id, err)
	}
	must(t, change(t.Context(), c))
	if got := p.second.requests(); len(got) != 1 {
		t.Errorf("the identified cluster got %v", got)
	}
}

// TestBeforeSendFollowsVerification checks that a request which waits for a connection, and for the identity of the cluster
// behind it, is asked for after that whether it may still be sent, and that it is not sent if it may not.
func TestBeforeSendFollowsVerification(t *testing.T) {
	for _, protocol := range []string{"HTTP/2", "HTTP/1.1"} {
		for _, secret := range []bool{false, true} {
			p := startPair(t, protocol, nil)
			c := p.connect(t, kube.Options{})
			p.proxy.Cut()
			_, before := p.first.counts()
			tooLate := errors.New("the deadline has passed")
			err := afterCut(t.Context(), c, func(ctx context.Context, c *kube.Cluster) error {
				return closeBody(c.Do(ctx, kube.Request{Method: http.MethodPut, Path: "/change", Body: []byte("{}"), WipeBuffers: secret, BeforeSend: func() error {
					if _, reads := p.first.counts(); reads == before {
						return errNotVerified
					}
					return tooLate
				}}))
			})
			if !errors.Is(err, tooLate) || kube.MayHaveBeenSent(err) {
				t.Errorf("%s, of a Secret: %v: got %v, want the error of BeforeSend", protocol, secret, err)
			}
			if got := p.first.requests(); len(got) > 0 {
				t.Errorf("%s, of a Secret: %v: the cluster got %v", protocol, secret, got)
			}
		}
	}
}

var errNotVerified = errors.New("asked before the connection was verified")
