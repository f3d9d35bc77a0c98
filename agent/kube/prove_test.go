package kube_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/kube"
)

// watchConn opens a watch and returns the connection that carries it; nil if it has one of its own.
func watchConn(t *testing.T, c *kube.Cluster) (conn *kube.Conn) {
	t.Helper()
	resp, err := c.Watch(t.Context(), c.Timeouts(), kube.GetRequest{Path: "/watch", Query: url.Values{"watch": {"true"}}, Accept: kube.AcceptJSON,
		OnConn: func(used *kube.Conn) { conn = used }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return conn
}

// Paths of lists that prove something, or not.
const (
	allowedList = "/allowed"
	deniedList  = "/denied"
)

func listsOf(paths ...string) func() []string { return func() []string { return paths } }

// TestProxyAnswersProveNothing checks which answers prove that a connection leads to a working API server of the cluster, and that an
// answer counts from when it was asked for.
func TestProxyAnswersProveNothing(t *testing.T) {
	var asked time.Time // when the API server was, in one of the cases
	status := func(code int) func(http.ResponseWriter) { return func(w http.ResponseWriter) { w.WriteHeader(code) } }
	text := func(answer string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, answer) }
	}
	list := text(`{"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": [{}]}`)
	both := []string{deniedList, allowedList}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		lists  []string
		list   func(http.ResponseWriter) // answers allowedList
		proves bool
	}{
		"the identity":                       {nil, nil, nil, true},
		"the identity, although lists fail":  {nil, both, status(http.StatusInternalServerError), true},
		"RBAC denies it now":                 {deny, nil, nil, false},
		"RBAC denies all":                    {deny, []string{deniedList, deniedList}, nil, false},
		"RBAC denies it, but not all lists":  {deny, both, list, true},
		"it is missing, and there are lists": {http404, both, list, true},
		"etcd does not answer to the list":   {deny, both, func(w http.ResponseWriter) { writeStatus(w, http.StatusInternalServerError, "InternalError") }, false},
		"a proxy answers to the list":        {deny, both, status(http.StatusServiceUnavailable), false},
		"a page for a list":                  {deny, both, text("<html>"), false},
		"half a list":                        {deny, both, text(`{"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [`), false},
		"JSON that is not a list":            {deny, both, text(`{}`), false},
		"rejected credentials for the list":  {deny, both, status(http.StatusUnauthorized), false},
		"a proxy without an API server":      {status(http.StatusServiceUnavailable), both, list, false},
		"a proxy that waited":                {status(http.StatusGatewayTimeout), both, list, false},
		"a proxy that knows no backend":      {status(http.StatusNotFound), both, list, false},
		"a firewall":                         {status(http.StatusForbidden), both, list, false},
		"too many requests":                  {status(http.StatusTooManyRequests), both, list, false},
		"rejected credentials":               {status(http.StatusUnauthorized), both, list, false},
		"another cluster":                    {text(`{"metadata": {"uid": "second"}}`), both, list, false},
		"a page instead of an object":        {text(`<html>`), both, list, false},
		"the identity, later":                {func(w http.ResponseWriter) { asked = time.Now(); fmt.Fprint(w, `{"metadata": {"uid": "first"}}`) }, nil, nil, true},
		"the list, later":                    {deny, both, func(w http.ResponseWriter) { asked = time.Now(); list(w) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, "HTTP/2", nil)
			c := p.connect(t, kube.Options{})
			conn := watchConn(t, c)
			if conn == nil {
				t.Fatal("the watch is not carried by a connection with others")
			}
			if got := conn.LastProof(); !got.Sent.IsZero() {
				t.Errorf("before any probe: got %+v", got)
			}
			p.first.setLists(map[string]func(http.ResponseWriter){deniedList: deny, allowedList: tt.list})
			if tt.answer != nil {
				p.first.setReadUID(tt.answer)
			}
			if !conn.BeginProbe() || conn.BeginProbe() {
				t.Error("two probes can begin at the same time")
			}
			before := time.Now()
			err := c.Probe(t.Context(), conn, listsOf(tt.lists...))
			after := time.Now()
			got := conn.LastProof()
			if !tt.proves {
				if !got.Sent.IsZero() {
					t.Errorf("got %+v and error %v, want no proof", got, err)
				}
				return
			}
			if err != nil && tt.answer == nil || got.Sent.Before(before) || got.Answered.Before(got.Sent) || got.Answered.After(after) {
				t.Errorf("got %+v and error %v, want a proof from between %v and %v", got, err, before, after)
			}
			if !asked.IsZero() && got.Sent.After(asked) {
				t.Errorf("got a proof from %v, but the API server was asked at %v", got.Sent, asked)
			}
			asked = time.Time{}
			if !conn.BeginProbe() {
				t.Error("no other probe can begin afterwards")
			}
		})
	}
}

// TestProofOfALostConnection checks that a probe of a connection that was lost is not answered over another one.
func TestProofOfALostConnection(t *testing.T) {
	p := startPair(t, "HTTP/2", nil)
	c := p.connect(t, kube.Options{})
	conn := watchConn(t, c)
	p.proxy.Cut()
	if err := c.Probe(t.Context(), conn, listsOf()); err == nil || !conn.LastProof().Sent.IsZero() {
		t.Errorf("got error %v and proof %+v", err, conn.LastProof())
	}
	if proof, err := c.ProbeAny(t.Context(), listsOf()); err != nil || proof.Sent.IsZero() {
		t.Errorf("over another connection: got %+v, %v", proof, err)
	}
}

// TestWatchOfHTTP1HasAConnectionOfItsOwn checks that nothing can be asked over the connection of such a watch.
func TestWatchOfHTTP1HasAConnectionOfItsOwn(t *testing.T) {
	p := startPair(t, "HTTP/1.1", nil)
	if conn := watchConn(t, p.connect(t, kube.Options{})); conn != nil {
		t.Error("got a connection, want none")
	}
}
