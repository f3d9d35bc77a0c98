package convergence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// errands are operations of every sort, sent all the time while things fail.
type errands struct {
	*caller
	cluster   *cluster
	namespace string
	start     int // generation of the Deployment that is restarted
	// forgetful says that the database is away for some time. What ended meanwhile
	// is not in the history yet, and a server that ends then takes it along.
	forgetful bool
	working   sync.WaitGroup
}

// mostAfter is by how much an operation may outlive its deadline: 3 s in which an
// outcome is on its way, 2 s of a slow database, and the longest pause of a process.
const mostAfter = 5*time.Second + longest

const orderTimeout = 5 * time.Second

// errandsOf prepares what operations work on.
func (w *world) errandsOf(a *account) *errands {
	e := &errands{caller: &caller{w: w, account: a.name}, cluster: a.cluster, namespace: namespaces[0]}
	for _, name := range []string{"ops-scaled", "ops-restarted"} {
		d := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name}}
		for field, value := range replicated(name) {
			d[field] = value
		}
		if err := a.cluster.Create(w.t.Context(), "/apis/apps/v1/namespaces/"+e.namespace+"/deployments", d); err != nil {
			w.t.Fatal(err)
		}
	}
	e.start = e.deployment("ops-restarted").Metadata.Generation
	return e
}

// run sends operations until ctx ends, and returns when each has been answered or
// given up.
func (e *errands) run(ctx context.Context) {
	for name, do := range map[string]func(n int){"create": e.create, "apply": e.apply, "scale": e.scale, "delete": e.delete, "restart": e.restart} {
		pause := 30 * time.Millisecond
		if name == "restart" {
			pause = 1100 * time.Millisecond // within one second two would be one
		}
		e.working.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				do(n)
				idle(ctx, pause)
			}
		})
	}
	e.working.Wait()
}

func (e *errands) ask(verb, what string, n int, body object) {
	e.send(e.w.t.Context(), e.order(verb, what, n, orderTimeout), body)
}

// create makes objects without a name, which must not be made twice.
func (e *errands) create(n int) {
	o := e.order("apply", "create", n, orderTimeout)
	e.send(e.w.t.Context(), o, object{"strategy": "create", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"generateName": "ops-made-", "namespace": e.namespace, "labels": object{"order": o.id}}}})
}

func (e *errands) apply(n int) {
	e.ask("apply", "ops-applied", n, object{"manifest": e.numbered("ops-applied", n)})
}

func (e *errands) numbered(name string, n int) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": e.namespace}, "data": object{"n": fmt.Sprint(n)}}
}

func (e *errands) scale(n int) {
	e.ask("scale", "ops-scaled", n, object{"kind": "deployment", "namespace": e.namespace, "name": "ops-scaled", "replicas": replicasOf(n)})
}

// replicasOf tells the last few operations apart.
func replicasOf(n int) int { return n % 7 }

func (e *errands) restart(n int) {
	e.ask("restart", "ops-restarted", n, object{"kind": "deployment", "namespace": e.namespace, "name": "ops-restarted"})
}

// delete deletes an object that was made past the product.
func (e *errands) delete(n int) {
	ctx, cancel := context.WithTimeout(e.w.t.Context(), 2*time.Second)
	defer cancel()
	name := fmt.Sprintf("ops-doomed-%d", n)
	var made struct{ Metadata struct{ UID string } }
	err := e.cluster.Create(ctx, configMap.list(e.namespace), e.numbered(name, n))
	if err == nil {
		err = e.cluster.Get(ctx, configMap.list(e.namespace)+"/"+name, &made)
	}
	if err != nil {
		return // the API server is down
	}
	o := e.order("delete", name, n, orderTimeout)
	o.uid = made.Metadata.UID
	e.send(e.w.t.Context(), o, object{"kind": "configmap", "namespace": e.namespace, "name": name})
}

// item is what of an object counts here.
type item struct {
	Metadata struct {
		Name, UID  string
		Labels     map[string]string
		Generation int
	}
	Data struct{ N string }
	Spec struct{ Replicas int }
}

func (e *errands) deployment(name string) item {
	var d item
	if err := e.cluster.Get(e.w.t.Context(), "/apis/apps/v1/namespaces/"+e.namespace+"/deployments/"+name, &d); err != nil {
		e.w.t.Fatal(err)
	}
	return d
}

