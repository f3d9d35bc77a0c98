package infrastructure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// rowStore reads the rows of an application, each list in a constant number of statements.
type rowStore interface {
	ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]read.AttributesRow, error)
	OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]read.AttributesRow, error)
	NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]read.AttributesRow, error)
	AttributesOwnedBy(ctx context.Context, owners []read.OwnerRef, kinds []vedette.Kind) ([]read.AttributesRow, error)
}

// versionStore counts changes. A counter changes before the change is visible to its writer.
type versionStore interface {
	ApplicationVersion(application string) uint64
	NamespaceVersion(account vedette.AccountName, namespace string) uint64
	// CheckLease returns an error if another process may have changed the store.
	CheckLease(ctx context.Context) error
}

// Store is what a Reader reads from.
type Store interface {
	rowStore
	changeStore
	versionStore
	objectStore
}

// Config configures a Reader. Zero values mean the defaults.
type Config struct {
	Store    Store
	Accounts *accountlist.Cache
	// Applications decides which applications are shown. Nil means all.
	Applications applicationSet
	// Limiter bounds the memory of applications while they are read. Nil means no limit.
	Limiter *readlimit.Limiter
	// Bytes limits the memory of applications that are kept, and of what is derived from them, as estimated; 32 MiB.
	Bytes int64
	// OnRead is called for each application that is asked for, with whether it is in memory and
	// current. It must not block; nil is for none.
	OnRead func(cached bool)
}

// Reader reads applications, and keeps those that were read last. It is safe for concurrent use.
type Reader struct {
	cfg      Config
	settings settingsCache
	order    atomic.Uint64 // of calls and reads
	flights  singleflight.Group
	cache    cache
	deriving chan struct{} // has an element for each call of Derive that makes something
	small    chan struct{} // has an element for each read that needs little memory
	large    chan struct{} // has an element while a read needs much
}

// maxDeriving is how many results of Derive are made at a time. Making one takes a processor, so more would
// not be done sooner.
const maxDeriving = 4

// NewReader returns a Reader without applications.
func NewReader(cfg Config) *Reader {
	if cfg.Bytes <= 0 {
		cfg.Bytes = 32 << 20
	}
	if cfg.OnRead == nil {
		cfg.OnRead = func(bool) {}
	}
	if cfg.Applications == nil {
		cfg.Applications = allApplications{}
	}
	return &Reader{cfg: cfg, settings: settingsCache{accounts: cfg.Accounts, applications: cfg.Applications}, cache: newCache(cfg.Bytes),
		deriving: make(chan struct{}, maxDeriving), small: make(chan struct{}, maxSmall), large: make(chan struct{}, 1)}
}

// loadTimeout limits one read of an application, which does not end with the request that began
// it: others may wait for the same read.
const loadTimeout = 30 * time.Second

// Application returns an application as it was when it was called, or later. One that does not
// exist is empty. Concurrent calls share a read.
func (r *Reader) Application(ctx context.Context, name string) (*CachedApplication, error) {
	if name == "" { // objects whose name gives no application have the empty one
		return &CachedApplication{Application: &Application{}, reader: r}, nil
	}
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if s := r.cache.get(name); s != nil && s.isCurrent(settings) {
		r.cfg.OnRead(true)
		return s, nil
	}
	r.cfg.OnRead(false)
	called := r.order.Add(1)
	for {
		s, err := r.join(ctx, name)
		// A read that began before this call may miss what the caller has just written. Objects that
		// change all the time outdate every read, so a later one is good enough.
		if err != nil || s.state.Load().began > called || s.isCurrent(settings) {
			return s, err
		}
	}
}

// join waits for a read of an application.
func (r *Reader) join(ctx context.Context, name string) (*CachedApplication, error) {
	result := r.flights.DoChan(name, func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return r.load(shared, name)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for application %s: %w", name, context.Cause(ctx))
	case got := <-result:
		s, _ := got.Val.(*CachedApplication)
		return s, got.Err
	}
}

// limitKey stands for a caller in the limiter. A read serves all callers, so it must not wait for
// what one of them holds. All applications are one source, because a caller can ask for any number of them.
// No address is such a source.
func limitKey(application string) readlimit.Caller {
	return readlimit.Caller{Source: "applications", User: application}
}

func (r *Reader) load(ctx context.Context, name string) (*CachedApplication, error) {
	previous := r.cache.get(name)
	s, release, err := readlimit.Read(ctx, r.cfg.Limiter, limitKey(name), func() (*CachedApplication, int64, error) {
		var s *CachedApplication
		used, err := r.withMemory(ctx, func(ctx context.Context) (err error) {
			s, err = r.read(ctx, name, previous)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		if s != previous {
			s.addBytes(used)
		}
		return s, s.rowBytes, nil
	})
	if err != nil {
		return nil, err
	}
	defer release()
	if s.rowBytes > 0 && s != previous { // names of applications that do not exist are without limit
		r.cache.put(s)
	}
	return s, nil
}

// read reads an application. previous is its last state, of which it reads only what has changed, or
// nil.
func (r *Reader) read(ctx context.Context, name string, previous *CachedApplication) (*CachedApplication, error) {
	if previous != nil {
		s, err := r.readChanges(ctx, previous)
		if s != nil || err != nil {
			return s, err
		}
	}
	return r.readAll(ctx, name)
}

// readAll reads all rows of an application. Versions are read before the rows that they cover, so
// that a change in between makes the application outdated.
func (r *Reader) readAll(ctx context.Context, name string) (*CachedApplication, error) {
	current := &state{began: r.order.Add(1), mark: r.cfg.Store.ChangeMark(), versions: newVersions(r.cfg.Store, name)}
	settings, err := r.Settings(ctx)
	if err != nil {
		return nil, err
	}
	current.settings = settings
	rows := &Rows{Visibility: settings.Visibility}
	rows.Own, err = r.cfg.Store.ApplicationAttributes(ctx, name, LogicalKinds)
	if err != nil {
		return nil, err
	}
	current.versions.addNamespaces(r.cfg.Store, rows.Own)
	if err := r.readRelated(ctx, name, rows); err != nil {
		return nil, err
	}
	return r.build(name, rows.referred(), current), nil
}

func (r *Reader) build(name string, rows *Rows, current *state) *CachedApplication {
	s := &CachedApplication{Application: Build(name, rows), reader: r, rows: rows}
	s.state.Store(current)
	return s
}

// readRelated reads the objects of other applications that relate to an application's.
func (r *Reader) readRelated(ctx context.Context, name string, rows *Rows) error {
	if len(rows.Own) == 0 {
		return nil
	}
	st := r.cfg.Store
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		rows.Pods, err = st.OwnedAttributes(ctx, name, ServerGroupKinds, InstanceKinds)
		return err
	})
	group.Go(func() error { return r.readNeighbors(ctx, name, rows) })
	return group.Wait()
}

// readNeighbors reads everything but the Pods, which are as many as all else together.
func (r *Reader) readNeighbors(ctx context.Context, name string, rows *Rows) (err error) {
	st := r.cfg.Store
	if rows.ReplicaSets, err = st.OwnedAttributes(ctx, name, ManagerKinds, []vedette.Kind{replicaSet}); err != nil {
		return err
	}
	rows.Services, err = st.NeighborAttributes(ctx, name, selectedKinds, []vedette.Kind{service})
	return err
}
