package task_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// deployAll is a task with a step of each sort.
const deployAll = `[{"deployManifest":{"account":"prod","moniker":{"app":"web"},"manifests":[
	{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"}},
	{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"},"data":{"password":"hunter2"}},
	{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop","annotations":{"strategy.spinnaker.io/versioned":"false"}},"stringData":{"password":"hunter2"}}]}},
	{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}},
	{"undoRolloutManifest":{"account":"prod","manifestName":"deployment web","location":"shop","numRevisionsBack":1}},
	{"deleteManifest":{"account":"prod","manifestName":"pod web-0","location":"shop"}}]`

// historyOf returns the lines of a task without those of a takeover.
func historyOf(v taskView) (lines []string) {
	for _, h := range v.History {
		if !strings.Contains(h.Status, "goes on with it") {
			lines = append(lines, h.Phase+": "+h.Status)
		}
	}
	return lines
}

// TestTaskGoesOnAtAnotherServer kills the server of a task at each of its operations, before and after it took effect in the cluster. Another
// server goes on, each change takes effect once, and the history is complete.
func TestTaskGoesOnAtAnotherServer(t *testing.T) {
	var want taskView
	var wantEffects map[string]int
	total := 0
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s := in.servers["s0"]
		want = s.awaitEnd(t, s.post(t, "/kubernetes/ops", deployAll))
		wantEffects, total = in.effects, in.count
		if want.Status.Failed || in.servers["s1"].Copies() != 0 {
			t.Fatalf("got %+v and %d copies after the end", want.Status, in.servers["s1"].Copies())
		}
	})
	if total < 8 {
		t.Fatalf("got %d operations: the task does not have a step of each sort", total)
	}
	for n := 1; n <= total; n++ {
		for _, isAfter := range []bool{false, true} {
			t.Run(fmt.Sprintf("operation %d, after its effect: %v", n, isAfter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in := newSharedInstallation(t, 3)
					in.hook = func(i int, s *sharedServer, op vedette.Operation, after bool) bool {
						if i != n || after != isAfter {
							return false
						}
						t.Logf("killed at %s", nameOf(op))
						s.kill()
						return true
					}
					id := in.servers["s0"].post(t, "/kubernetes/ops", deployAll)
					v := in.servers["s2"].awaitEnd(t, id)
					if v.Status.Failed {
						t.Fatalf("got %+v", v)
					}
					checkEffects(t, in, wantEffects)
					checkHistory(t, v, want)
					if a, b := resultsOf(t, v), resultsOf(t, want); a != b {
						t.Errorf("got results %s, want %s", a, b)
					}
					in.checkSecrets(t)
				})
			})
		}
	}
}

// checkEffects checks that each change took effect once. A version whose creation was not answered may be applied to what was created.
// An undo goes to the revision that was picked first.
func checkEffects(t *testing.T, in *installation, want map[string]int) {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	got := maps.Clone(in.effects)
	delete(got, "apply web-v003")
	undos := 0
	for name, n := range got {
		if n != 1 {
			t.Errorf("%s took effect %d times", name, n)
		}
		if strings.HasPrefix(name, "undo") {
			undos++
		}
	}
	if len(got) != len(want) || undos != 1 {
		t.Errorf("got the effects %v, want those of %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func checkHistory(t *testing.T, got, want taskView) {
	t.Helper()
	a, b := historyOf(got), historyOf(want)
	for i := range b { // the revision depends on when the task asked
		b[i] = revisions.Replace(b[i])
	}
	for i := range a {
		a[i] = revisions.Replace(a[i])
	}
	a = slices.Compact(a) // a creation whose answer was lost is submitted a second time
	if !slices.Equal(a, slices.Compact(b)) {
		t.Errorf("got the history\n%s\nwant\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if len(historyOf(got)) == len(got.History) {
		t.Error("the history does not say that another server goes on")
	}
}

var revisions = func() *strings.Replacer {
	var pairs []string
	for n := 40; n > 4; n-- {
		pairs = append(pairs, fmt.Sprintf("revision %d", n), "revision N")
	}
	return strings.NewReplacer(pairs...)
}()

func resultsOf(t *testing.T, v taskView) string {
	raw, err := json.Marshal(v.ResultObjects)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// checkSecrets checks that nothing of a Secret is stored or logged.
func (in *installation) checkSecrets(t *testing.T) {
	t.Helper()
	texts := slices.Clone(in.rows.storedBodies)
	for _, s := range in.servers {
		texts = append(texts, s.log.String())
	}
	for _, text := range texts {
		if strings.Contains(text, "aHVudGVyMg") || strings.Contains(text, `stringData`) {
			t.Errorf("a Secret is stored or logged: %s", text)
		}
	}
}

// TestServersThatDieInTurn kills each server that goes on with a task.
func TestServersThatDieInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 5)
		kills := 0
		in.hook = func(_ int, s *sharedServer, op vedette.Operation, after bool) bool {
			if !op.Changes() || kills == 4 || after != (kills%2 == 0) {
				return false
			}
			kills++
			s.kill()
			return true
		}
		id := in.servers["s0"].post(t, "/kubernetes/ops", deployAll)
		time.Sleep(time.Minute)
		var survivor *sharedServer
		for _, s := range in.servers {
			if !s.isDead() {
				survivor = s
			}
		}
		v := survivor.awaitEnd(t, id)
		if v.Status.Failed || kills != 4 {
			t.Errorf("got %+v after %d servers", v, kills)
		}
		for name, n := range in.effects {
			if n != 1 {
				t.Errorf("%s took effect %d times", name, n)
			}
		}
	})
}

