//go:build unix

package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options say what a plane consists of. The zero value is an API server with
// its etcd in a temporary directory.
type Options struct {
	// Controllers adds kube-controller-manager, kube-scheduler and kwok. It adds
	// about a second to the start and 210 MB to the 300 MB of the other two.
	Controllers bool

	// Nodes is how many nodes kwok plays: 0 means 2, and less means none. It is
	// ignored without Controllers.
	Nodes int

	// Dir is where the plane keeps its data, logs and certificates. It must be
	// empty, missing, or left by a plane that is dead. Stop removes it. Empty
	// means a new temporary directory. It holds Unix sockets, so a path beyond
	// some 90 bytes is refused.
	Dir string

	// Log gets a line for each step of a build and of the start. Nil discards
	// them. What the processes write goes to files in Dir.
	Log io.Writer

	// APIServerFlags are added after our own, so that they win.
	APIServerFlags []string

	// ControllerManagerFlags are the same for kube-controller-manager.
	ControllerManagerFlags []string

	// Timeout bounds how long the start may take once the binaries are there.
	// 0 means two minutes, which a busy machine may need.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// Plane is a running control plane. Its methods may be used from several
// goroutines, but only one may stop or start processes at a time.
type Plane struct {
	// URL is where the API server answers: https://127.0.0.1:port.
	URL string
	// Dir holds everything of the plane.
	Dir string
	// AdminToken is a bearer token of a member of system:masters.
	AdminToken string

	options     Options
	binaries    Binaries
	port        *port
	lock        *fileLock
	kubeletPort int // kwok's
	pki         *pki
	client      *http.Client // the administrator, by certificate
	etcd        *http.Client // etcd's JSON gateway on its socket

	stop      sync.Once
	processes processes
}

// Start builds what is missing in the cache, starts a plane and waits until it
// is ready: the API server says so, and with Controllers the default
// ServiceAccount exists and every node is Ready. The context bounds the start
// alone; a plane lives until Stop. When Start fails nothing of it is left, and
// the error holds the end of the log of the process that failed.
func Start(ctx context.Context, options Options) (*Plane, error) {
	options = options.withDefaults()
	binaries, err := Build(ctx, options.Log)
	if err != nil {
		return nil, err
	}
	p := &Plane{options: options, binaries: binaries, AdminToken: rand.Text()}
	if err := p.startAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a control plane: %w", err), p.Stop())
	}
	return p, nil
}

// startAll does the steps of a start in order. What it leaves half done is for
// Stop to clear.
func (p *Plane) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Timeout,
		fmt.Errorf("not ready after %v", p.options.Timeout))
	defer cancel()
	began := time.Now()
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.startCore(ctx); err != nil {
		return err
	}
	if p.options.Controllers {
		if err := p.createNodes(ctx); err != nil {
			return err
		}
		if err := p.StartControllers(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.options.Log, "controlplane: ready at %s after %v\n", p.URL, time.Since(began).Round(time.Millisecond))
	return nil
}

// prepare claims the directory and the port, and writes every file that the
// processes read.
func (p *Plane) prepare() (err error) {
	if p.Dir, p.lock, err = claimDir(p.options.Dir); err != nil {
		return err
	}
	if p.port, err = reservePort(); err != nil {
		return err
	}
	if p.kubeletPort, err = findFreePort(); err != nil {
		return err
	}
	p.URL = fmt.Sprintf("https://127.0.0.1:%d", p.port.number)
	if p.pki, err = newPKI(); err != nil {
		return err
	}
	if err := p.writeFiles(); err != nil {
		return err
	}
	p.etcd = socketClient(p.path(etcdSocket))
	p.client, err = p.pki.client(adminName, adminGroup)
	p.defineProcesses()
	return err
}

// writeFiles puts certificates, keys, tokens, stages and the administrator's
// kubeconfig into the directory.
func (p *Plane) writeFiles() error {
	if err := p.pki.write(p.Dir); err != nil {
		return err
	}
	tokens := fmt.Sprintf("%s,%s,%s,%q\n", p.AdminToken, adminName, adminName, adminGroup)
	if err := os.WriteFile(p.path("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := os.WriteFile(p.path("kwok.yaml"), p.kwokConfig(), 0o600); err != nil {
		return fmt.Errorf("write kwok's configuration: %w", err)
	}
	if err := p.AppendLog("started"); err != nil {
		return err
	}
	kubeconfig, err := p.certKubeconfig(adminName, adminGroup)
	if err != nil {
		return err
	}
	return os.WriteFile(p.Kubeconfig(), kubeconfig, 0o600)
}

func (p *Plane) path(name string) string { return filepath.Join(p.Dir, name) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string { return p.path("kubeconfig") }

// CA is the path of the certificate authority's certificate, in PEM.
func (p *Plane) CA() string { return p.path("ca.crt") }

// ClientCert and ClientKey are the paths of the administrator's certificate and
// key, in PEM.
func (p *Plane) ClientCert() string { return p.path("admin.crt") }

// ClientKey is described at ClientCert.
func (p *Plane) ClientKey() string { return p.path("admin.key") }

// Client returns a client that trusts the plane and is its administrator. It
// has no timeout, so that it can watch.
func (p *Plane) Client() *http.Client { return p.client }

// Err returns nil while everything runs that should, and else which process
// ended by itself, with the end of its log. One that was killed through the plane
// is none.
func (p *Plane) Err() error { return p.processes.unexpectedExit() }

// Stop kills every process, waits until they are gone, and removes the
// directory. Nothing is shut down gently, since nothing is kept. Later calls do
// nothing.
func (p *Plane) Stop() (err error) {
	p.stop.Do(func() {
		p.processes.killAll()
		if p.client != nil {
			p.client.CloseIdleConnections()
		}
		if p.etcd != nil {
			p.etcd.CloseIdleConnections()
		}
		p.port.release()
		if p.lock != nil {
			err = os.RemoveAll(p.Dir)
			p.lock.release()
		}
	})
	return err
}
