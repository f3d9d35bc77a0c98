package scale

import (
	"flag"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"
)

var (
	serverCount  = flag.Int("servers", 3, "number of servers; 1 uses the database alone, and is not killed")
	agentCount   = flag.Int("agents", 60, "number of agents")
	accountCount = flag.Int("accounts", 150, "number of accounts, which the agents share evenly")
	objectCount  = flag.Int("objects", 20, "number of objects of each account")
	changeRate   = flag.Float64("changes", 50, "changes a second in all accounts, where something is measured under load")
	loadTime     = flag.Duration("load", 5*time.Second, "how long changes go on before their cost and the growth of the database are measured")
	processes    = flag.Int("processes", 2, "number of processes that have the agents and the clusters")
	bookmarks    = flag.Duration("bookmarks", 2*time.Second, "how often the API servers send bookmarks")
	idleTime     = flag.Duration("idle", 6*time.Second, "how long nothing happens before what idle servers write is measured")
	operations   = flag.Int("operations", 50, "accounts of a killed server that are sent operations")
	durable      = flag.Bool("durable", false, "let the database wait for the disk at each commit")
	profiles     = flag.String("profiles", "", "existing `directory` for profiles of the servers; profiling takes time of its own")
	limits       = flag.Bool("limits", true, "check what does not depend on how fast the machine is")
)

// measurement is one run.
type measurement struct {
	*installation
	table
	withAgents memory    // before they have accounts
	synced     time.Time // when all accounts were live for the first time
	steady     rate      // of the database, under load
}

// TestServers runs agents at servers that share a database, and kills one of the servers twice: while nothing changes, and under load.
func TestServers(t *testing.T) {
	m := &measurement{installation: newInstallation(t)}
	defer func() { t.Log("\n" + m.table.String()) }()
	m.start()
	m.idle()
	if *serverCount > 1 {
		m.reconnect()
	}
	m.underLoad()
}

// start connects the agents, gives them their accounts, and measures the memory that agents take.
func (m *measurement) start() {
	empty := m.memory()
	m.startAgents()
	m.awaitConnected()
	if !isShort() {
		m.pause(settleTime) // until the memory for the beginning of the connections is free
	}
	m.withAgents = m.memory()
	m.add("memory of a server without agents", mib(empty.resident/int64(*serverCount)), mib(empty.inUse/int64(*serverCount))+" in use")
	m.add("memory in use per agent, all servers", kib(float64(m.withAgents.inUse-empty.inUse)/float64(*agentCount)), fmt.Sprintf("%d agents without accounts", *agentCount))
	began, before := time.Now(), m.database.load()
	m.giveAccounts()
	m.synced = time.Now()
	took, l := time.Since(began), m.database.load()
	m.add("first sync of all accounts", seconds(took), fmt.Sprintf("%d accounts of %d objects, %d statements", *accountCount, *objectCount, l.statements-before.statements))
	m.expectEachOnce()
	for _, s := range m.servers {
		m.saveProfile(s, "heap", "synced", nil)
	}
}

// isShort reports whether times need not be right, because only what is counted is checked.
func isShort() bool { return *loadTime < sampledTime }

// settle waits until the database has added to its statistics what was done until a time.
func (m *measurement) settle(until time.Time) {
	m.t.Helper()
	if rest := settleTime - time.Since(until); rest > 0 {
		m.pause(rest)
	}
}

// maxAttempts is how often something is measured again during which something else has happened. On a machine that has
// too much to do, agents lose connections; nothing is checked if that does not end.
const maxAttempts = 5

// state is what changes when an agent loses the connection to a server or to a cluster.
type state struct{ terms, watches int64 }

func (m *measurement) state() state {
	m.t.Helper()
	s := state{watches: m.agents.counts().Watches}
	m.database.query(`SELECT COALESCE(sum(term), 0)::bigint FROM accounts`, nil, &s.terms)
	return s
}

func (m *measurement) logDisturbance(got, want state) {
	m.t.Helper()
	if got != want {
		m.t.Logf("something else has happened meanwhile: the terms of accounts have risen by %d too much, and %d watches have begun", got.terms-want.terms,
			got.watches-want.watches)
	}
}

// undisturbed calls measure until it reports that nothing else has happened meanwhile, and reports whether it did.
func (m *measurement) undisturbed(what string, measure func() bool) bool {
	m.t.Helper()
	for range maxAttempts {
		if measure() {
			return true
		}
	}
	m.add(what+": agents have lost connections meanwhile", "not checked", "the machine has too much to do")
	return false
}