// TestCopyMovesWhenItsServerEnds kills the server of the copy in the middle of a long step, and then that of the task.
func TestCopyMovesWhenItsServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 3)
		in.hook = func(n int, s *sharedServer, _ vedette.Operation, after bool) bool { return n == 3 && !after }
		id := in.servers["s0"].post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		holder, other := in.servers["s1"], in.servers["s2"]
		if holder.Copies() == 0 {
			holder, other = other, holder
		}
		holder.kill()
		time.Sleep(2 * time.Second)
		if other.Copies() != 1 {
			t.Fatalf("got %d copies at the other server", other.Copies())
		}
		in.setHook(nil)
		in.servers["s0"].kill()
		if v := other.awaitEnd(t, id); v.Status.Failed {
			t.Errorf("got %+v", v)
		}
		if n := other.Copies(); n != 0 {
			t.Errorf("got %d copies after the end", n)
		}
	})
}

// TestCopyMovesWhenItsServerStops lets the server of a copy say that it stops, while the task is in a long step.
func TestCopyMovesWhenItsServerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 3)
		in.hook = func(n int, s *sharedServer, _ vedette.Operation, after bool) bool { return n == 3 && !after }
		id := in.servers["s0"].post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		holder, other := in.servers["s1"], in.servers["s2"]
		if holder.Copies() == 0 {
			holder, other = other, holder
		}
		holder.mu.Lock()
		holder.isStopping = true
		holder.mu.Unlock()
		in.notify()
		time.Sleep(time.Second)
		if other.Copies() != 1 {
			t.Fatalf("got %d copies at the other server", other.Copies())
		}
		in.setHook(nil)
		in.servers["s0"].kill()
		if v := other.awaitEnd(t, id); v.Status.Failed || holder.Running() != 0 {
			t.Errorf("got %+v", v)
		}
	})
}

// TestServerOfACopyStandsStill freezes the server of a copy. The next change waits for half a second, and the copy is made at another one.
func TestServerOfACopyStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 3)
		holders := []*sharedServer{in.servers["s1"], in.servers["s2"]}
		wake := make(chan struct{})
		defer close(wake)
		in.hook = func(n int, s *sharedServer, op vedette.Operation, after bool) bool {
			if n == 2 && !after {
				if holders[0].Copies() == 0 {
					slices.Reverse(holders)
				}
				holders[0].mu.Lock()
				holders[0].standsStill = wake
				holders[0].mu.Unlock()
			}
			if s.id == "s0" && op.Args.Verb() == vedette.VerbScale && after {
				s.kill()
				return true
			}
			return false
		}
		s := in.servers["s0"]
		began := time.Now()
		id := s.post(t, "/kubernetes/ops", deployAll)
		for range 100 {
			synctest.Wait()
			if s.isDead() {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the task took %v to its fifth change", took)
		}
		holders[0].mu.Lock() // it is evicted, too
		holders[0].dead = true
		holders[0].mu.Unlock()
		if v := holders[1].awaitEnd(t, id); v.Status.Failed {
			t.Errorf("got %+v", v)
		}
		for name, n := range in.effects {
			if n != 1 {
				t.Errorf("%s took effect %d times", name, n)
			}
		}
	})
}

