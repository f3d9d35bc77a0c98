package kube

import (
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/kube/credentials"
)

// usedAccess is what a Cluster connects with.
type usedAccess struct {
	cfg    *rest.Config
	source *cloud.Source      // nil if the credentials do not come from a cloud
	exec   *credentials.Cache // nil if they come neither from source nor from an exec plugin
	digest [sha256.Size]byte  // of cfg
}

func (c *Cluster) usedAccess() usedAccess {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access
}

// prepareAccess prepares what was read of an Access for use.
func (c *Cluster) prepareAccess(a Access, cfg *rest.Config) (usedAccess, error) {
	source, err := a.tokenSource(cfg)
	if err != nil {
		return usedAccess{}, err
	}
	cfg.UserAgent = c.opts.UserAgent
	exec, err := c.newExec(cfg, source)
	if err != nil {
		return usedAccess{}, vedette.Errorf(vedette.Invalid, "prepare the credentials for %s: %w", c.base, err)
	}
	return usedAccess{cfg, source, exec, digestAccess(cfg)}, nil
}

// newExec prepares the tokens of a cloud or the kubeconfig's exec plugin; nil if there is neither.
func (c *Cluster) newExec(cfg *rest.Config, source *cloud.Source) (*credentials.Cache, error) {
	if source != nil {
		return credentials.New(c.ctx, credentials.FromCloud(source), c.reloadCredentialsNow), nil
	}
	if cfg.ExecProvider == nil {
		return nil, nil //nolint:nilnil // most kubeconfigs have no plugin
	}
	cluster, err := describeToPlugin(cfg)
	if err != nil {
		return nil, fmt.Errorf("read the exec plugin: %w", err)
	}
	p, err := credentials.NewExecPlugin(cfg.ExecProvider, cluster)
	if err != nil {
		return nil, fmt.Errorf("read the exec plugin: %w", err)
	}
	return credentials.New(c.ctx, p.Run, c.reloadCredentialsNow), nil
}

// useAccess makes new requests use other credentials. If they cannot be used, the ones before stay.
func (c *Cluster) useAccess(used usedAccess) error {
	attempt, _ := c.beginAttempt()
	t, err := c.buildTransports(attempt, used)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "use the credentials for %s: %w", c.base, err)
	}
	c.mu.Lock()
	c.installLocked(t)
	c.mu.Unlock()
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
