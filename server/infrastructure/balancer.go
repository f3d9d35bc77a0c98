package infrastructure

import (
	"context"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store/read"
)

// Balancers returns the load balancers of the application with their server groups. Services
// select workloads of any application in their namespace, which may be many more than the
// application has itself, so they are read only if someone asks. Concurrent calls share the read.
//
// The workloads are read after the versions that the application depends on. If they change in
// between, the application is outdated, and nobody gets this answer again.
func (s *CachedApplication) Balancers(ctx context.Context) ([]*LoadBalancer, error) {
	if balancers := s.balancers.Load(); balancers != nil {
		return *balancers, nil
	}
	result := s.flights.DoChan("", func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return s.loadBalancers(shared)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the load balancers of application %s: %w", s.Name, context.Cause(ctx))
	case got := <-result:
		balancers, _ := got.Val.([]*LoadBalancer)
		return balancers, got.Err
	}
}

// loadBalancers reads the workloads of other applications, and keeps the load balancers.
func (s *CachedApplication) loadBalancers(ctx context.Context) ([]*LoadBalancer, error) {
	rows, release, err := readlimit.Read(ctx, s.reader.cfg.Limiter, limitKey(s.Name), func() (*Rows, int64, error) {
		var rows *Rows
		_, err := s.reader.withMemory(ctx, func(ctx context.Context) (err error) {
			rows, err = s.readWorkloads(ctx)
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		return rows, rows.bytes(), nil
	})
	if err != nil {
		return nil, err
	}
	defer release()
	balancers := s.Balance(rows)
	s.balancers.Store(&balancers)
	s.reader.cache.grow(s, rows.bytes())
	return balancers, nil
}

// readWorkloads reads the workloads of other applications in the namespaces of the application's
// Services, and the Pods of those that get traffic.
func (s *CachedApplication) readWorkloads(ctx context.Context) (rows *Rows, err error) {
	rows = &Rows{Visibility: s.rows.Visibility}
	if len(s.LoadBalancers) == 0 {
		return rows, nil
	}
	st := s.reader.cfg.Store
	rows.Workloads, err = st.NeighborAttributes(ctx, s.Name, []vedette.Kind{service}, selectedKinds)
	if err != nil {
		return nil, err
	}
	owners := s.OtherOwners(rows)
	rows.keepWorkloads(owners)
	if len(owners) > 0 {
		rows.WorkloadPods, err = st.AttributesOwnedBy(ctx, owners, InstanceKinds)
	}
	return rows, err
}

// keepWorkloads releases all workloads but the wanted ones.
func (r *Rows) keepWorkloads(wanted []read.OwnerRef) {
	set := make(map[read.OwnerRef]bool, len(wanted))
	for _, ref := range wanted {
		set[ref] = true
	}
	isUnwanted := func(o Object) bool { return !set[read.OwnerRef{Account: o.Account, UID: o.UID}] }
	r.Workloads = slices.Clone(slices.DeleteFunc(r.Workloads, isUnwanted))
}
