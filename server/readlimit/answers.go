package readlimit

import (
	"context"
	"net/http"
	"sync"
)

type answersKey struct{}

// answers are what clusters have answered for one request. They are in memory until its response is written.
type answers struct {
	limiter *Limiter
	caller  Caller

	mu       sync.Mutex
	releases []func()
	ended    bool
}

// HoldAnswers lets Hold count the memory that a request takes, until it has ended.
func (l *Limiter) HoldAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answers{limiter: l, caller: CallerOf(r)}
		defer a.end()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), answersKey{}, a)))
	})
}

// Hold counts bytes that the request of a context holds until it ends, and reports whether there was room.
// It does not wait, because the bytes are in memory already. Without a request nothing is counted.
func Hold(ctx context.Context, bytes int64) bool {
	a, _ := ctx.Value(answersKey{}).(*answers)
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return true // nobody writes the response
	}
	release := a.limiter.TryAcquire(a.caller, bytes)
	if release == nil {
		return false
	}
	a.releases = append(a.releases, release)
	return true
}

// WithoutAnswers returns a context without the request's answers: what is read with it counts for nobody. It is for
// answers that end before the request does.
func WithoutAnswers(ctx context.Context) context.Context {
	return context.WithValue(ctx, answersKey{}, (*answers)(nil))
}

func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for _, release := range a.releases {
		release()
	}
}
