package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// credentialReloader notices that the credentials of an account have changed, while the account is
// served. It belongs to one goroutine.
type credentialReloader struct {
	account   *account
	cluster   *kube.Cluster
	lastError string // that was logged
}

// errAnotherCluster means that changed credentials lead, or may lead, to another cluster. What wraps it
// says why.
var errAnotherCluster = errors.New("they may lead to another cluster")

// maxRotationDelay bounds the random pause before changed credentials are used, because accounts
// often share a file.
const maxRotationDelay = 2 * time.Second

// run makes the cluster use changed credentials until ctx ends. It returns when the account must
// connect again.
func (f *credentialReloader) run(ctx context.Context) {
	ticker := time.NewTicker(f.account.agent.cfg.RereadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-f.account.rereadNow:
		}
		if f.mustReconnect(ctx) {
			return
		}
	}
}

// mustReconnect looks at the credentials. If they have changed and lead to the same cluster, it makes
// the cluster use them. Credentials that cannot be used are ignored, and each such error is logged once.
func (f *credentialReloader) mustReconnect(ctx context.Context) bool {
	changed, err := f.cluster.AccessChanged(f.account.cfg.Access)
	if err == nil && changed {
		err = f.rotate(ctx)
	}
	if errors.Is(err, errAnotherCluster) {
		f.account.log.Info("credentials changed, reconnecting to the cluster", "reason", err)
		return true
	}
	if ctx.Err() == nil {
		f.log(err)
		f.account.noteCredentials(err, f.cluster.CredentialsEnd())
	}
	return false
}

func (f *credentialReloader) log(err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if err != nil && failure != f.lastError {
		f.account.log.Warn("cannot reload the credentials, keeping the old ones", "error", err)
	}
	f.lastError = failure
}

// rotate makes the cluster use changed credentials without a new registration. Watches continue from
// their marks.
func (f *credentialReloader) rotate(ctx context.Context) error {
	f.pause(ctx)
	rotated, err := f.cluster.Rotate(ctx, f.account.cfg.Access, f.verify)
	if err != nil {
		return err
	}
	if !rotated {
		return fmt.Errorf("%w: the address or the namespace differs", errAnotherCluster)
	}
	f.account.log.Info("credentials changed, using the new ones")
	f.account.mu.Lock()
	watcher := f.account.watcher
	f.account.mu.Unlock()
	if watcher != nil {
		watcher.CredentialsChanged()
	}
	return nil
}

func (f *credentialReloader) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(min(maxRotationDelay, f.account.agent.cfg.RereadInterval))):
	}
}

// verify checks that the cluster is the one that is registered. A cluster whose uid is hidden cannot
// be recognized. What the account may see of the namespaces is part of its registration.
func (f *credentialReloader) verify(ctx context.Context, rotated *kube.Cluster) error {
	identity, namespaces, err := rotated.Identify(ctx)
	if err != nil {
		return err
	}
	registered, known := f.account.registration()
	switch {
	case identity.UID == "":
		return fmt.Errorf("%w: the account may not read the namespace kube-system, whose uid identifies a cluster", errAnotherCluster)
	case identity.UID != registered.UID:
		return fmt.Errorf("%w: the uid of its namespace kube-system differs", errAnotherCluster)
	case (namespaces == nil) != (known == nil):
		return fmt.Errorf("%w: the account may list all namespaces now, or no longer", errAnotherCluster)
	}
	return nil
}

// registration returns what the account was last registered with.
func (a *account) registration() (vedette.Cluster, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity, a.namespaces
}
