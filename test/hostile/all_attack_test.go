package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// allAttacks is the value of attackVariable for the process of TestAllEntryPoints.
const allAttacks = "all"

// directoryVariable tells that process where it may keep files.
const directoryVariable = "VEDETTE_TEST_DIRECTORY"

// counts counts what happened, by name.
type counts struct{ byName sync.Map }

func newCounts(names ...string) *counts {
	c := &counts{}
	for _, name := range names {
		c.byName.Store(name, new(atomic.Int64))
	}
	return c
}

func (c *counts) hit(name string) {
	n, _ := c.byName.LoadOrStore(name, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

func (c *counts) hitter(name string) func() { return func() { c.hit(name) } }

func (c *counts) values() map[string]int64 {
	all := map[string]int64{}
	c.byName.Range(func(name, n any) bool {
		all[name.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}

// hostileWorld is everything that is hostile in one process.
type hostileWorld struct {
	ctx context.Context
	*counts
	dir     string
	field   battlefield
	callers atomic.Int32 // how many have an address
}

// runAllAttacks starts hostile clusters and services, prints where they are, reads where the server is, and
// attacks until standard input is closed. For each further line it prints how often each attack has happened.
func runAllAttacks() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &hostileWorld{ctx: ctx, counts: newCounts(), dir: os.Getenv(directoryVariable)}
	clusters := w.startClusters()
	if err := w.startServices(); err != nil {
		return err
	}
	var err error
	if w.field.Hostile, err = w.startHostileServer(); err != nil {
		return err
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewReader(os.Stdin)
	if err := out.Encode(w.field); err != nil {
		return err
	}
	if line, err := in.ReadBytes('\n'); err != nil || json.Unmarshal(line, &w.field) != nil {
		return fmt.Errorf("read where the server is: %w", err)
	}
	w.begin()
	for {
		if _, err := in.ReadBytes('\n'); err != nil {
			return nil
		}
		all := w.values()
		for name, cluster := range clusters {
			all[name] += cluster.attackCount.Load()
		}
		if err := out.Encode(all); err != nil {
			return err
		}
	}
}

// begin begins all attacks that do not wait to be asked. Each comes from an address of its own.
func (w *hostileWorld) begin() {
	for _, a := range attacks {
		go func() {
			for w.ctx.Err() == nil {
				w.hit(a.name)
				a.run(w.attacker())
				pause(w.ctx, 50*time.Millisecond)
			}
		}()
	}
	for name, run := range agentAttacks {
		w.hit(name) // it has begun; sessions that the server ends begin again
		go run(w, w.attacker(), w.hitter(name))
	}
	for name, run := range callerAttacks {
		for i := range run.parallel {
			go w.callRepeatedly(w.newCaller(), func(c *caller) { w.hit(name); run.once(c, i) })
		}
	}
}

// newAddress returns an address of this machine that nobody else uses.
func (w *hostileWorld) newAddress() string {
	n := w.callers.Add(1)
	return fmt.Sprintf("127.0.%d.%d", 1+n/200, 1+n%200)
}

func (w *hostileWorld) attacker() *attacker {
	return &attacker{server: w.field.GRPC, from: w.newAddress(), ctx: w.ctx}
}

// startClusters starts the hostile API servers.
func (w *hostileWorld) startClusters() map[string]*apiServer {
	w.field.Clusters = map[string]string{}
	all := map[string]*apiServer{}
	start := func(account, name string, intercept attack) {
		s, _ := newAPIServer(intercept)
		all[name] = s
		w.field.Clusters[account] = string(s.account(account).Access.KubeconfigContents)
	}
	for i, a := range operationAttacks() {
		start(fmt.Sprint("operations-", i), a.name, a.answer)
	}
	for name, intercept := range apiServerAttacks() {
		start(strings.ReplaceAll(name, " ", "-"), name, intercept)
	}
	start("containers", "containers", containers)
	return all
}
