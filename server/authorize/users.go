package authorize

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// users knows what users may do: for as long as an answer counts without asking
// again, and with one question for all who want to know at once.
type users struct {
	fiat  *fiat
	log   *slog.Logger
	calls singleflight.Group

	mu    sync.Mutex
	known map[string]*list.Element
	order *list.List // of *entry: the oldest first, which is the first to expire
}

type entry struct {
	user        string
	permissions *permissions
	read        time.Time
}

func newUsers(cfg Fiat, log *slog.Logger) *users {
	return &users{fiat: newFiat(cfg), log: log, known: map[string]*list.Element{}, order: list.New()}
}

// permissions returns what a caller may do. A failure is not kept: who comes
// next asks again.
func (u *users) permissions(ctx context.Context, c Caller) (*permissions, error) {
	if p := u.recall(c.User); p != nil {
		return p, nil
	}
	answer := u.calls.DoChan(c.User, func() (any, error) {
		if p := u.recall(c.User); p != nil { // learnt while this was on its way here
			return p, nil
		}
		// The one who asks first may leave while others wait; Fiat.RetryFor ends it.
		p, err := u.fiat.ask(context.WithoutCancel(ctx), c)
		if err == nil {
			u.keep(c.User, p)
		}
		return p, err
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for Fiat: %w", context.Cause(ctx))
	case got := <-answer:
		if got.Err == nil {
			return got.Val.(*permissions), nil
		}
		return u.without(c, got.Err)
	}
}

// without is what is known of a caller when Fiat can't be asked. It depends on
// what this caller says and not on the user alone, so it is not kept.
func (u *users) without(c Caller, err error) (*permissions, error) {
	var final *refusal
	if !u.fiat.LegacyFallback || errors.As(err, &final) {
		return nil, err
	}
	u.log.Warn("Fiat can't be asked: the accounts that the request names count", "caller", c, "accounts", c.Accounts, "error", err)
	return fallback(c), nil
}

func (u *users) recall(user string) *permissions {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.known[user]
	if !ok || u.expired(at) {
		return nil
	}
	return at.Value.(*entry).permissions
}

func (u *users) keep(user string, p *permissions) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at, ok := u.known[user]; ok {
		u.forget(at)
	}
	u.known[user] = u.order.PushBack(&entry{user, p, time.Now()})
	for oldest := u.order.Front(); oldest != nil && (u.order.Len() > u.fiat.CacheUsers || u.expired(oldest)); oldest = u.order.Front() {
		u.forget(oldest)
	}
}

func (u *users) expired(at *list.Element) bool {
	return time.Since(at.Value.(*entry).read) >= u.fiat.CacheAge
}

func (u *users) forget(at *list.Element) {
	u.order.Remove(at)
	delete(u.known, at.Value.(*entry).user)
}