// TestTaskWithoutCopyIsEndedAtOnce kills the server of a task of which nobody has a copy.
func TestTaskWithoutCopyIsEndedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		in.servers["s0"].cut(in.servers["s1"])
		in.hook = func(n int, s *sharedServer, _ vedette.Operation, after bool) bool {
			if n == 3 && !after {
				s.kill()
				return true
			}
			return false
		}
		id := in.servers["s0"].post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		began := time.Now()
		v := in.servers["s1"].awaitEnd(t, id)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if !v.Status.Failed || !strings.Contains(v.Status.Status, "The server that ran this task was lost before the task ended. Done so far: ") {
			t.Errorf("got %+v", v.Status)
		}
	})
}

// TestCopyThatIsBehindCountsForNothing cuts the server of a copy off. The task goes on without it, and so nobody goes on with the task when its server ends.
func TestCopyThatIsBehindCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s, other := in.servers["s0"], in.servers["s1"]
		in.hook = func(n int, _ *sharedServer, _ vedette.Operation, after bool) bool {
			switch {
			case n == 2 && !after:
				s.cut(other)
			case n == 5 && !after:
				s.kill()
				return true
			}
			return false
		}
		id := s.post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		count := in.count
		v := other.awaitEnd(t, id)
		time.Sleep(15 * time.Second)
		if !v.Status.Failed || in.count != count || other.Copies() != 0 {
			t.Errorf("got %+v, %d more operations, %d copies", v.Status, in.count-count, other.Copies())
		}
	})
}

// TestStepThatMustNotBeRepeated kills the server of a task in a step that is not idempotent.
func TestStepThatMustNotBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		in.hook = func(_ int, s *sharedServer, op vedette.Operation, after bool) bool {
			if op.Args.Verb() == vedette.VerbRestart && after {
				s.kill()
				return true
			}
			return false
		}
		id := in.servers["s0"].post(t, "/kubernetes/ops",
			`[{"rollingRestartManifest":{"account":"prod","manifestName":"deployment web","location":"shop"}},{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`)
		v := in.servers["s1"].awaitEnd(t, id)
		if !v.Status.Failed || !strings.Contains(resultsOf(t, v), "it is unknown whether this took effect: the server that accepted it stopped before the outcome arrived") ||
			in.effects["restart web"] != 1 || in.effects["scale web"] != 1 {
			t.Errorf("got %+v and %v", v, in.effects)
		}
	})
}

// TestFrozenServerWakes lets a server that stood still answer again after another one goes on with its task.
func TestFrozenServerWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s, other := in.servers["s0"], in.servers["s1"]
		wake := make(chan struct{})
		in.hook = func(n int, from *sharedServer, _ vedette.Operation, after bool) bool {
			if n == 2 && after {
				from.kill()
				<-wake // and then it has its answer
			}
			return false
		}
		id := s.post(t, "/kubernetes/ops", deployAll)
		v := other.awaitEnd(t, id)
		count, order := in.count, len(in.order)
		close(wake)
		time.Sleep(time.Minute)
		if in.count != count || len(in.order) != order {
			t.Errorf("the server that woke executed %v", in.order[order:])
		}
		if later := other.getTask(t, id); fmt.Sprint(later) != fmt.Sprint(v) || v.Status.Failed {
			t.Errorf("got %+v, then %+v", v, later)
		}
	})
}

// TestServerThatStopsHandsOver stops a server whose task does not end in time.
func TestServerThatStopsHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s, other := in.servers["s0"], in.servers["s1"]
		in.hook = func(n int, from *sharedServer, _ vedette.Operation, after bool) bool {
			return n == 4 && !after && from == s
		}
		id := s.post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("the server took %v to stop", took)
		}
		v := other.awaitEnd(t, id)
		if v.Status.Failed || !strings.Contains(fmt.Sprint(v.History), "The server that ran this task is stopping. Server s1 goes on with it") {
			t.Errorf("got %+v", v)
		}
		for name, n := range in.effects {
			if n != 1 {
				t.Errorf("%s took effect %d times", name, n)
			}
		}
	})
}

