// Package fleet simulates the API servers of many clusters in one process, for tests and
// measurements that need more clusters or more objects than real control planes have room for.
//
// A simulated cluster shows an agent what a real one would: discovery, paged lists that are
// consistent, watches that resume from a resourceVersion, bookmarks, streamed snapshots, "410 Gone"
// for expired versions, and metadata only if requested. Objects come from package sample. The
// cluster keeps one number per object, its resourceVersion, so that a million objects fit into 8
// MB.
//
// There is no authentication, and namespaces exist only as fields of objects. Objects are changed
// by the methods of Cluster, and by patches of clients, which give an object a new version whatever
// they contain. Nothing else can be written.
package fleet

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
)

// Config configures a fleet.
type Config struct {
	Clusters int // 0 means 1
	// Objects is the number of objects of each cluster, by kind. The kinds are those of package
	// sample; Namespaces always exist.
	Objects map[vedette.Kind]int
	Seed    uint64
	// Window is how many changes of a kind a watch can resume from; 0 means 1024.
	Window int
	// Bookmarks is the interval of bookmarks in a quiet watch; 0 means 1 minute.
	Bookmarks time.Duration
}

// Fleet serves its clusters on one address, each below its own path.
type Fleet struct {
	cfg      Config
	clusters []*Cluster
	listener net.Listener
	server   *http.Server
	ca       []byte // in PEM
	serving  sync.WaitGroup
	counts   counts
	steps    atomic.Int64 // number of changes by Churn and Step
}

// Start listens on a port of 127.0.0.1 and serves until Close.
func Start(cfg Config) (*Fleet, error) {
	cfg.Clusters = max(cfg.Clusters, 1)
	if cfg.Window == 0 {
		cfg.Window = 1024
	}
	if cfg.Bookmarks == 0 {
		cfg.Bookmarks = time.Minute
	}
	f := &Fleet{cfg: cfg}
	for i := range cfg.Clusters {
		c, err := newCluster(f, uint64(i))
		if err != nil {
			return nil, err
		}
		f.clusters = append(f.clusters, c)
	}
	return f, f.listen()
}

func (f *Fleet) listen() error {
	pair, ca, err := selfSigned()
	if err != nil {
		return fmt.Errorf("create a certificate: %w", err)
	}
	f.ca = ca
	f.listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.server = &http.Server{Handler: f, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}}
	f.serving.Go(func() {
		if err := f.server.ServeTLS(f.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Errorf("serve simulated clusters: %w", err)) // panic, because tests that wait for the clusters cannot continue
		}
	})
	return nil
}

// Close closes all connections and waits until the port is free.
func (f *Fleet) Close() error {
	err := f.server.Close()
	f.serving.Wait()
	return err
}

// Cluster returns cluster number n, starting at 0.
func (f *Fleet) Cluster(n int) *Cluster { return f.clusters[n] }

// Clusters returns the number of clusters.
func (f *Fleet) Clusters() int { return len(f.clusters) }

// URL returns the URL of a cluster's API server.
func (f *Fleet) URL(n int) string {
	return fmt.Sprintf("https://%s/clusters/%d", f.listener.Addr(), n)
}

// Kubeconfig returns a kubeconfig for a cluster.
func (f *Fleet) Kubeconfig(n int) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: simulated
contexts: [{name: simulated, context: {cluster: simulated, user: nobody}}]
users: [{name: nobody, user: {token: none}}]
clusters: [{name: simulated, cluster: {server: %q, certificate-authority-data: %s}}]
`, f.URL(n), base64.StdEncoding.EncodeToString(f.ca))
}

// ServeHTTP passes a request to its cluster.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	number, path, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n >= len(f.clusters) {
		http.NotFound(w, r)
		return
	}
	f.clusters[n].serve(&countingWriter{ResponseWriter: w, bytes: &f.counts.bytes}, r, "/"+path)
}

// Churn changes objects of all clusters until ctx ends, perSecond times a second in each cluster.
// Nearly all changes update the status; one in twenty deletes an object, and one in twenty creates
// one.
func (f *Fleet) Churn(ctx context.Context, perSecond float64) {
	every := time.Duration(float64(time.Second) / (perSecond * float64(len(f.clusters))))
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	began, done := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			due := int(now.Sub(began) / every)
			f.Step(due - done)
			done = max(done, due)
		}
	}
}

// Advance is Cluster.Advance for all clusters.
func (f *Fleet) Advance() {
	for _, c := range f.clusters {
		c.Advance()
	}
}

// Steps returns the number of changes that Churn and Step have made.
func (f *Fleet) Steps() int { return int(f.steps.Load()) }

// Step makes the next n changes of Churn at once. A change depends only on the number of changes
// before it.
func (f *Fleet) Step(n int) {
	for range n {
		step := int(f.steps.Add(1))
		f.clusters[step%len(f.clusters)].changeRandom(step)
	}
}
