package convergence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestReadYourWrites changes objects by operations while the clusters also change and the links to
// the agents fail. It reads each object as soon as the outcome arrives, and for a second after: it
// must have that version or a newer one, and never an older one again. The server is not killed,
// because it keeps the order of writes in memory. Whether the account moves between agents must
// make no difference.
func TestReadYourWrites(t *testing.T) {
	runAlone(t, anyDatabase(), twoAgents, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		call := &caller{w: w, account: "account-0"}
		var all sync.WaitGroup
		load := &workload{cluster: w.clusters[0], rng: rand.New(rand.NewPCG(3, 3)), keepKinds: true}
		all.Go(func() { load.run(ctx) })
		all.Go(func() { w.disturbLinks(ctx) })
		readers := make([]*readbackClient, 6)
		for i := range readers {
			readers[i] = &readbackClient{caller: call, name: fmt.Sprintf("read-%d", i)}
			all.Go(func() { readers[i].run(ctx, i) })
		}
		all.Wait()
		log, err := os.ReadFile(w.server.Log)
		if err != nil {
			t.Fatal(err)
		}
		reads, unconfirmed := 0, 0
		for _, r := range readers {
			reads += r.reads
			for id, problem := range r.problems {
				if strings.Contains(string(log), `msg="write-through failed; the feed will report the object" operation=`+id) {
					unconfirmed++ // no agent held the account while the outcome waited
					continue
				}
				t.Error(problem)
			}
		}
		t.Logf("%d reads after %d operations; %d objects were not stored in time", reads, len(call.operations), unconfirmed)
		if reads < 1000 {
			t.Errorf("got only %d reads, which is too few to prove anything", reads)
		}
		w.awaitConvergence()
	})
}

// disturbLinks disturbs the links between agents and server, and slows API servers down.
func (w *world) disturbLinks(ctx context.Context) {
	rng := rand.New(rand.NewPCG(7, 7))
	for ctx.Err() == nil {
		p := w.agents[rng.IntN(len(w.agents))].link
		switch rng.IntN(4) {
		case 0, 1:
			p.Cut()
		case 2:
			p.Slow(100 * time.Millisecond)
		case 3:
			p.Blackhole()
		}
		sleep(ctx, time.Duration(500+rng.IntN(1500))*time.Millisecond)
		p.Heal()
	}
}

// readbackClient repeatedly writes one object and reads it.
type readbackClient struct {
	*caller
	name     string
	reads    int
	problems map[string]string // problems by operation
}

func (r *readbackClient) run(ctx context.Context, index int) {
	r.problems = map[string]string{}
	for n := 0; ctx.Err() == nil; n++ {
		o := r.newOperation("apply", r.name, n, 10*time.Second)
		body := object{"manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": r.name, "namespace": namespaces[0]}, "data": object{"n": fmt.Sprint(n)}}}
		deleted := index%2 == 1 && n%3 == 2 // half of the clients delete sometimes
		if deleted {
			o.verb, body = "delete", object{"kind": "configmap", "namespace": namespaces[0], "name": r.name}
		}
		out := r.send(ctx, o, body)
		switch {
		case out.State != "done" || out.Repeated:
		case deleted:
			r.verifyReads(o.id, 0, true, time.Second)
		case len(out.Objects) == 1:
			r.verifyReads(o.id, parseVersion(out.Objects[0].Metadata.ResourceVersion), false, time.Second/time.Duration(1+n%2*9))
		}
	}
}

func parseVersion(version string) int {
	n, _ := strconv.Atoi(version) // current API servers use numbers; 0 is older than all
	return n
}

// verifyReads reads for a while, and records versions that are older than one seen before.
func (r *readbackClient) verifyReads(id string, minVersion int, deleted bool, duration time.Duration) {
	for began := time.Now(); time.Since(began) < duration; sleep(r.w.t.Context(), 20*time.Millisecond) {
		status, version, err := r.read()
		if err != nil {
			r.w.t.Error(err)
			return
		}
		if status == http.StatusServiceUnavailable && deleted { // nobody can ask the cluster just now
			continue
		}
		r.reads++
		switch {
		case status == http.StatusNotFound && deleted:
		case status == http.StatusOK && !deleted && version >= minVersion:
			minVersion = version
		default:
			r.problems[id] = fmt.Sprintf("%s: %v after operation %s: got status %d and version %d, want at least version %d or deleted: %v",
				r.name, time.Since(began), id, status, version, minVersion, deleted)
			return
		}
	}
}

func (r *readbackClient) read() (status, version int, err error) {
	var o struct {
		ResourceVersion string
		Error           struct{ Kind, Message string }
	}
	err = getJSON(r.w.t.Context(), r.w.rest+"/vedette/v1/objects/"+r.account+"/configmaps/"+namespaces[0]+"/"+r.name, &o)
	switch {
	case err != nil:
		return 0, 0, err
	case o.Error.Kind == "not_found":
		return http.StatusNotFound, 0, nil
	case o.Error.Kind == "unavailable":
		return http.StatusServiceUnavailable, 0, nil
	case o.Error.Kind != "":
		return 0, 0, fmt.Errorf("read %s: %s", r.name, o.Error.Message)
	}
	return http.StatusOK, parseVersion(o.ResourceVersion), nil
}
