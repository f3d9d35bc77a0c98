package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/fleet"
	"github.com/vedette-io/vedette/test/fleet/sample"
)

var configMaps = vedette.Kind{Name: "ConfigMap"}

// changedObjects is how many objects are changed in turn.
const changedObjects = 500

// latency measures the time from the API server's response to a change until the change is in
// the server's stream of committed changes, without other load and during the first sync of
// another cluster.
func latency(ctx context.Context, b *bench) error {
	c, err := b.startCluster(ctx, map[vedette.Kind]int{configMaps: changedObjects})
	if err != nil {
		return err
	}
	defer c.Stop()
	for _, background := range []backgroundSync{noSync, otherAgentSync, sameAgentSync} {
		for _, rate := range []int{50, 500} {
			if err := b.latencyAt(ctx, c, rate, background); err != nil {
				return err
			}
		}
	}
	return nil
}

// backgroundSync says whose first sync runs during the measurement.
type backgroundSync string

const (
	noSync         backgroundSync = "alone"
	otherAgentSync backgroundSync = "while another agent's cluster is first synced"
	sameAgentSync  backgroundSync = "while another cluster of the same agent is first synced"
)

// latencyAt measures one rate of changes.
func (b *bench) latencyAt(ctx context.Context, c *cluster, rate int, background backgroundSync) error {
	srv, err := b.startServer(ctx, "")
	if err != nil {
		return err
	}
	defer srv.stop()
	objects := mixedKinds(b.scale(50000))
	f, err := fleet.Start(fleet.Config{Objects: objects})
	if err != nil {
		return err
	}
	defer f.Close()
	f.Cluster(0).Hold()
	others, err := b.writeAccounts(f, objects)
	if err != nil {
		return err
	}
	watched := []account{{"watched", c.Kubeconfig(), []string{"ConfigMap"}}}
	if background == sameAgentSync {
		watched = append(watched, others...)
	}
	agent, err := b.startAgent(srv.grpc, watched...)
	if err != nil {
		return err
	}
	defer agent.stop()
	n, err := c.count(ctx)
	if err != nil {
		return err
	}
	if _, err := srv.awaitCount(ctx, "watched", n, 50*time.Millisecond, agent); err != nil {
		return err
	}
	if background == otherAgentSync {
		other, err := b.startAgent(srv.grpc, others...)
		if err != nil {
			return err
		}
		defer other.stop()
	}
	probe := newLatencyProbe()
	if err := probe.watch(ctx, srv); err != nil {
		return err
	}
	phase, end := context.WithTimeout(ctx, time.Duration(b.scale(20))*time.Second)
	defer end()
	remark := ""
	if background != noSync {
		f.Cluster(0).Release()
		began := time.Now()
		go func() { // the measurement ends with the first sync
			if at, err := srv.awaitCount(phase, others[0].name, f.Cluster(0).Count(), 100*time.Millisecond); err == nil {
				remark = fmt.Sprintf("; %d objects in %s", f.Cluster(0).Count(), seconds(at.Sub(began)))
				end()
			}
		}()
	}
	made, took, err := c.generateChanges(phase, rate, probe)
	if err != nil {
		return err
	}
	return b.reportLatency(ctx, probe, rate, background, fmt.Sprintf("%.0f changes a second%s", float64(made)/took.Seconds(), remark))
}

