package kube

import (
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
)

// usedAccess is what a Cluster connects with.
type usedAccess struct {
	cfg    *rest.Config
	exec   *execAuthenticator // nil if the credentials do not come from an exec plugin or from Google
	digest [sha256.Size]byte  // of cfg and the files that it names
}

func (c *Cluster) usedAccess() usedAccess {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access
}

// prepareAccess prepares what was read of an Access for use.
func (c *Cluster) prepareAccess(a Access, cfg *rest.Config) (usedAccess, error) {
	google := a.googleTokens(cfg)
	cfg.UserAgent = c.opts.UserAgent
	digest, err := digestAccess(cfg)
	if err != nil {
		return usedAccess{}, err
	}
	exec, err := c.newExec(cfg, google)
	if err != nil {
		return usedAccess{}, vedette.Errorf(vedette.Invalid, "prepare the credentials for %s: %w", c.base, err)
	}
	return usedAccess{cfg, exec, digest}, nil
}

// newExec prepares Google's tokens or the kubeconfig's exec plugin; nil if there is neither.
func (c *Cluster) newExec(cfg *rest.Config, google *googleTokens) (*execAuthenticator, error) {
	if google != nil {
		return &execAuthenticator{ctx: c.ctx, run: google.run, onRotate: c.reloadCredentialsNow}, google.check()
	}
	if cfg.ExecProvider == nil {
		return nil, nil //nolint:nilnil // most kubeconfigs have no plugin
	}
	p, err := newExecPlugin(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the exec plugin: %w", err)
	}
	return &execAuthenticator{ctx: c.ctx, run: p.run, onRotate: c.reloadCredentialsNow}, nil
}

// useAccess makes new requests use other credentials. If they cannot be used, the ones before stay.
func (c *Cluster) useAccess(used usedAccess) error {
	c.mu.Lock()
	before := c.access
	c.access = used
	c.mu.Unlock()
	if err := c.rebuildTransports(); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.access = before
		return vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", c.base, err)
	}
	c.conns.retireAll()
	return nil
}

// Rotate makes new requests use what a names now, if the address and the default namespace are the
// same; otherwise it returns false. Open streams go on over their connections. verify gets a Cluster
// that uses a already; if it returns an error, c stays as it is.
func (c *Cluster) Rotate(ctx context.Context, a Access, verify func(ctx context.Context, rotated *Cluster) error) (bool, error) {
	rotated, err := Connect(a, c.opts)
	if err != nil {
		return false, err
	}
	defer rotated.Close()
	if rotated.base.String() != c.base.String() || rotated.namespace != c.namespace {
		return false, nil
	}
	if err := verify(ctx, rotated); err != nil {
		return false, err
	}
	used, err := c.prepareAccess(a, rest.CopyConfig(rotated.usedAccess().cfg)) // what was verified
	if err != nil {
		return false, err
	}
	return true, c.useAccess(used)
}
