package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
)

// hotObjects is how many objects change repeatedly.
const hotObjects = 50

// wireBytes counts the bytes between the agent and the server, and then compares compressions
// of the same records.
func wireBytes(ctx context.Context, b *bench) error {
	cfg := fleet.Config{Objects: mixedKinds(b.scale(12000))}
	var p *proxy
	s, err := b.simulate(ctx, cfg, func(to string) (address string, err error) {
		p, err = newProxy(to)
		if err != nil {
			return "", err
		}
		return p.address(), nil
	})
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return err
	}
	defer p.close()
	objects := s.objects()
	if err := s.server.awaitLive(ctx, s.agent); err != nil {
		return err
	}
	b.table.add(row{measure: "wire bytes per object, first sync", target: "600",
		result: fmt.Sprintf("%.0f", float64(p.up.Load())/float64(objects)),
		ratio:  percentOfTarget(float64(p.up.Load())/float64(objects), 600),
		remark: fmt.Sprintf("%d objects; down %.1f per object; HTTP/2 frames and headers included", objects,
			float64(p.down.Load())/float64(objects))})
	for _, rate := range []float64{5, 50, 500} {
		if err := b.updateBytes(ctx, s, p, rate); err != nil {
			return err
		}
	}
	if err := b.hotUpdateBytes(ctx, s, p); err != nil {
		return err
	}
	return b.compareCompression(cfg)
}

// hotUpdateBytes changes 50 pods repeatedly, as a rollout does.
func (b *bench) hotUpdateBytes(ctx context.Context, s *simulation, p *proxy) error {
	const changes = 1000
	pods := vedette.Kind{Name: "Pod"}
	before := p.up.Load()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := range changes {
		s.Cluster(0).Put(pods, n%hotObjects)
		<-tick.C
	}
	if err := s.awaitEqual(ctx); err != nil {
		return err
	}
	each := float64(p.up.Load()-before) / changes
	b.table.add(row{measure: "wire bytes per update of a pod that changed lately", target: "150", result: fmt.Sprintf("%.0f", each),
		ratio:  percentOfTarget(each, 150),
		remark: fmt.Sprintf("%d pods take turns, 100 changes a second", hotObjects)})
	return nil
}

// updateBytes counts the bytes of changes at a fixed rate, including heartbeats.
func (b *bench) updateBytes(ctx context.Context, s *simulation, p *proxy, rate float64) error {
	before, steps := p.up.Load(), s.Steps()
	phase, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	s.Churn(phase, rate)
	changes := s.Steps() - steps
	if _, err := s.server.awaitCount(ctx, "", s.objects(), 50*time.Millisecond, s.agent); err != nil {
		return err
	}
	each := float64(p.up.Load()-before) / float64(changes)
	b.table.add(row{measure: fmt.Sprintf("wire bytes per update of any object, %.0f a second", rate), target: "150",
		result: fmt.Sprintf("%.0f", each), ratio: percentOfTarget(each, 150),
		remark: fmt.Sprintf("%d changes of objects of all kinds", changes)})
	return nil
}
