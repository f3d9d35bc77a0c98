//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"os"
)

// Backup copies etcd's data to dir, which must not exist. Etcd and the API server are down
// meanwhile, so that the copy is of one moment. They start again on the same ports.
func (p *Plane) Backup(ctx context.Context, dir string) error {
	p.KillAPIServer()
	p.KillEtcd()
	if err := os.CopyFS(dir, os.DirFS(p.etcdDataDir())); err != nil {
		return fmt.Errorf("back up etcd: %w", err)
	}
	return p.startCore(ctx)
}

// Restore replaces etcd's data by a copy that Backup made: the cluster is as it was then. The next
// changes get resourceVersions that other changes had before. Controllers continue to run, as those
// of real clusters often do.
func (p *Plane) Restore(ctx context.Context, dir string) error {
	if err := p.RestoreEtcd(ctx, dir); err != nil {
		return err
	}
	return p.StartAPIServer(ctx)
}

// RestoreEtcd is Restore without the API server, which is stopped afterwards: what is stored can be looked at before anybody changes it.
func (p *Plane) RestoreEtcd(ctx context.Context, dir string) error {
	p.KillAPIServer()
	p.KillEtcd()
	if err := os.RemoveAll(p.etcdDataDir()); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.CopyFS(p.etcdDataDir(), os.DirFS(dir)); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	return p.StartEtcd(ctx)
}

func (p *Plane) etcdDataDir() string { return p.path("etcd") }
