package artifacts

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// admissionTimeout is the time that a request waits while too many artifacts are being fetched.
const admissionTimeout = 30 * time.Second

// Callers that are not senders of requests.
const (
	listCaller  = "lists"  // all who ask for names and versions
	storeCaller = "stored" // all who read the artifact store
)

// admission bounds how many artifacts are fetched at the same time, so that memory and disk are
// bounded however many stages of pipelines start. One caller leaves room for others: the servers
// and readers of some are slow. It is safe for concurrent use.
type admission struct {
	running chan struct{} // a token for each artifact that is being fetched
	share   int           // of one caller

	mu      sync.Mutex
	callers map[string]*callerSlots
}

// callerSlots are the places of one caller.
type callerSlots struct {
	running chan struct{}
	users   int // that wait or fetch
}

func newAdmission(limit int) *admission {
	return &admission{running: make(chan struct{}, limit), share: max(1, limit*3/4), callers: map[string]*callerSlots{}}
}

// admit waits until there is room for one more artifact of a caller.
func (a *admission) admit(ctx context.Context, caller string) (release func(), err error) {
	timeout := time.NewTimer(admissionTimeout)
	defer timeout.Stop()
	slots := a.enter(caller)
	for _, tokens := range []chan struct{}{slots.running, a.running} {
		select {
		case tokens <- struct{}{}:
			continue
		case <-timeout.C:
			err = vedette.Errorf(vedette.Unavailable, "%d artifacts are being fetched, and none was complete within %s: retry, "+
				"or raise artifacts.limits.maxConcurrent", cap(tokens), admissionTimeout)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if tokens == a.running {
			<-slots.running
		}
		a.leave(caller)
		return nil, err
	}
	return func() { <-a.running; <-slots.running; a.leave(caller) }, nil
}

func (a *admission) enter(caller string) *callerSlots {
	a.mu.Lock()
	defer a.mu.Unlock()
	slots := a.callers[caller]
	if slots == nil {
		slots = &callerSlots{running: make(chan struct{}, a.share)}
		a.callers[caller] = slots
	}
	slots.users++
	return slots
}

func (a *admission) leave(caller string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slots := a.callers[caller]
	if slots.users--; slots.users == 0 {
		delete(a.callers, caller)
	}
}