// TestTaskIsReadAndCanceledAnywhere reads a task that runs at another server, and cancels it there.
func TestTaskIsReadAndCanceledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s, other := in.servers["s0"], in.servers["s1"]
		in.hook = func(n int, _ *sharedServer, _ vedette.Operation, after bool) bool { return n >= 4 && !after }
		id := s.post(t, "/kubernetes/ops", deployAll)
		synctest.Wait()
		if a, b := s.getTask(t, id), other.getTask(t, id); fmt.Sprint(a) != fmt.Sprint(b) || b.Status.Completed || len(b.History) < 5 {
			t.Errorf("the servers answer %+v and %+v", a, b)
		}
		began := time.Now()
		if code, body := other.request(t, "PATCH", "/kubernetes/task/"+id, `{"retry":false}`); code != http.StatusOK || time.Since(began) != 0 {
			t.Errorf("got %d %s after %v", code, body, time.Since(began))
		}
		synctest.Wait()
		if v := other.getTask(t, id); !v.Status.Failed || s.Running() != 0 || other.Copies() != 0 {
			t.Errorf("got %+v, %d running", v.Status, s.Running())
		}
		// A server that does not answer: the task is taken from it.
		second := s.post(t, "/kubernetes/ops", strings.Replace(deployAll, `"a"`, `"b"`, 1))
		synctest.Wait()
		s.cut(other)
		if code, body := other.request(t, "PATCH", "/kubernetes/task/"+second, `{"retry":false}`); code != http.StatusOK {
			t.Errorf("got %d %s", code, body)
		}
		if v := other.getTask(t, second); !v.Status.Failed {
			t.Errorf("got %+v", v.Status)
		}
	})
}

// TestCopiesHaveABudget submits more than the other server has memory for. The tasks run nevertheless.
func TestCopiesHaveABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		in.hook = func(_ int, _ *sharedServer, _ vedette.Operation, after bool) bool { return !after }
		s, other := in.servers["s0"], in.servers["s1"]
		text := strings.Repeat("x", 200<<10)
		var ids []string
		for i := range 12 {
			ids = append(ids, s.post(t, "/kubernetes/ops", fmt.Sprintf(`[{"deployManifest":{"account":"prod","moniker":{"app":"web"},"manifests":[
				{"apiVersion":"v1","kind":"Service","metadata":{"name":"a%d","namespace":"shop","annotations":{"text":"%s"}}}]}}]`, i, text)))
		}
		if got := other.CopyBytes(); got < 1<<20 || got > 3<<20 {
			t.Errorf("copies take %d bytes, want about half of what there is", got)
		}
		if n := other.Copies(); n == 0 || n >= len(ids) {
			t.Errorf("got %d copies", n)
		}
		s.kill()
		succeeding := 0
		in.setHook(nil)
		for _, id := range ids {
			if v := other.awaitEnd(t, id); !v.Status.Failed {
				succeeding++
			}
		}
		if succeeding == 0 {
			t.Error("no task goes on")
		}
		synctest.Wait()
		if got := other.CopyBytes(); got != 0 {
			t.Errorf("copies take %d bytes after the end", got)
		}
	})
}

// TestUpstreamTaskGoesOn kills the server that follows a task of the upstream Clouddriver.
func TestUpstreamTaskGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newSharedInstallation(t, 2)
		s, other := in.servers["s0"], in.servers["s1"]
		requests, err := task.ParseRequests([]byte(`[{"resize":{"account":"aws-1"}},{"scaleManifest":{"account":"prod","manifestName":"deployment web","location":"shop","replicas":3}}]`))
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Submit(t.Context(), requests, task.Options{RequestID: "r", User: "ann@example.com", Remote: &sentRemote{in: in, caller: "ann"}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		s.kill()
		v := other.awaitEnd(t, id)
		if v.Status.Failed || in.effects["scale web"] != 1 || in.effects["submit for ann as r-0"] == 0 {
			t.Errorf("got %+v and %v", v, in.effects)
		}
	})
}
