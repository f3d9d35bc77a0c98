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

// changed is how many objects take turns at being changed.
const changed = 500

// latency measures how long after the API server has answered a change, readers
// of the server's stream of changes, which tells what is committed, see it: with
// nothing else to do, and while another cluster is read for the first time.
func latency(ctx context.Context, b *bench) error {
	c, err := b.startCluster(ctx, map[vedette.Kind]int{configMaps: changed})
	if err != nil {
		return err
	}
	defer c.Stop()
	for _, beside := range []besides{nobody, otherAgent, sameAgent} {
		for _, rate := range []int{50, 500} {
			if err := b.latencyAt(ctx, c, rate, beside); err != nil {
				return err
			}
		}
	}
	return nil
}

// besides says who is synced for the first time meanwhile.
type besides string

const (
	nobody     besides = "alone"
	otherAgent besides = "while another agent's cluster is first synced"
	sameAgent  besides = "while another cluster of the same agent is first synced"
)

// latencyAt measures one rate of changes.
func (b *bench) latencyAt(ctx context.Context, c *cluster, rate int, beside besides) error {
	srv, err := b.startServer(ctx, "")
	if err != nil {
		return err
	}
	defer srv.stop()
	objects := mixed(b.scale(50000))
	f, err := fleet.Start(fleet.Config{Objects: objects})
	if err != nil {
		return err
	}
	defer f.Close()
	f.Cluster(0).Hold()
	others, err := b.accountsOf(f, objects)
	if err != nil {
		return err
	}
	watched := []account{{"watched", c.Kubeconfig(), []string{"ConfigMap"}}}
	if beside == sameAgent {
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
	if beside == otherAgent {
		other, err := b.startAgent(srv.grpc, others...)
		if err != nil {
			return err
		}
		defer other.stop()
	}
	w := newSightings()
	if err := w.watch(ctx, srv); err != nil {
		return err
	}
	phase, end := context.WithTimeout(ctx, time.Duration(b.scale(20))*time.Second)
	defer end()
	remark := ""
	if beside != nobody {
		f.Cluster(0).Release()
		began := time.Now()
		go func() { // the phase ends with the first sync
			if at, err := srv.awaitCount(phase, others[0].name, f.Cluster(0).Count(), 100*time.Millisecond); err == nil {
				remark = fmt.Sprintf("; %d objects in %s", f.Cluster(0).Count(), seconds(at.Sub(began)))
				end()
			}
		}()
	}
	made, took, err := c.churn(phase, rate, w)
	if err != nil {
		return err
	}
	return b.tellLatency(ctx, w, rate, beside, fmt.Sprintf("%.0f changes a second%s", float64(made)/took.Seconds(), remark))
}

func (b *bench) tellLatency(ctx context.Context, w *sightings, rate int, beside besides, remark string) error {
	seen, missing, err := w.wait(ctx)
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return fmt.Errorf("no change was seen %s", beside)
	}
	slices.Sort(seen)
	p50, p99 := seen[len(seen)/2], seen[len(seen)*99/100]
	b.table.add(row{measure: fmt.Sprintf("change to visible, %d a second, %s", rate, beside), aim: "p50 40 ms, p99 200 ms",
		result: fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", ms(p50), ms(p99)), ratio: ofAim(ms(p50), 40) + ", " + ofAim(ms(p99), 200),
		remark: fmt.Sprintf("%d changes, longest %.0f ms, %d not seen; %s", len(seen), ms(seen[len(seen)-1]), missing, remark)})
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// churn changes objects at a rate, as far as the API server keeps up, until ctx
// ends.
func (c *cluster) churn(ctx context.Context, rate int, w *sightings) (made int, took time.Duration, err error) {
	r, _ := sample.Resource(configMaps)
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	group, working := errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(32)
	for ctx.Err() == nil && working.Err() == nil {
		<-tick.C
		for ; made < int(time.Since(began).Seconds()*float64(rate)) && ctx.Err() == nil; made++ {
			n := made
			group.Go(func() error {
				key, version, err := c.change(working, r, n%changed, int(began.UnixMilli())+n)
				w.made(key, version, time.Now())
				return err
			})
		}
	}
	took = time.Since(began)
	return made, took, group.Wait()
}

// sightings match changes that were made with changes that were seen. A change
// counts as seen when its object is, in its version or a later one.
type sightings struct {
	mu      gosync.Mutex
	waiting map[vedette.Key][]sighting
	last    map[vedette.Key]sighting
	seen    []time.Duration
	err     error
}

type sighting struct {
	version uint64
	at      time.Time
}

func newSightings() *sightings {
	return &sightings{waiting: map[vedette.Key][]sighting{}, last: map[vedette.Key]sighting{}}
}

func (w *sightings) made(key vedette.Key, version string, at time.Time) {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return // the change failed, and its caller says so
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.last[key]; last.version >= v {
		w.seen = append(w.seen, max(0, last.at.Sub(at)))
		return
	}
	w.waiting[key] = append(w.waiting[key], sighting{v, at})
}

func (w *sightings) saw(key vedette.Key, version uint64, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[key] = sighting{version, at}
	w.waiting[key] = slices.DeleteFunc(w.waiting[key], func(s sighting) bool {
		if s.version <= version {
			w.seen = append(w.seen, at.Sub(s.at))
		}
		return s.version <= version
	})
}

// wait gives what is still to be seen up to ten seconds.
func (w *sightings) wait(ctx context.Context) (seen []time.Duration, missing int, err error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		w.mu.Lock()
		missing = 0
		for _, waiting := range w.waiting {
			missing += len(waiting)
		}
		seen, err = slices.Clone(w.seen), w.err
		w.mu.Unlock()
		if missing == 0 || err != nil || ctx.Err() != nil || time.Now().After(deadline) {
			return seen, missing, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// watch reads the server's stream of changes until ctx ends. It returns once the
// stream has begun.
func (w *sightings) watch(ctx context.Context, s *server) error {
	u := url.URL{Scheme: "http", Host: s.rest, Path: "/vedette/v1/changes", RawQuery: url.Values{"account": {"watched"}, "kind": {"ConfigMap"}}.Encode()}
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
		once := gosync.OnceFunc(func() { close(ready) })
		defer once()
		w.read(bufio.NewScanner(resp.Body), once)
	}()
	<-ready
	return nil
}

func (w *sightings) read(lines *bufio.Scanner, ready func()) {
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
			w.event([]byte(data), time.Now())
		case event == "lagged" || event == "error":
			w.mu.Lock()
			w.err = fmt.Errorf("the stream of changes says %s: %s", event, data)
			w.mu.Unlock()
		}
	}
}

func (w *sightings) event(data []byte, at time.Time) {
	var o struct {
		Namespace, Name string
		ResourceVersion uint64 `json:",string"`
	}
	if json.Unmarshal(data, &o) == nil {
		w.saw(vedette.Key{Kind: configMaps, Namespace: o.Namespace, Name: o.Name}, o.ResourceVersion, at)
	}
}
