//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"time"
)

const (
	etcdSocket     = "etcd.sock"
	etcdPeerSocket = "etcd-peer.sock"

	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"

	// ServiceNetwork has the addresses of Services.
	ServiceNetwork = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes

	// pollInterval is how often a condition is checked during a start.
	pollInterval = 25 * time.Millisecond
)

// defineProcesses fills the list of processes in start order.
func (p *Plane) defineProcesses() {
	p.define(etcd, p.etcdFlags())
	p.define(apiServer, append(p.apiServerFlags(), p.options.APIServerFlags...))
	if p.options.Controllers {
		p.define(controllerManager, append(p.controllerManagerFlags(), p.options.ControllerManagerFlags...))
		p.define(scheduler, p.schedulerFlags())
		if !p.options.Kubelet.IsValid() {
			p.define(kwok, p.kwokFlags())
		}
		// The scheduler exits if its memory and the cluster differ, which can happen after an API
		// server was killed. It relies on being restarted, as by a kubelet.
		p.processes.byName(scheduler).restarts = maxRestarts
	}
}

// maxRestarts is how often the scheduler is restarted before that is an error.
const maxRestarts = 5

func (p *Plane) define(name string, flags []string) {
	p.processes.list = append(p.processes.list, &process{
		name: name, path: p.binaries[name], args: flags, dir: p.Dir, log: p.path(name + ".log"),
	})
}

// etcdFlags run one member that does not flush to disk and elects itself at once.
func (p *Plane) etcdFlags() []string {
	client, peer := "unix://"+p.path(etcdSocket), "unix://"+p.path(etcdPeerSocket)
	return []string{
		"--name=plane",
		"--data-dir=" + p.etcdDataDir(),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=plane=" + peer,
		"--unsafe-no-fsync",
		"--heartbeat-interval=50", "--election-timeout=500",
		"--watch-progress-notify-interval=5s", // Kubernetes requires this of etcd
		"--log-level=warn",
	}
}

// apiServerFlags keep the defaults that clients can notice. They disable what a single API server
// does not need: other API servers and, without controllers, the admission plugin that rejects Pods
// for lack of a ServiceAccount.
func (p *Plane) apiServerFlags() []string {
	flags := []string{
		"--etcd-servers=unix://" + p.path(etcdSocket),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.port.number),
		"--permit-port-sharing=true",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + p.path("run"),
		"--client-ca-file=" + p.CA(),
		"--tls-cert-file=" + p.path("server.crt"),
		"--tls-private-key-file=" + p.path("server.key"),
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--kubelet-preferred-address-types=InternalIP", // because names of nodes do not resolve
		"--kubelet-certificate-authority=" + p.CA(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("tokens.key"),
		"--service-account-signing-key-file=" + p.path("tokens.key"),
		"--service-cluster-ip-range=" + ServiceNetwork,
		"--allow-privileged=true",
		"--shutdown-watch-termination-grace-period=5s", // otherwise an open watch delays the exit by a minute
		"--profiling=false",
	}
	if !p.options.Controllers {
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if machine := p.options.Kubelet; machine.IsValid() { // flags that come later count
		flags = append(flags,
			"--bind-address=0.0.0.0", "--advertise-address="+machine.String(), "--endpoint-reconciler-type=lease",
			"--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction", // besides RBAC: lists add up
			"--kubelet-client-certificate="+p.ClientCert(), "--kubelet-client-key="+p.ClientKey(),
		)
	}
	return flags
}

// startCore starts etcd and the API server together, because the API server itself waits for etcd.
func (p *Plane) startCore(ctx context.Context) error {
	if err := p.StartEtcd(ctx); err != nil {
		return err
	}
	return p.StartAPIServer(ctx)
}

// StartEtcd starts etcd again after KillEtcd, on the same data, and waits until it is healthy.
func (p *Plane) StartEtcd(ctx context.Context) error {
	if err := p.processes.byName(etcd).start(); err != nil {
		return err
	}
	return p.waitUntil(ctx, "etcd is healthy", func(ctx context.Context) error {
		return probe(ctx, p.etcd, etcdURL+"/health")
	})
}

// KillEtcd kills etcd with SIGKILL and returns when it is gone. The API server continues, and fails
// requests that its cache cannot answer.
func (p *Plane) KillEtcd() { p.processes.byName(etcd).endWith(syscall.SIGKILL) }

// StartAPIServer starts the API server again after KillAPIServer or StopAPIServer, on the same port
// and data, and waits until it is ready.
func (p *Plane) StartAPIServer(ctx context.Context) error {
	if err := p.processes.byName(apiServer).start(); err != nil {
		return err
	}
	return p.waitUntil(ctx, "kube-apiserver is ready", func(ctx context.Context) error {
		return probe(ctx, p.client, p.URL+"/readyz")
	})
}

// KillAPIServer kills the API server with SIGKILL and returns when it is gone. Its clients'
// connections break and new ones are refused.
func (p *Plane) KillAPIServer() { p.processes.byName(apiServer).endWith(syscall.SIGKILL) }

// StopAPIServer stops the API server with SIGTERM, as an administrator would: it closes watches and
// completes requests. It returns when the API server is gone, or with an error if ctx ends first.
func (p *Plane) StopAPIServer(ctx context.Context) error {
	return p.processes.byName(apiServer).terminate(ctx)
}

// PauseAPIServer freezes the API server. Connections stay open, the kernel accepts new ones, and
// nothing is answered until ResumeAPIServer.
func (p *Plane) PauseAPIServer() error { return p.processes.byName(apiServer).pause() }

// ResumeAPIServer ends PauseAPIServer.
func (p *Plane) ResumeAPIServer() error { return p.processes.byName(apiServer).signal(syscall.SIGCONT) }

// PauseEtcd freezes etcd, like a disk that accepts no writes, until ResumeEtcd.
func (p *Plane) PauseEtcd() error { return p.processes.byName(etcd).pause() }

// ResumeEtcd ends PauseEtcd.
func (p *Plane) ResumeEtcd() error { return p.processes.byName(etcd).signal(syscall.SIGCONT) }

// PIDs returns the process ids of the running programs by name.
func (p *Plane) PIDs() map[string]int {
	pids := map[string]int{}
	for _, process := range p.processes.list {
		if pid := process.pid(); pid != 0 {
			pids[process.name] = pid
		}
	}
	return pids
}

// waitUntil polls until condition returns nil. It fails if ctx ends, or at once if a process has
// died, with the end of its log.
func (p *Plane) waitUntil(ctx context.Context, what string, condition func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if exitErr := p.processes.unexpectedExit(); exitErr != nil {
			return fmt.Errorf("wait until %s: %w", what, exitErr)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; at last: %w", what, context.Cause(ctx), err)
		}
	}
}

// probe requests a page and expects status 200 within a second. The limit is short so that one lost
// response does not use up the time of a start.
func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: got %s", url, response.Status)
	}
	return nil
}
