package peer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// accounts tells to which servers the agents of accounts are connected.
type accounts interface {
	// Servers returns the servers of the accounts that exist and whose agents are connected.
	Servers(ctx context.Context, names []vedette.AccountName) (map[vedette.AccountName]vedette.ServerID, error)
}

const (
	// lookupInterval is the time between two statements for all operations that wait for an agent.
	lookupInterval = 100 * time.Millisecond
	// maxLookup is how many accounts one statement asks for.
	maxLookup = 1000
	// lookupTimeout is how long a statement may take.
	lookupTimeout = 2 * time.Second
	// maxRemembered is how many accounts are remembered, at about 200 bytes each.
	maxRemembered = 100_000
)

// locator remembers to which server the agent of an account is connected. What others have told is corrected by forget.
type locator struct {
	accounts accounts

	mu         sync.Mutex
	remembered map[vedette.AccountName]vedette.ServerID
	waiting    map[vedette.AccountName]*lookup
	isRunning  bool      // a goroutine looks up
	last       time.Time // when it last did
}

// lookup is a question that several operations may wait for.
type lookup struct {
	done   chan struct{} // closed when the rest is set
	server vedette.ServerID
	err    error
}

func newLocator(a accounts) *locator {
	return &locator{accounts: a, remembered: map[vedette.AccountName]vedette.ServerID{}, waiting: map[vedette.AccountName]*lookup{}}
}

// server returns the server of an account; empty if it has none.
func (l *locator) server(ctx context.Context, account vedette.AccountName) (vedette.ServerID, error) {
	l.mu.Lock()
	if server, ok := l.remembered[account]; ok {
		l.mu.Unlock()
		return server, nil
	}
	asked := l.waiting[account]
	if asked == nil {
		asked = &lookup{done: make(chan struct{})}
		l.waiting[account] = asked
	}
	if !l.isRunning {
		l.isRunning = true
		go l.run(context.WithoutCancel(ctx)) // others wait for it, too; each statement has a time limit
	}
	l.mu.Unlock()
	select {
	case <-asked.done:
		return asked.server, asked.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// forget removes a server that does not have the account any more.
func (l *locator) forget(account vedette.AccountName, server vedette.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remembered[account] == server {
		delete(l.remembered, account)
	}
}

// run looks up what is waited for, until nothing is.
func (l *locator) run(ctx context.Context) {
	for {
		l.mu.Lock()
		pause := time.Until(l.last.Add(lookupInterval))
		l.mu.Unlock()
		if pause > 0 {
			timer := time.NewTimer(pause)
			<-timer.C
		}
		asked := l.take()
		if asked == nil {
			return
		}
		l.lookUp(ctx, asked)
	}
}

// take returns what to look up now; nil if there is nothing.
func (l *locator) take() map[vedette.AccountName]*lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.isRunning = false
		return nil
	}
	l.last = time.Now()
	asked := l.waiting
	l.waiting = map[vedette.AccountName]*lookup{}
	if len(asked) <= maxLookup {
		return asked
	}
	first := make(map[vedette.AccountName]*lookup, maxLookup)
	for name, a := range asked {
		if len(first) < maxLookup {
			first[name] = a
		} else {
			l.waiting[name] = a
		}
	}
	return first
}

func (l *locator) lookUp(ctx context.Context, asked map[vedette.AccountName]*lookup) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	names := make([]vedette.AccountName, 0, len(asked))
	for name := range asked {
		names = append(names, name)
	}
	servers, err := l.accounts.Servers(ctx, names)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.remembered) > maxRemembered {
		clear(l.remembered)
	}
	for name, a := range asked {
		a.server = servers[name]
		if err != nil {
			a.err = fmt.Errorf("read from the database which server account %s is at: %w", name, err)
		} else if a.server != "" {
			l.remembered[name] = a.server
		}
		close(a.done)
	}
}
