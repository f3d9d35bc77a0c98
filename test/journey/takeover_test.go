package journey

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/programs"
)

// agentPrograms starts agents as processes of their own. All have all clusters of a fleet.
type agentPrograms struct {
	h        *stack
	program  string
	dir      string
	clusters *fleet.Fleet
}

func buildAgent(h *stack, clusters *fleet.Fleet) *agentPrograms {
	h.t.Helper()
	p := &agentPrograms{h: h, dir: h.t.TempDir(), clusters: clusters}
	p.program = filepath.Join(p.dir, "vedette-agent")
	if err := programs.Build(h.t.Context(), p.dir, "vedette-agent"); err != nil {
		h.t.Fatal(err)
	}
	for i := range clusters.Clusters() {
		p.write(fmt.Sprintf("cluster-%d", i), string(clusters.Kubeconfig(i)))
	}
	return p
}

func (p *agentPrograms) write(name, text string) string {
	p.h.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.h.t.Fatal(err)
	}
	return file
}

// start starts an agent, which is killed at the end of the test.
func (p *agentPrograms) start(id vedette.AgentID) *exec.Cmd {
	p.h.t.Helper()
	var config strings.Builder
	fmt.Fprintf(&config, "agentId: %s\nclouddriver: {grpc: %q, insecure: true, noProxy: true}\nserver: {host: 127.0.0.1, port: 0}\n", id, p.h.srv.GRPC())
	fmt.Fprint(&config, "logging: {level: debug}\nkubernetes:\n  noProxy: true\n  accounts:\n")
	for i := range p.clusters.Clusters() {
		fmt.Fprintf(&config, "  - {name: shared-%d, kubeconfigFile: %q, kinds: [pod]}\n", i, filepath.Join(p.dir, fmt.Sprintf("cluster-%d", i)))
	}
	cmd := exec.Command(p.program, "--config", p.write(string(id)+".yml", config.String()))
	cmd.Stdout, cmd.Stderr = p.h.log, p.h.log
	if err := cmd.Start(); err != nil {
		p.h.t.Fatal(err)
	}
	p.h.t.Cleanup(func() { p.kill(cmd) })
	return cmd
}

// kill ends a process as kill -9 does.
func (p *agentPrograms) kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it always fails, because the process was killed
	}
}

func (p *agentPrograms) signal(cmd *exec.Cmd, s syscall.Signal) {
	p.h.t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		p.h.t.Fatal(err)
	}
}

// TestSharedAccountsMoveWithoutLists runs three agents that share the accounts of six clusters. One is killed, and one
// is frozen and continues. It checks who takes the accounts over, that this and all moves cost no
// list, that changes arrive meanwhile, and that the store equals the clusters at the end.
func TestSharedAccountsMoveWithoutLists(t *testing.T) {
	pods := vedette.Kind{Name: "Pod"}
	clusters, err := fleet.Start(fleet.Config{Clusters: 6, Objects: map[vedette.Kind]int{pods: 50}, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clusters.Close(); err != nil {
			t.Error(err)
		}
	})
	h := startServer(t, assignment.BalanceConfig{Settle: time.Second, Tenure: time.Second, Pause: time.Second})
	agents := buildAgent(h, clusters)
	agents.start("a1")
	h.awaitShares(map[vedette.AgentID]int{"a1": 6})
	before := clusters.Counts()
	second := agents.start("a2")
	h.awaitShares(map[vedette.AgentID]int{"a1": 3, "a2": 3})
	third := agents.start("a3")
	h.awaitShares(map[vedette.AgentID]int{"a1": 2, "a2": 2, "a3": 2})
	moves := func() int { return strings.Count(h.log.String(), "account moved to balance agents") }
	h.await("the lines of the moves", func() bool { return moves() >= 5 }) // they may be written later
	if n := moves(); n != 5 {
		t.Errorf("got %d moves for two agents that joined, want 3 and 2", n)
	}

	agents.kill(second)
	h.awaitShares(map[vedette.AgentID]int{"a1": 3, "a3": 3})
	h.expectChangesArrive(clusters, pods, 60)

	agents.signal(third, syscall.SIGSTOP)
	frozenAt := time.Now()
	h.awaitShares(map[vedette.AgentID]int{"a1": 6})
	t.Logf("all accounts of the frozen agent are up to date again after %v", time.Since(frozenAt))
	// Otherwise they were taken over because the connection ended.
	h.await("the line that a3 is silent", func() bool { return strings.Contains(h.log.String(), "an agent is silent") })
	h.expectChangesArrive(clusters, pods, 61)
	agents.signal(third, syscall.SIGCONT)
	h.awaitShares(map[vedette.AgentID]int{"a1": 3, "a3": 3})
	h.expectChangesArrive(clusters, pods, 62)

	h.expectStored(clusters, pods)
	if n := clusters.Counts().Minus(before).ObjectLists(); n != 0 {
		t.Errorf("got %d lists of objects because of moves, want none", n)
	}
}

// awaitShares waits until agents report so many accounts that are up to date, and no other agent any.
func (h *stack) awaitShares(want map[vedette.AgentID]int) {
	h.t.Helper()
	h.await(fmt.Sprintf("accounts that are shared as %v", want), func() bool {
		got := map[vedette.AgentID]int{}
		for _, a := range h.accounts() {
			if a.Status == "Ready" {
				got[a.Agent]++
			}
		}
		return maps.Equal(got, want)
	})
}

// expectStored checks that the server has exactly the objects of the clusters.
func (h *stack) expectStored(clusters *fleet.Fleet, kind vedette.Kind) {
	h.t.Helper()
	for i := range clusters.Clusters() {
		want := map[string]string{}
		for o := range clusters.Cluster(i).Objects(kind) {
			want[o.Key.Namespace+"/"+o.Key.Name+" "+o.UID] = o.ResourceVersion
		}
		var list struct {
			Items []struct{ Namespace, Name, UID, ResourceVersion string }
		}
		if !h.get(fmt.Sprintf("/vedette/v1/objects?account=shared-%d&kind=pods&limit=500", i), &list) {
			h.t.Fatalf("cannot list objects: want %d", http.StatusOK)
		}
		got := map[string]string{}
		for _, o := range list.Items {
			got[o.Namespace+"/"+o.Name+" "+o.UID] = o.ResourceVersion
		}
		if !maps.Equal(got, want) {
			h.t.Errorf("account shared-%d: got %d objects that differ from the cluster's %d:\n%v\n%v", i, len(got), len(want), got, want)
		}
	}
}
