package convergence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/vedette-io/vedette/test/controlplane"
)

// workload changes a cluster continuously. The order of changes depends only on the seed. A change
// that the API server rejects, or cannot accept because it is down, is skipped.
type workload struct {
	cluster     *cluster
	rng         *rand.Rand
	controllers bool // without controllers a deleted namespace never goes away
	keepKinds   bool // do not create or remove kinds, because agents rediscover for some time after that
	changes     int  // that the cluster accepted
	// kindsUntil is when kinds change last, after run has begun. Each later change would make agents
	// notice a kind that they have missed. 0 means until run ends.
	kindsUntil time.Duration
	runBegan   time.Time
}

const (
	workloadPause = 15 * time.Millisecond
	namesPerKind  = 6
	crowdSize     = 120 // objects that are created and deleted together
)

// prepare creates what the workload needs.
func (l *workload) prepare(ctx context.Context) error {
	for _, name := range namespaces[:2] {
		if err := l.cluster.Create(ctx, nsKind.list(""), nsKind.make(l.rng, name)); err != nil {
			return err
		}
	}
	for range 150 {
		l.step(ctx)
	}
	return ctx.Err()
}

// run changes the cluster until ctx ends.
func (l *workload) run(ctx context.Context) {
	l.runBegan = time.Now()
	tick := time.NewTicker(workloadPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.step(ctx)
	}
}

func (l *workload) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // because the API server may be frozen
	defer cancel()
	switch n := l.rng.IntN(200); {
	case n == 0:
		l.createOrDeleteMany(ctx)
	case n < 6 && l.mayChangeKinds():
		l.changeDefinition(ctx)
	case n < 10:
		l.changeNamespace(ctx)
	case n < 40:
		l.object(ctx, custom[l.rng.IntN(len(custom))])
	default:
		l.object(ctx, builtIn[3+l.rng.IntN(len(builtIn)-3)])
	}
}

func (l *workload) mayChangeKinds() bool {
	isOver := l.kindsUntil > 0 && !l.runBegan.IsZero() && time.Since(l.runBegan) > l.kindsUntil
	return !l.keepKinds && !isOver
}

func (l *workload) randomName() string { return fmt.Sprintf("x-%d", l.rng.IntN(namesPerKind)) }

// object creates, changes, deletes or replaces one object.
func (l *workload) object(ctx context.Context, k kind) {
	name, list := l.randomName(), k.list(namespaces[l.rng.IntN(len(namespaces))])
	if !k.namespaced {
		name, list = similarNames[l.rng.IntN(len(similarNames))], k.list("")
	}
	created, change := k.make(l.rng, name), l.randomPatch()
	path := list + "/" + url.PathEscape(name)
	switch l.rng.IntN(8) {
	case 0, 1, 2:
		l.count(l.cluster.Create(ctx, list, created))
	case 3, 4, 5:
		l.count(l.cluster.Patch(ctx, path, change))
	case 6:
		l.count(l.cluster.Delete(ctx, path))
	case 7:
		l.count(l.cluster.Delete(ctx, path))
		l.count(l.cluster.Create(ctx, list, created))
	}
}

// randomPatch returns a merge patch of metadata, which every kind accepts. It adds or removes one
// label.
func (l *workload) randomPatch() object {
	labels := object{"colour": colours[l.rng.IntN(len(colours))], "odd": nil}
	if l.rng.IntN(2) == 0 {
		labels["odd"] = "yes"
	}
	return object{"metadata": object{"labels": labels, "annotations": object{"n": fmt.Sprint(l.rng.IntN(1000))}}}
}

// changeDefinition creates, changes, removes or replaces the definition of a custom kind.
func (l *workload) changeDefinition(ctx context.Context) {
	k := custom[l.rng.IntN(len(custom))]
	path := crdKind.list("") + "/" + k.plural + "." + k.group
	change := l.randomPatch()
	switch l.rng.IntN(6) {
	case 0, 1, 2:
		l.count(l.cluster.Create(ctx, crdKind.list(""), definition(k)))
	case 3:
		l.count(l.cluster.Patch(ctx, path, change))
	case 4:
		l.count(l.cluster.Delete(ctx, path))
	case 5:
		l.count(l.cluster.Delete(ctx, path))
		l.count(l.cluster.Create(ctx, crdKind.list(""), definition(k)))
	}
}

// changeNamespace creates the last namespace, or deletes it with its objects.
func (l *workload) changeNamespace(ctx context.Context) {
	name := namespaces[len(namespaces)-1]
	if l.rng.IntN(3) == 0 && l.controllers {
		l.count(l.cluster.Delete(ctx, nsKind.list("")+"/"+name))
		return
	}
	l.count(l.cluster.Create(ctx, nsKind.list(""), nsKind.make(l.rng, name)))
}

// createOrDeleteMany creates many objects at once, or deletes those of the last call.
func (l *workload) createOrDeleteMany(ctx context.Context) {
	list, remove := configMap.list(namespaces[0]), l.rng.IntN(2) == 0
	for i := range crowdSize {
		name := fmt.Sprintf("crowd-%d", i)
		if remove {
			l.count(l.cluster.Delete(ctx, list+"/"+name))
			continue
		}
		o := configMap.make(l.rng, name)
		o["data"] = object{"text": filler(l.rng, 2<<10)}
		l.count(l.cluster.Create(ctx, list, o))
	}
}

// count counts changes that the cluster accepted.
func (l *workload) count(err error) {
	var refused *controlplane.StatusError
	if err == nil {
		l.changes++
	} else if errors.As(err, &refused) && refused.Code == 400 {
		panic(fmt.Sprintf("the workload sent an invalid request: %v", err))
	}
}
