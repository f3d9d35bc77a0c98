package convergence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette/test/faults"
)

// operationLoad sends operations of every kind while things fail.
type operationLoad struct {
	*caller
	cluster   *cluster
	namespace string
	start     int // generation of the Deployment before the first restart
	// historyMayBeLost says that the database is unavailable for some time. Operations that end
	// meanwhile are not in the history yet, and are lost if the server exits.
	historyMayBeLost bool
	// clusterMayBeRestored says that the cluster may have gone back, so that outcomes are not visible in it.
	clusterMayBeRestored bool
	began                time.Time
	workers              sync.WaitGroup
}

// stoodStill returns for how long the machine was stopped from outside since the load began. The wall clock is set
// right after that, and times in the history contain it; the clocks that deadlines count by stand still.
func (e *operationLoad) stoodStill() time.Duration {
	now := time.Now()
	return max(0, now.Round(0).Sub(e.began.Round(0))-now.Sub(e.began))
}

// maxOverrun is how much longer than its deadline an operation may take: 3 s for sending the
// outcome, 2 s for a slow database, and the longest freeze of a process.
const maxOverrun = 5*time.Second + faults.LongestFreeze

// timeoutOf returns the timeout of the nth operation. Some are so short that they end while
// processes and links are frozen.
func timeoutOf(n int) time.Duration {
	if n%4 == 0 {
		return 1500 * time.Millisecond
	}
	return 5 * time.Second
}

// newOperationLoad prepares the objects of the operations.
func (w *world) newOperationLoad(a *account) *operationLoad {
	e := &operationLoad{caller: &caller{w: w, account: a.name}, cluster: a.cluster, namespace: namespaces[0], began: time.Now()}
	for _, name := range []string{"ops-scaled", "ops-restarted"} {
		d := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name}}
		maps.Copy(d, replicated(name))
		if err := a.cluster.Create(w.t.Context(), "/apis/apps/v1/namespaces/"+e.namespace+"/deployments", d); err != nil {
			w.t.Fatal(err)
		}
	}
	e.start = e.deployment("ops-restarted").Metadata.Generation
	return e
}

// run sends operations until ctx ends, and returns when each has an outcome or has timed out.
func (e *operationLoad) run(ctx context.Context) {
	for name, do := range map[string]func(n int){"create": e.create, "apply": e.apply, "scale": e.scale, "delete": e.delete, "restart": e.restart} {
		pause := 30 * time.Millisecond
		if name == "restart" {
			pause = 1100 * time.Millisecond // because two restarts within a second count as one
		}
		e.workers.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				do(n)
				sleep(ctx, pause)
			}
		})
	}
	e.workers.Wait()
}

func (e *operationLoad) sendOperation(verb, target string, n int, body object) {
	e.send(e.w.t.Context(), e.newOperation(verb, target, n, timeoutOf(n)), body)
}

// create creates objects with generated names, of which no operation may create two.
func (e *operationLoad) create(n int) {
	o := e.newOperation("apply", "create", n, timeoutOf(n))
	e.send(e.w.t.Context(), o, object{"strategy": "create", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"generateName": "ops-made-", "namespace": e.namespace, "labels": object{"order": o.id}}}})
}

func (e *operationLoad) apply(n int) {
	e.sendOperation("apply", "ops-applied", n, object{"manifest": e.configMapWithNumber("ops-applied", n)})
}

func (e *operationLoad) configMapWithNumber(name string, n int) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": e.namespace}, "data": object{"n": fmt.Sprint(n)}}
}

func (e *operationLoad) scale(n int) {
	e.sendOperation("scale", "ops-scaled", n, object{"kind": "deployment", "namespace": e.namespace, "name": "ops-scaled", "replicas": replicasOf(n)})
}

// replicasOf distinguishes the last few operations.
func replicasOf(n int) int { return n % 7 }

func (e *operationLoad) restart(n int) {
	e.sendOperation("restart", "ops-restarted", n, object{"kind": "deployment", "namespace": e.namespace, "name": "ops-restarted"})
}

// delete deletes an object that was created without the product.
func (e *operationLoad) delete(n int) {
	ctx, cancel := context.WithTimeout(e.w.t.Context(), 2*time.Second)
	defer cancel()
	name := fmt.Sprintf("ops-doomed-%d", n)
	var made struct{ Metadata struct{ UID string } }
	err := e.cluster.Create(ctx, configMap.list(e.namespace), e.configMapWithNumber(name, n))
	if err == nil {
		err = e.cluster.Get(ctx, configMap.list(e.namespace)+"/"+name, &made)
	}
	if err != nil {
		return // the API server is down
	}
	o := e.newOperation("delete", name, n, timeoutOf(n))
	o.uid = made.Metadata.UID
	e.send(e.w.t.Context(), o, object{"kind": "configmap", "namespace": e.namespace, "name": name})
}

// item holds the fields of an object that are compared.
type item struct {
	Metadata struct {
		Name, UID  string
		Labels     map[string]string
		Generation int
	}
	Data struct{ N string }
	Spec struct{ Replicas int }
}

func (e *operationLoad) deployment(name string) item {
	var d item
	if err := e.cluster.Get(e.w.t.Context(), "/apis/apps/v1/namespaces/"+e.namespace+"/deployments/"+name, &d); err != nil {
		e.w.t.Fatal(err)
	}
	return d
}