func (b *bench) reportLatency(ctx context.Context, probe *latencyProbe, rate int, background backgroundSync, remark string) error {
	seen, missing, err := probe.wait(ctx)
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return fmt.Errorf("no change was visible %s", background)
	}
	slices.Sort(seen)
	p50, p99 := seen[len(seen)/2], seen[len(seen)*99/100]
	b.table.add(row{measure: fmt.Sprintf("change to visible, %d a second, %s", rate, background), target: "p50 40 ms, p99 200 ms",
		result: fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", ms(p50), ms(p99)),
		ratio:  percentOfTarget(ms(p50), 40) + ", " + percentOfTarget(ms(p99), 200),
		remark: fmt.Sprintf("%d changes, longest %.0f ms, %d not seen; %s", len(seen), ms(seen[len(seen)-1]), missing, remark)})
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// generateChanges changes objects at a fixed rate until ctx ends. The rate is lower if the API
// server is too slow.
func (c *cluster) generateChanges(ctx context.Context, rate int, probe *latencyProbe) (made int, took time.Duration, err error) {
	r, _ := sample.Resource(configMaps)
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(32)
	for ctx.Err() == nil && running.Err() == nil {
		<-tick.C
		for ; made < int(time.Since(began).Seconds()*float64(rate)) && ctx.Err() == nil; made++ {
			n := made
			group.Go(func() error {
				key, version, err := c.change(running, r, n%changedObjects, int(began.UnixMilli())+n)
				probe.recordChange(key, version, time.Now())
				return err
			})
		}
	}
	took = time.Since(began)
	return made, took, group.Wait()
}

// latencyProbe matches changes that were made with changes in the stream. A change is visible
// as soon as the stream has its object in that version or a later one.
type latencyProbe struct {
	mu      gosync.Mutex
	waiting map[vedette.Key][]observation
	last    map[vedette.Key]observation
	seen    []time.Duration
	err     error
}

type observation struct {
	version uint64
	at      time.Time
}

func newLatencyProbe() *latencyProbe {
	return &latencyProbe{waiting: map[vedette.Key][]observation{}, last: map[vedette.Key]observation{}}
}

func (p *latencyProbe) recordChange(key vedette.Key, version string, at time.Time) {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return // the change failed; its caller reports the error
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.last[key]; last.version >= v {
		p.seen = append(p.seen, max(0, last.at.Sub(at)))
		return
	}
	p.waiting[key] = append(p.waiting[key], observation{v, at})
}

func (p *latencyProbe) observe(key vedette.Key, version uint64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = observation{version, at}
	p.waiting[key] = slices.DeleteFunc(p.waiting[key], func(s observation) bool {
		if s.version <= version {
			p.seen = append(p.seen, at.Sub(s.at))
		}
		return s.version <= version
	})
}

// wait waits up to ten seconds for changes that are not visible yet.
func (p *latencyProbe) wait(ctx context.Context) (seen []time.Duration, missing int, err error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		p.mu.Lock()
		missing = 0
		for _, waiting := range p.waiting {
			missing += len(waiting)
		}
		seen, err = slices.Clone(p.seen), p.err
		p.mu.Unlock()
		if missing == 0 || err != nil || ctx.Err() != nil || time.Now().After(deadline) {
			return seen, missing, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// watch starts to read the server's stream of changes until ctx ends.
func (p *latencyProbe) watch(ctx context.Context, s *server) error {
	u := url.URL{Scheme: "http", Host: s.rest, Path: "/vedette/v1/changes",
		RawQuery: url.Values{"account": {"watched"}, "kind": {"ConfigMap"}}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	ready := make(chan struct{})
	go func() {
		defer resp.Body.Close()
		readyOnce := gosync.OnceFunc(func() { close(ready) })
		defer readyOnce()
		p.read(bufio.NewScanner(resp.Body), readyOnce)
	}()
	<-ready
	return nil
}

func (p *latencyProbe) read(lines *bufio.Scanner, ready func()) {
	lines.Buffer(nil, 4<<20)
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case event == "ready":
			ready()
		case event == "added" || event == "modified":
			p.handleEvent([]byte(data), time.Now())
		case event == "lagged" || event == "error":
			p.mu.Lock()
			p.err = fmt.Errorf("the stream of changes sent %s: %s", event, data)
			p.mu.Unlock()
		}
	}
}

func (p *latencyProbe) handleEvent(data []byte, at time.Time) {
	var o struct {
		Namespace, Name string
		ResourceVersion uint64 `json:",string"`
	}
	if json.Unmarshal(data, &o) == nil {
		p.observe(vedette.Key{Kind: configMaps, Namespace: o.Namespace, Name: o.Name}, o.ResourceVersion, at)
	}
}