// judge compares what the caller was told, what the history says and what the
// cluster holds, and returns how many operations ended how.
func (e *errands) judge() map[string]int {
	ctx := e.w.t.Context()
	var list struct{ Items []item }
	if err := e.cluster.Get(ctx, configMap.list(e.namespace), &list); err != nil {
		e.w.t.Fatal(err)
	}
	counts := map[string]int{}
	ends := map[*order]outcome{}
	for _, o := range e.orders {
		end := e.settled(ctx, o)
		counts[o.verb+" "+end.State]++
		ends[o] = end
		switch {
		case o.what == "create":
			e.judgeCreate(o, end, list.Items)
		case o.verb == "delete":
			e.judgeDelete(o, end, list.Items)
		}
	}
	e.judgeLast(ends, "ops-applied", func(o *order) bool {
		i := slices.IndexFunc(list.Items, func(i item) bool { return i.Metadata.Name == "ops-applied" })
		return i >= 0 && list.Items[i].Data.N == fmt.Sprint(o.number)
	})
	replicas := e.deployment("ops-scaled").Spec.Replicas
	e.judgeLast(ends, "ops-scaled", func(o *order) bool { return replicasOf(o.number) == replicas })
	e.judgeRestarts(ends)
	return counts
}

// settled waits for the history to know the end of an order, and holds it against
// what the caller was told. The state is empty where the order was never accepted.
func (e *errands) settled(ctx context.Context, o *order) (end outcome) {
	err := fmt.Errorf("nothing was read")
	if !e.w.within(10*time.Second, func(context.Context) bool {
		end, err = e.w.history(ctx, o.id)
		return err == nil && end.State != "pending"
	}) {
		e.w.t.Errorf("%s has no end: %q, %v", o, end.State, err)
		return end
	}
	restarted := strings.Contains(end.Message, "the server that accepted it ended")
	for _, told := range o.told {
		if restarted && e.forgetful || end.State == "" && wasNotAccepted(told) {
			continue
		}
		if told.State != end.State || told.Status != end.Status && end.State != "lost" {
			e.w.t.Errorf("%s has two ends: told %s %d %q, and the history says %s %d %q", o, told.State, told.Status, told.Message, end.State, end.Status, end.Message)
		}
	}
	if end.State == "lost" && (!strings.Contains(end.Message, "effect") || len(end.Message) < 40) {
		e.w.t.Errorf("%s is lost, and does not say what was known: %s", o, end.Message)
	}
	if took := end.Ended.Sub(end.Accepted); end.State != "" && !restarted && took > o.timeout+mostAfter {
		e.w.t.Errorf("%s took %v: %s %s", o, took, end.State, end.Message)
	}
	return end
}

// wasNotAccepted reports whether a caller was told that the database did not take the
// operation. A server that is killed before it can note that end leaves nothing.
func wasNotAccepted(told outcome) bool {
	return told.State == "failed" && strings.Contains(told.Message, "could not note the operation")
}

func (e *errands) judgeCreate(o *order, end outcome, items []item) {
	n := 0
	for _, i := range items {
		if i.Metadata.Labels["order"] == o.id {
			n++
		}
	}
	least, most := 0, 0
	switch end.State {
	case "done":
		least, most = 1, 1
	case "lost":
		most = 1
	}
	if n < least || n > most {
		e.w.t.Errorf("%s ended as %q (%s), and is there %d times", o, end.State, end.Message, n)
	}
}

func (e *errands) judgeDelete(o *order, end outcome, items []item) {
	there := slices.ContainsFunc(items, func(i item) bool { return i.Metadata.UID == o.uid })
	begun := strings.Contains(end.Message, "is being deleted") // it failed to see the end of it
	if there && end.State == "done" || !there && (end.State == "failed" && !begun || end.State == "") {
		e.w.t.Errorf("%s ended as %q (%s), and there is %v", o, end.State, end.Message, there)
	}
}

// judgeLast holds that an object is as the last operation that was done left it, or
// as a later one which is lost.
func (e *errands) judgeLast(ends map[*order]outcome, what string, is func(*order) bool) {
	var told []string
	for _, o := range slices.Backward(e.orders) {
		end := ends[o]
		if o.what != what || end.State != "done" && end.State != "lost" {
			continue
		}
		if is(o) {
			return
		}
		told = append(told, fmt.Sprintf("%d %s", o.number, end.State))
		if end.State == "done" {
			break
		}
	}
	e.w.t.Errorf("%s is not as any of its last operations left it: %v", what, told)
}

func (e *errands) judgeRestarts(ends map[*order]outcome) {
	done, lost := 0, 0
	for o, end := range ends {
		if o.verb == "restart" && end.State == "done" {
			done++
		} else if o.verb == "restart" && end.State == "lost" {
			lost++
		}
	}
	if n := e.deployment("ops-restarted").Metadata.Generation - e.start; n < done || n > done+lost {
		e.w.t.Errorf("%d restarts were done and %d lost, and %d took place", done, lost, n)
	}
}