// verify compares the outcomes that the caller received with the history and the cluster, and
// counts operations by outcome.
func (e *operationLoad) verify() map[string]int {
	ctx := e.w.t.Context()
	var list struct{ Items []item }
	if err := e.cluster.Get(ctx, configMap.list(e.namespace), &list); err != nil {
		e.w.t.Fatal(err)
	}
	counts := map[string]int{}
	results := map[*sentOperation]outcome{}
	for _, o := range e.operations {
		result := e.awaitResult(ctx, o)
		counts[o.verb+" "+result.State]++
		results[o] = result
		switch {
		case e.clusterMayBeRestored: // without what was done
		case o.target == "create":
			e.verifyCreate(o, result, list.Items)
		case o.verb == "delete":
			e.verifyDelete(o, result, list.Items)
		}
	}
	if e.clusterMayBeRestored {
		return counts
	}
	e.verifyLast(results, "ops-applied", func(o *sentOperation) bool {
		i := slices.IndexFunc(list.Items, func(i item) bool { return i.Metadata.Name == "ops-applied" })
		return i >= 0 && list.Items[i].Data.N == fmt.Sprint(o.number)
	})
	replicas := e.deployment("ops-scaled").Spec.Replicas
	e.verifyLast(results, "ops-scaled", func(o *sentOperation) bool { return replicasOf(o.number) == replicas })
	e.verifyRestarts(results)
	return counts
}

// awaitResult waits until the history has the outcome of an operation, and compares it with the one
// that the caller received. The state is "" if the operation was never accepted.
func (e *operationLoad) awaitResult(ctx context.Context, o *sentOperation) (result outcome) {
	err := fmt.Errorf("not read")
	if !e.w.eventually(time.Minute, func(context.Context) bool {
		result, err = e.w.history(ctx, o.id)
		return err == nil && result.State != "pending"
	}) {
		e.w.t.Errorf("%s: got no outcome in the history: %q, error %v", o, result.State, err)
		return result
	}
	restarted := strings.Contains(result.Message, "the server that accepted it stopped")
	for _, reported := range o.outcomes {
		if restarted && e.historyMayBeLost || result.State == "" && wasNotAccepted(reported) {
			continue
		}
		if reported.State != result.State || reported.Status != result.Status && result.State != "lost" {
			e.w.t.Errorf("%s: got outcome %s %d %q, but the history has %s %d %q", o, reported.State, reported.Status, reported.Message, result.State, result.Status, result.Message)
		}
	}
	if result.State == "lost" && (!strings.Contains(result.Message, "effect") || len(result.Message) < 40) {
		e.w.t.Errorf("%s is lost without a reason: %s", o, result.Message)
	}
	if took := result.Ended.Sub(result.Accepted); result.State != "" && !restarted && took > o.timeout+maxOverrun+e.stoodStill() {
		e.w.t.Errorf("%s took %v: %s %s", o, took, result.State, result.Message)
	}
	return result
}

// wasNotAccepted reports whether a caller was told that the operation was not accepted, because the database
// could not record it or was silent until its deadline. A server that is killed before it can record that leaves no
// trace.
func wasNotAccepted(reported outcome) bool {
	return reported.State == "failed" && (strings.Contains(reported.Message, "could not record the operation") ||
		strings.Contains(reported.Message, "before the server accepted the operation"))
}

func (e *operationLoad) verifyCreate(o *sentOperation, result outcome, items []item) {
	n := 0
	for _, i := range items {
		if i.Metadata.Labels["order"] == o.id {
			n++
		}
	}
	minCount, maxCount := 0, 0
	switch result.State {
	case "done":
		minCount, maxCount = 1, 1
	case "lost":
		maxCount = 1
	}
	if n < minCount || n > maxCount {
		e.w.t.Errorf("%s ended as %q (%s), got %d objects", o, result.State, result.Message, n)
	}
}

func (e *operationLoad) verifyDelete(o *sentOperation, result outcome, items []item) {
	exists := slices.ContainsFunc(items, func(i item) bool { return i.Metadata.UID == o.uid })
	started := strings.Contains(result.Message, "is being deleted") // only waiting for the end failed
	if exists && result.State == "done" || !exists && (result.State == "failed" && !started || result.State == "") {
		e.w.t.Errorf("%s ended as %q (%s), got object exists: %v", o, result.State, result.Message, exists)
	}
}

// verifyLast checks that an object is as the last operation that was done left it, or as a later
// one that is lost. If none was done, none may have taken effect.
func (e *operationLoad) verifyLast(results map[*sentOperation]outcome, target string, matches func(*sentOperation) bool) {
	var states []string
	for _, o := range slices.Backward(e.operations) {
		result := results[o]
		if o.target != target || result.State != "done" && result.State != "lost" {
			continue
		}
		if matches(o) {
			return
		}
		states = append(states, fmt.Sprintf("%d %s", o.number, result.State))
		if result.State == "done" {
			e.w.t.Errorf("%s does not match any of its last operations: %v", target, states)
			return
		}
	}
}

func (e *operationLoad) verifyRestarts(results map[*sentOperation]outcome) {
	done, lost := 0, 0
	for o, result := range results {
		if o.verb == "restart" && result.State == "done" {
			done++
		} else if o.verb == "restart" && result.State == "lost" {
			lost++
		}
	}
	if n := e.deployment("ops-restarted").Metadata.Generation - e.start; n < done || n > done+lost {
		e.w.t.Errorf("%d restarts were done and %d lost, got %d restarts", done, lost, n)
	}
}
