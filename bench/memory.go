package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
)

// mixedKinds returns n objects with the kinds and proportions of the reference cluster.
func mixedKinds(n int) map[vedette.Kind]int {
	objects := map[vedette.Kind]int{}
	for kind, share := range map[string]int{"Pod": 42, "ReplicaSet.apps": 21, "Deployment.apps": 10, "Service": 10,
		"ConfigMap": 10, "Ingress.networking.k8s.io": 4, "Job.batch": 3} {
		objects[vedette.ParseKind(kind)] = n * share / 100
	}
	return objects
}

// evenKinds returns objects of 10 kinds in equal numbers.
func evenKinds(each int) map[vedette.Kind]int {
	objects := map[vedette.Kind]int{}
	for _, kind := range []string{"Pod", "ReplicaSet.apps", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch",
		"CronJob.batch", "Service", "Ingress.networking.k8s.io", "ConfigMap"} {
		objects[vedette.ParseKind(kind)] = each
	}
	return objects
}

// memory measures the memory of agents with different clusters.
func memory(ctx context.Context, b *bench) error {
	for _, n := range []int{1000, 10000, 50000} {
		err := b.agentMemory(ctx, fmt.Sprintf("1 account, %d objects of 7 kinds", b.scale(n)),
			fleet.Config{Objects: mixedKinds(b.scale(n))}, 40, 64)
		if err != nil {
			return err
		}
	}
	accounts := b.scale(100)
	return b.agentMemory(ctx, fmt.Sprintf("%d accounts, 10 kinds each, %d objects", accounts, accounts*1000),
		fleet.Config{Clusters: accounts, Objects: evenKinds(100)}, 200, 320)
}

// simulation is a set of simulated clusters with a server and one agent for all of them.
type simulation struct {
	*fleet.Fleet
	server   *server
	accounts []account     // one for each cluster
	agent    *program      // nil if agents are started separately
	synced   time.Duration // from the agent's start
}

func (s *simulation) stop() {
	s.agent.stop()
	s.server.stop()
	_ = s.Close() // no client is connected anymore
}

// objects returns how many objects the server returns.
func (s *simulation) objects() (n int) {
	for i := range s.Clusters() {
		n += s.Cluster(i).Count()
	}
	return n
}

// kindNames returns the kinds that an account must have to watch all objects of a simulated
// cluster.
func kindNames(objects map[vedette.Kind]int) []string {
	names := []string{"Namespace"}
	for kind := range objects {
		names = append(names, kind.String())
	}
	return names
}

// writeAccounts writes kubeconfigs for all clusters of a fleet.
func (b *bench) writeAccounts(f *fleet.Fleet, objects map[vedette.Kind]int) ([]account, error) {
	dir, err := os.MkdirTemp(b.dir, "kubeconfigs-")
	if err != nil {
		return nil, err
	}
	var accounts []account
	for i := range f.Clusters() {
		a := account{fmt.Sprintf("account-%03d", i), filepath.Join(dir, fmt.Sprint(i)), kindNames(objects)}
		if err := os.WriteFile(a.kubeconfig, f.Kubeconfig(i), 0o600); err != nil {
			return nil, err
		}
		accounts = append(accounts, a)
	}
	return accounts, nil
}

// simulateWithoutAgent starts a fleet and a server.
func (b *bench) simulateWithoutAgent(ctx context.Context, cfg fleet.Config) (*simulation, error) {
	f, err := fleet.Start(cfg)
	if err != nil {
		return nil, err
	}
	s := &simulation{Fleet: f}
	s.accounts, err = b.writeAccounts(f, cfg.Objects)
	if err == nil {
		s.server, err = b.startServer(ctx, "")
	}
	if err != nil {
		_ = f.Close() // no client is connected
		return nil, err
	}
	return s, nil
}

// simulate starts simulated clusters, a server and an agent, and waits until all accounts are
// synced. If via is not nil, the agent connects to the address that via returns for the
// server's address.
func (b *bench) simulate(ctx context.Context, cfg fleet.Config, via func(string) (string, error)) (*simulation, error) {
	s, err := b.simulateWithoutAgent(ctx, cfg)
	if err != nil {
		return nil, err
	}
	address := s.server.grpc
	if via != nil {
		address, err = via(address)
		if err != nil {
			return s, err
		}
	}
	began := time.Now()
	s.agent, err = b.startAgent(address, s.accounts...)
	if err != nil {
		return s, err
	}
	ended, err := s.server.awaitCount(ctx, "", s.objects(), 50*time.Millisecond, s.agent)
	s.synced = ended.Sub(began)
	return s, err
}

func (b *bench) agentMemory(ctx context.Context, what string, cfg fleet.Config, steady, peak float64) error {
	s, err := b.simulate(ctx, cfg, nil)
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return err
	}
	first, err := s.agent.usage()
	if err != nil {
		return err
	}
	for range 3 { // the second and third time show what an agent uses in the long run
		churn, cancel := context.WithTimeout(ctx, 10*time.Second)
		s.Churn(churn, 1)
		cancel()
	}
	u, err := s.agent.usage()
	if err != nil {
		return err
	}
	b.table.add(row{measure: "agent, " + what, target: fmt.Sprintf("%.0f MiB, peak %.0f", steady, peak), result: u.memory(),
		ratio: percentOfTarget(float64(u.RSS)/mib, steady) + ", " + percentOfTarget(float64(u.Peak)/mib, peak),
		remark: fmt.Sprintf("synced in %s (%s); then one change a second and account for 30 s (%s)", seconds(s.synced), first.cpu(),
			(u.CPU-first.CPU).String()+" CPU")})
	return nil
}
