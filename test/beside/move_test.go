package beside

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// TestMove moves accounts from an upstream Clouddriver to agents and back, while everything fails that can fail,
// and checks each answer that readers get meanwhile.
func TestMove(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts two clusters")
	}
	clusters := startClusters(t, east, west)
	if *clouddriverArguments != "" {
		moveBeside(t, startClouddriver(t, clusters), clusters)
		return
	}
	moveBeside(t, startStandIn(t, clusters), clusters)
}

// journey is one run of TestMove.
type journey struct {
	t         *testing.T
	in        *installation
	upstream  clouddriver
	agents    map[string]*agent
	ownership *ownership
	callers   *callers
	frozen    downtimes
	down      downtimes
	name      atomic.Value // of the step
	began     time.Time
}

// moveBeside runs all steps before an upstream Clouddriver that has the accounts of the clusters.
func moveBeside(t *testing.T, c clouddriver, clusters map[string]*cluster) {
	s := settings{upstream: c.URL(), timeouts: shortTimeouts, further: shortTasks, grace: 4 * time.Second}
	if isLong() {
		s = settings{upstream: c.URL(), grace: 20 * time.Second}
	}
	j := &journey{t: t, in: newInstallation(t, s), upstream: c, agents: map[string]*agent{}, ownership: newOwnership(east, west), began: time.Now()}
	j.name.Store("start")
	logVersions(t, j.in, clusters[west])
	for account, plane := range clusters {
		j.agents[account] = j.in.newAgent(account, plane.Kubeconfig())
	}
	j.callers = j.startCallers(clusters)
	j.steps()
	j.begin("the last operations end")
	patience := time.Second
	if isLong() {
		patience = 2 * time.Minute
	}
	j.callers.writer.stop(patience)
	j.callers.stopReaders()
	j.begin("end")
	j.judge(clusters)
}

// step returns the name of the current step.
func (j *journey) step() string { return j.name.Load().(string) }

// begin begins a step.
func (j *journey) begin(name string) {
	j.name.Store(name)
	j.t.Logf("%5.1fs  %s", time.Since(j.began).Seconds(), name)
}

// judge reports what went wrong, and prints for how long each reader got errors.
func (j *journey) judge(clusters map[string]*cluster) {
	w := j.callers.writer
	runs := map[string]map[string]int{}
	for account, c := range clusters {
		found, err := c.runs(j.t.Context())
		if err != nil {
			j.t.Fatal(err)
		}
		runs[account] = found
	}
	if err := j.upstream.addRuns(j.t.Context(), runs); err != nil {
		j.t.Fatal(err)
	}
	all, failed, reasons := w.judge(runs, j.upstream.mayRunTwice)
	w.violations.report(j.t)
	j.t.Logf("longest time with errors, by reader and by the step in which the first error came:\n%v", w.times)
	j.t.Logf("%d operations, %d of them failed: %v", all, failed, reasons)
	if all == 0 {
		j.t.Error("got no operation that ended")
	}
}

// freeze freezes the upstream Clouddriver for a while.
func (j *journey) freeze() {
	j.frozen.begin()
	j.upstream.Freeze()
	sleep(j.t.Context(), *freezeFor)
	j.upstream.Thaw()
	j.frozen.end()
	j.settle()
}

// settle waits until readers have asked again, so that errors of one step are not counted with those of the next.
func (j *journey) settle() { sleep(j.t.Context(), max(recovery, *freezeFor/3)) }

// steps runs all steps.
func (j *journey) steps() {
	for _, s := range []struct {
		name string
		run  func()
	}{
		{"nothing has moved", j.freeze},
		{"first synchronization of west over a slow link", j.firstSynchronization},
		{"agents have west", j.freeze},
		{"the server is killed and restarted", j.restartServer},
		{"west is given back", func() { j.giveBack(west) }},
		{"west moves again", func() { j.moveToAgents(west) }},
		{"east moves, too", func() { j.moveToAgents(east) }},
		{"both are given back", j.giveBackBoth},
	} {
		j.begin(s.name)
		s.run()
	}
}

// slowBytesPerSecond makes the first synchronization take 5 seconds, or half a minute with the filler of the long form. A link that
// is much slower delays heartbeats behind objects until the server takes the agent for dead.
const slowBytesPerSecond = 12_000

// firstSynchronization starts the agent of west over a slow link. It is killed in the middle and started again. The
// upstream Clouddriver is frozen in the middle, too. On a loaded machine, all feeds may be live before anybody looks.
func (j *journey) firstSynchronization() {
	a := j.agents[west]
	a.link.Limit(slowBytesPerSecond)
	j.ownership.begin(west, agents)
	begun := func(ctx context.Context) error { return j.in.checkFirstFeeds(ctx, west) }
	a.Start()
	await(j.t, time.Minute, "a part of west is stored", begun)
	a.Kill()
	a.Start()
	await(j.t, time.Minute, "a part of west is stored again", begun)
	j.freeze()
	j.awaitAgents(west)
	a.link.Heal()
	a.link.AddLatency(20 * time.Millisecond)
}

// moveToAgents starts the agent of an account, and freezes the upstream Clouddriver while the account moves.
func (j *journey) moveToAgents(account string) {
	j.ownership.begin(account, agents)
	j.agents[account].Start()
	j.freeze()
	j.awaitAgents(account)
	sleep(j.t.Context(), recovery)
}

// restartServer kills the server while the upstream Clouddriver is frozen, and starts it again.
func (j *journey) restartServer() {
	j.frozen.begin()
	j.upstream.Freeze()
	j.down.begin()
	j.in.server.Kill()
	sleep(j.t.Context(), time.Second)
	j.in.server.Start()
	j.in.awaitServer()
	j.down.end()
	sleep(j.t.Context(), *freezeFor-time.Second)
	j.upstream.Thaw()
	j.frozen.end()
	await(j.t, time.Minute, "the agent of west is connected again", func(ctx context.Context) error { return j.in.checkSynchronized(ctx, west) })
	j.settle()
}

// giveBack stops the agents of accounts. The upstream Clouddriver is frozen until after the grace period.
func (j *journey) giveBack(accounts ...string) {
	for _, account := range accounts {
		j.ownership.begin(account, upstream)
		j.agents[account].Stop()
	}
	j.freeze()
	for _, account := range accounts {
		j.awaitOwner(account, upstream)
	}
	sleep(j.t.Context(), recovery)
}

// giveBackBoth gives back both accounts. In the short form no operations are sent meanwhile, because the ends of those whose
// agents have gone are known only half a minute later.
func (j *journey) giveBackBoth() {
	if !isLong() {
		j.callers.writer.finish(time.Second)
	}
	j.giveBack(east, west)
}

func (j *journey) awaitAgents(account string) {
	j.t.Helper()
	await(j.t, 10*time.Minute, account+" is synchronized", func(ctx context.Context) error { return j.in.checkSynchronized(ctx, account) })
	j.awaitOwner(account, agents)
}

// awaitOwner waits until an account is answered by its new owner.
func (j *journey) awaitOwner(account string, want owner) {
	j.t.Helper()
	await(j.t, 2*time.Minute, fmt.Sprintf("%s is answered by %v", account, want),
		func(ctx context.Context) error { return j.in.checkOwner(ctx, account, want) })
	j.ownership.finish(account)
}