// idle measures what is written while nothing happens but bookmarks: in each cluster, something changes that nobody watches. The first sync is followed by work that ends, such as storing up to when each account
// is complete for the first time.
func (m *measurement) idle() {
	m.await("the freshness of all accounts", func() bool { return m.database.followers() == *accountCount })
	if !isShort() {
		m.settle(time.Now())
	}
	m.database.resetStatements()
	var r rate
	var used map[string]tableUse
	var spent time.Duration
	isIdle := m.undisturbed("idle", func() bool {
		state, before, tables, cpu := m.state(), m.database.load(), m.database.tables(), m.cpu()
		m.pauseWithBookmarks(*idleTime)
		r, spent = m.database.load().since(before), m.cpu()-cpu
		used = difference(m.database.tables(), tables)
		after := m.state()
		m.logDisturbance(after, state)
		return after == state
	})
	m.add("idle: rows written a second and server", fmt.Sprintf("%.2f", r.written/float64(*serverCount)), fmt.Sprintf("in %v", *idleTime))
	m.add("idle: statements a second and server", fmt.Sprintf("%.1f", r.statements/float64(*serverCount)), "")
	m.add("idle: processor time of all servers", fmt.Sprintf("%.1f %% of a core", 100*spent.Seconds()/idleTime.Seconds()), "")
	now := m.memory()
	m.add("memory in use per account, all servers", kib(float64(now.inUse-m.withAgents.inUse)/float64(*accountCount)), "after "+idleTime.String()+" without changes")
	m.add("resident memory of the agents and clusters, per account", kib(float64(m.agents.memory())/float64(*accountCount)), fmt.Sprintf("%d processes", m.agents.share.Processes))
	m.add("memory of a server", mib(now.resident/int64(*serverCount)), mib(now.inUse/int64(*serverCount))+" in use")
	for _, s := range m.servers {
		m.saveProfile(s, "heap", "idle", nil)
	}
	for name, u := range used {
		if u.written > 0 {
			m.add("idle: rows of "+name, fmt.Sprintf("%d written", u.written), "")
		}
	}
	written, most := r.written*idleTime.Seconds(), maxIdleRows(*idleTime)*float64(*serverCount)
	if *limits && isIdle && written > most {
		m.t.Errorf("idle servers write %.0f rows in %v, want at most %.0f:\n%s", written, *idleTime, most, strings.Join(m.database.statements("", 20), "\n"))
	}
}

// pauseWithBookmarks is pause, while the next bookmark of each feed has another version each time.
func (m *measurement) pauseWithBookmarks(d time.Duration) {
	m.t.Helper()
	for rest := d; rest > 0; rest -= *bookmarks {
		m.agents.advance()
		m.pause(min(rest, *bookmarks))
	}
}

// maxIdleRows is how many rows an idle server may write: its lease each second, and the freshness of its accounts each 15 seconds, each of
// them once more if a timer was late before.
func maxIdleRows(during time.Duration) float64 { return during.Seconds()*(1+1./15) + 2 }

// reconnect kills a server while nothing changes. Its agents connect to the others, for which no row of an object may be used.
func (m *measurement) reconnect() {
	var k killed
	var used map[string]tableUse
	var lists int64
	m.settle(m.synced)
	isOnly := m.undisturbed("reconnect without changes", func() bool {
		victim := m.fullest()
		m.database.resetStatements()
		state, tables, counts := m.state(), m.database.tables(), m.agents.counts()
		k = m.kill(victim, nil)
		m.expectEachOnce()
		m.pause(settleTime)
		used = difference(m.database.tables(), tables)
		lists = m.agents.counts().Minus(counts).ObjectLists()
		after := m.state()
		m.logStatements()
		m.restart(victim)
		state.terms += int64(k.accounts)
		m.logDisturbance(after, state)
		return after == state
	})
	m.add("reconnect without changes: all accounts live", seconds(k.live), fmt.Sprintf("%d accounts", k.accounts))
	m.add("reconnect without changes: statements per account", fmt.Sprintf("%.1f", float64(k.work.statements)/float64(k.accounts)),
		fmt.Sprintf("%.1f rows written", float64(k.work.written)/float64(k.accounts)))
	for _, name := range []string{"objects", "labels", "labelsets", "dictionaries"} {
		u := used[name]
		m.add("reconnect without changes: rows of "+name, fmt.Sprintf("%d read, %d written", u.read, u.written), "")
		if *limits && isOnly && u != (tableUse{}) {
			m.t.Errorf("the reconnect of agents without changes has read %d and written %d rows of %s, want none; statements:\n%s", u.read, u.written, name,
				strings.Join(m.database.statements(`\m(from|join|into|update)\s+`+name+`\M`, 10), "\n"))
		}
	}
	if isOnly && lists != 0 {
		m.t.Errorf("the reconnect of agents without changes has listed %d pages of objects, want none", lists)
	}
}

