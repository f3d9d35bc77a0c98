package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// syncResult is the result of one first sync.
type syncResult struct {
	took   time.Duration
	bytes  int64 // of the lists; 0 if not counted
	client usage // of the process that read the cluster
	server usage // of vedette-server, if it took part
	api    time.Duration
}

// firstSync compares three ways to read a cluster for the first time: a plain list,
// client-go's informers, and an agent and a server until the server returns all objects. They
// alternate, and the table has the median.
func firstSync(ctx context.Context, b *bench) error {
	c, err := b.startCluster(ctx, b.referenceObjects())
	if err != nil {
		return err
	}
	defer c.Stop()
	n, err := c.count(ctx)
	if err != nil {
		return err
	}
	methods := []struct {
		name string
		do   func(context.Context, *cluster, int) (syncResult, error)
	}{{"list", b.syncByList}, {"informers", b.syncByInformers}, {"vedette", b.syncByVedette}}
	results := map[string][]syncResult{}
	for range 4 { // the first round warms up the API server
		for _, method := range methods {
			s, err := method.do(ctx, c, n)
			if err != nil {
				return fmt.Errorf("sync by %s: %w", method.name, err)
			}
			logf("%s: %s, client %s, %s", method.name, seconds(s.took), s.client.memory(), s.client.cpu())
			results[method.name] = append(results[method.name], s)
		}
	}
	b.reportSyncs(n, median(results["list"][1:]), median(results["informers"][1:]), median(results["vedette"][1:]))
	b.table.add(row{measure: "shortest and longest of the rounds that count", result: fmt.Sprintf("list %s, informers %s, Vedette %s",
		rangeText(results["list"][1:]), rangeText(results["informers"][1:]), rangeText(results["vedette"][1:]))})
	return nil
}

// rangeText returns the shortest and the longest round.
func rangeText(syncs []syncResult) string {
	return fmt.Sprintf("%.2f to %.2f s", syncs[0].took.Seconds(), syncs[len(syncs)-1].took.Seconds())
}

func median(syncs []syncResult) syncResult {
	slices.SortFunc(syncs, func(a, b syncResult) int { return int(a.took - b.took) })
	return syncs[len(syncs)/2]
}

func (b *bench) reportSyncs(n int, list, informers, vedette syncResult) {
	t := &b.table
	t.add(row{measure: fmt.Sprintf("bare paged list of %d objects, 7 kinds", n), result: seconds(list.took), ratio: "1.00 x",
		remark: fmt.Sprintf("%.1f MB; %s, API server %s", float64(list.bytes)/1e6, list.client.cpu(), seconds(list.api))})
	t.add(row{measure: "dynamic informers until synced", result: seconds(informers.took),
		ratio:  ratio(informers.took.Seconds(), list.took.Seconds()),
		remark: fmt.Sprintf("%s; %s, API server %s", informers.client.memory(), informers.client.cpu(), seconds(informers.api))})
	t.add(row{measure: "Vedette until readers see all", target: "1.5 x the bare list", result: seconds(vedette.took),
		ratio:  ratio(vedette.took.Seconds(), list.took.Seconds()),
		remark: fmt.Sprintf("agent %s, server %s, API server %s", vedette.client.cpu(), vedette.server.cpu(), seconds(vedette.api))})
	t.add(row{measure: "agent's memory after it", target: "40 MiB, peak 64 MiB", result: vedette.client.memory(),
		ratio:  ratio(float64(vedette.client.RSS), float64(informers.client.RSS)) + " informers",
		remark: "SQLite server: " + vedette.server.memory()})
}

// syncByList runs a plain list in a process.
func (b *bench) syncByList(ctx context.Context, c *cluster, _ int) (syncResult, error) {
	self, err := os.Executable()
	if err != nil {
		return syncResult{}, err
	}
	args := []string{listCommand, c.URL, c.CA(), c.ClientCert(), c.ClientKey()}
	for _, r := range c.kinds {
		args = append(args, c.path(r, ""))
	}
	return b.syncByProcess(ctx, c, "list", self, args...)
}

// syncByInformers runs client-go's informers in a process.
func (b *bench) syncByInformers(ctx context.Context, c *cluster, _ int) (syncResult, error) {
	args := []string{c.Kubeconfig()}
	for _, r := range c.kinds {
		args = append(args, r.Plural+"."+r.Version+"."+r.Kind.Group)
	}
	return b.syncByProcess(ctx, c, "informers", b.program("informers"), args...)
}

// syncByProcess runs a program that prints "done", its duration and the bytes that it read.
func (b *bench) syncByProcess(ctx context.Context, c *cluster, name, program string, args ...string) (syncResult, error) {
	before, err := c.cpu()
	if err != nil {
		return syncResult{}, err
	}
	p, err := b.start(name, nil, program, args...)
	if err != nil {
		return syncResult{}, err
	}
	defer p.kill()
	var s syncResult
	err = await(ctx, name+" to be done", 20*time.Millisecond, func() (bool, error) {
		text, err := os.ReadFile(p.log)
		_, rest, found := strings.Cut(string(text), "done ")
		if err != nil || !found || !strings.HasSuffix(rest, "\n") {
			return false, err
		}
		var nanoseconds int64
		_, err = fmt.Sscan(rest, &nanoseconds, &s.bytes)
		s.took = time.Duration(nanoseconds)
		return err == nil, err
	}, p)
	if err != nil {
		return s, err
	}
	return s, s.finish(c, before, p, nil)
}

// syncByVedette runs an agent with a new server.
func (b *bench) syncByVedette(ctx context.Context, c *cluster, n int) (syncResult, error) {
	srv, err := b.startServer(ctx, "")
	if err != nil {
		return syncResult{}, err
	}
	defer srv.stop()
	before, err := c.cpu()
	if err != nil {
		return syncResult{}, err
	}
	began := time.Now()
	agent, err := b.startAgent(srv.grpc, account{"reference", c.Kubeconfig(), c.kindNames()})
	if err != nil {
		return syncResult{}, err
	}
	defer agent.stop()
	ended, err := srv.awaitCount(ctx, "reference", n, 25*time.Millisecond, agent)
	if err != nil {
		return syncResult{}, err
	}
	s := syncResult{took: ended.Sub(began)}
	if err := srv.awaitLive(ctx, agent); err != nil {
		return s, err
	}
	return s, s.finish(c, before, agent, srv.program)
}

// memorySettleTime is the time between the end of a sync and the reading of the memory.
const memorySettleTime = 5 * time.Second

// finish reads what the processes used. It waits before it reads the memory, because garbage of
// the sync is still being freed.
func (s *syncResult) finish(c *cluster, before time.Duration, client, server *program) error {
	after, err := c.cpu()
	if err != nil {
		return err
	}
	s.api = after - before
	time.Sleep(memorySettleTime)
	s.client, err = client.usage()
	if err != nil || server == nil {
		return err
	}
	s.server, err = server.usage()
	return err
}
