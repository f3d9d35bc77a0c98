//go:build unix

package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vedette-io/vedette/test/ports"
)

// Options configures a plane. The zero value is an API server with its etcd in a temporary
// directory.
type Options struct {
	// Controllers adds kube-controller-manager, kube-scheduler and kwok. It adds
	// about a second to the start and 210 MB to the 300 MB of the other two.
	Controllers bool

	// Nodes is how many nodes kwok simulates: 0 means 2, and less means none. It is ignored without
	// Controllers.
	Nodes int

	// Kubelet is the address of the machine on which a real kubelet is the node, for example of
	// test/node: the API server listens there, too, so that Pods reach it, and knows nodes by
	// certificates. There is no kwok then, and Nodes is ignored.
	Kubelet netip.Addr

	// Dir is the directory for data, logs and certificates. It must be empty, missing, or left by a
	// dead plane. Stop removes it. "" means a new temporary directory. Paths beyond some 90 bytes
	// are rejected, because the directory contains Unix sockets.
	Dir string

	// Log receives a line for each step of a build and a start; nil discards them. The logs of the
	// processes are files in Dir.
	Log io.Writer

	// APIServerFlags are added after our own, so they override them.
	APIServerFlags []string

	// ControllerManagerFlags are added to kube-controller-manager's flags.
	ControllerManagerFlags []string

	// Timeout limits a start once the binaries exist. 0 means two minutes, which a busy machine may
	// need.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	switch {
	case o.Kubelet.IsValid():
		o.Nodes = -1
	case o.Nodes == 0:
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

// Plane is a running control plane. Its methods may be called from several goroutines, but only one
// at a time may stop or start processes.
type Plane struct {
	// URL is the URL of the API server: https://127.0.0.1:port.
	URL string
	// Dir contains all files of the plane.
	Dir string
	// AdminToken is a bearer token of a member of system:masters.
	AdminToken string

	options     Options
	binaries    Binaries
	port        *port
	lock        *fileLock
	kubeletPort int // of kwok
	pki         *pki
	client      *http.Client // of the administrator, by certificate
	etcd        *http.Client // for etcd's JSON gateway on its socket

	stop      sync.Once
	processes processes
}

// Start builds the binaries that are missing in the cache, starts a plane, and waits until it is
// ready: the API server is ready, and with Controllers the default ServiceAccount exists and every
// node is Ready. ctx limits only the start; a plane runs until Stop. If Start fails, it leaves
// nothing behind, and the error contains the end of the log of the process that failed.
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

// startAll does the steps of a start in order. Stop cleans up after a failure.
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

// prepare claims the directory and the port, and writes all files that the processes read.
func (p *Plane) prepare() (err error) {
	p.Dir, p.lock, err = claimDir(p.options.Dir)
	if err != nil {
		return err
	}
	p.port, err = reservePort()
	if err != nil {
		return err
	}
	p.kubeletPort, err = ports.Reserve()
	if err != nil {
		return err
	}
	p.URL = fmt.Sprintf("https://127.0.0.1:%d", p.port.number)
	p.pki, err = newPKI(p.options.Kubelet)
	if err != nil {
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

// writeFiles writes certificates, keys, tokens, stages and the administrator's kubeconfig.
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

// Kubeconfig returns the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string { return p.path("kubeconfig") }

// CA returns the path of the certificate authority's certificate, in PEM.
func (p *Plane) CA() string { return p.path("ca.crt") }

// ClientCert returns the path of the administrator's certificate, in PEM.
func (p *Plane) ClientCert() string { return p.path("admin.crt") }

// ClientKey returns the path of the administrator's key, in PEM.
func (p *Plane) ClientKey() string { return p.path("admin.key") }

// Client returns an HTTP client of the administrator. It has no timeout, so that it can watch.
func (p *Plane) Client() *http.Client { return p.client }

// Err returns an error if a process exited unexpectedly, with the end of its log. Processes that
// the plane's methods have stopped are expected to exit.
func (p *Plane) Err() error { return p.processes.unexpectedExit() }

// Stop kills all processes, waits until they are gone, and removes the directory. Nothing is shut
// down gracefully, because nothing is kept. Later calls do nothing.
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