// fullest returns the number of the server with the most accounts: one that was started again has none.
func (m *measurement) fullest() (number int) {
	most := 0
	for i, s := range m.servers {
		if n := len(m.database.accountsOf(s.id)); n > most {
			number, most = i, n
		}
	}
	return number
}

// restart starts a server again, which gets no agents: they stay where they are.
func (m *measurement) restart(i int) {
	m.servers[i].Start()
	m.awaitReady(m.servers[i])
}

// logStatements logs what was executed most often since the last reset.
func (m *measurement) logStatements() {
	if testing.Verbose() {
		m.t.Logf("statements:\n%s", strings.Join(m.database.statements("", 40), "\n"))
	}
}

// underLoad measures what changes and operations cost, and kills a server meanwhile.
func (m *measurement) underLoad() {
	m.agents.churn(*changeRate)
	defer m.agents.churn(0)
	if !isShort() {
		m.pause(settleTime)
	}
	before, size, cpu, steps := m.database.load(), m.database.size(), m.cpu(), m.agents.steps()
	for _, s := range m.servers {
		if *profiles != "" {
			go m.saveProfile(s, "profile", "steady", url.Values{"seconds": {fmt.Sprint(int(loadTime.Seconds()))}})
		}
	}
	m.pause(*loadTime)
	changes, spent := m.agents.steps()-steps, m.cpu()-cpu
	m.steady = m.database.load().since(before)
	m.add("processor time of all servers per 1,000 changes", fmt.Sprintf("%.0f ms", 1000*float64(spent.Milliseconds())/float64(changes)),
		fmt.Sprintf("%d changes in %v", changes, *loadTime))
	m.add("database: statements a second under load", fmt.Sprintf("%.0f", m.steady.statements), fmt.Sprintf("%.0f rows written, busy %.0f ms a second", m.steady.written, m.steady.busy))
	m.add("database: growth per 1,000 changes", kib(1000*float64(m.database.size()-size)/float64(changes)),
		fmt.Sprintf("from %s", mib(size)))
	if *serverCount == 1 {
		return
	}
	m.database.resetStatements()
	victim := m.fullest()
	k := m.kill(victim, m.operate(victim))
	m.logStatements()
	m.report(k)
	m.expectEachOnce()
}

// report reports how a server was replaced under load.
func (m *measurement) report(k killed) {
	m.add("kill -9: operations work again", k.operations.String(), fmt.Sprintf("aim: p99 3 s; %d of %d accounts", k.operations.n, k.accounts))
	m.add("kill -9: all accounts live", seconds(k.live), fmt.Sprintf("aim: 15 s; half after %s", seconds(k.half)))
	moving := rate{statements: float64(k.work.statements) / k.live.Seconds(), written: float64(k.work.written) / k.live.Seconds()}
	m.add("kill -9: database while accounts move", fmt.Sprintf("%.0f statements/s, %.0f rows/s", moving.statements, moving.written),
		fmt.Sprintf("%.1f and %.1f × as under load before (aim: 2)", moving.statements/m.steady.statements, moving.written/m.steady.written))
	for _, window := range []time.Duration{5 * time.Second, 15 * time.Second} {
		r := k.rateWithin(window)
		m.add(fmt.Sprintf("kill -9: database in the first %v", window), fmt.Sprintf("%.0f statements/s, %.0f rows/s, busy %.0f ms/s", r.statements, r.written, r.busy),
			fmt.Sprintf("%.1f, %.1f and %.1f × as under load before (aim: 2)", r.statements/m.steady.statements, r.written/m.steady.written, r.busy/m.steady.busy))
	}
}

func mib(bytes int64) string         { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
func kib(bytes float64) string       { return fmt.Sprintf("%.0f KiB", math.Round(bytes/(1<<10))) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
