package watch

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// startProbing starts probeCredentials and proveFeeds, and returns a function that ends it and waits.
func (w *Watcher) startProbing(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var probing sync.WaitGroup
	probing.Go(func() { w.probeCredentials(ctx) })
	probing.Go(func() { w.proveFeeds(ctx) })
	return func() {
		cancel()
		probing.Wait()
	}
}

// probeCredentials asks the API server at intervals whether it still accepts the credentials,
// until ctx ends. API servers authenticate a request only when it begins: a watch outlives
// its ServiceAccount, its token and its certificate by up to Config.MaxWatchTimeout, and the
// account would look live for as long.
//
// If the credentials are rejected even after they were read again, all watches begin anew,
// so that each feed reports the rejection. If they are accepted again later, the denied feeds
// do not wait for the end of their pauses. While they are accepted, one denied feed is tried each
// time: RBAC says nothing about granted rights, and pauses are minutes.
func (w *Watcher) probeCredentials(ctx context.Context) {
	wasRejected := false
	for ctx.Err() == nil {
		w.sleep(ctx, randomDuration(w.cfg.ProbeInterval*4/5, w.cfg.ProbeInterval*6/5))
		rejected := w.areCredentialsRejected(ctx)
		if rejected && !wasRejected {
			w.c.ReloadCredentials()
			rejected = w.areCredentialsRejected(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case rejected && !wasRejected:
			w.restartWatches()
		case wasRejected && !rejected:
			w.retryDeniedFeeds()
		case !rejected:
			w.retryOneDeniedFeed()
		}
		wasRejected = rejected
	}
}

// areCredentialsRejected sends a small request over a connection that watches use, which also notices
// another cluster behind the address. If there are no credentials to send, as when an exec plugin fails, watches go on, and
// discovery says why. Any other failure is left to the feeds, which notice it themselves.
func (w *Watcher) areCredentialsRejected(ctx context.Context) bool {
	err := w.c.CheckIdentity(ctx)
	if err != nil && kube.StatusCode(err) == 0 && vedette.KindOf(w.c.Explain(err)) == vedette.Denied {
		w.requestRediscovery()
	}
	return kube.StatusCode(err) == http.StatusUnauthorized
}

// restartWatches makes all watches continue from their marks with new requests. Snapshots are not ended, because their next page is a
// request of its own.
func (w *Watcher) restartWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		f.step(lifecycle.ReconnectWanted{})
	}
}

// retryDeniedFeeds ends the pauses of denied feeds, and of discovery.
func (w *Watcher) retryDeniedFeeds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.feeds {
		if !f.is((*lifecycle.Feed).Publishes) {
			f.retryNow()
		}
	}
	select {
	case w.reachable <- struct{}{}:
	default:
	}
}

// CredentialsChanged makes all watches continue from their marks with the credentials that the cluster
// has now. Denied feeds do not wait for the end of their pauses, because the rights may be others.
func (w *Watcher) CredentialsChanged() {
	w.restartWatches()
	w.retryDeniedFeeds()
	w.VerifyAll()
}

// retryOneDeniedFeed ends the pause of any denied feed. If it is allowed now, logDenials retries the
// others.
func (w *Watcher) retryOneDeniedFeed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	var denied []*feed
	for _, f := range w.feeds {
		if status := f.status.Load(); status != nil && status.State == vedette.FeedDenied {
			denied = append(denied, f)
		}
	}
	if len(denied) > 0 {
		denied[rand.IntN(len(denied))].retryNow()
	}
}
