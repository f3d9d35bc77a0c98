package scale

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// killed says how a server that was killed was replaced.
type killed struct {
	accounts   int // whose agents were connected to it
	half, live time.Duration
	operations quantiles
	loads      []load // from the kill on, each second
	work       load   // differences of counters, until all were live
}

// rateWithin returns the load of the database in the time after the kill.
func (k killed) rateWithin(window time.Duration) rate {
	first, last := k.loads[0], k.loads[0]
	for _, l := range k.loads {
		if l.at.Sub(first.at) <= window+time.Second/2 {
			last = l
		}
	}
	return last.since(first)
}

// kill kills a server and waits until all accounts are live at others. It calls during at the same time, unless that is nil.
func (m *measurement) kill(server int, during func(accounts []vedette.AccountName) quantiles) killed {
	m.t.Helper()
	victim := m.servers[server]
	accounts := m.database.accountsOf(victim.id)
	k := killed{accounts: len(accounts)}
	if k.accounts == 0 {
		m.t.Fatalf("server %s has no accounts", victim.id)
	}
	before := m.database.load()
	stopSampling := m.database.sampleLoads()
	began := time.Now()
	victim.Kill()
	when := fmt.Sprintf("kill-%d", server)
	for _, s := range m.servers {
		if s != victim {
			go m.saveProfile(s, "profile", when, url.Values{"seconds": {fmt.Sprint(profileTime.Seconds())}})
		}
	}
	go m.agents.saveProfile(when)
	var operating sync.WaitGroup
	if during != nil {
		operating.Go(func() { k.operations = during(accounts) })
	}
	m.await("all accounts to be live at other servers", func() bool {
		n := m.database.liveAccounts(victim.id)
		if k.half == 0 && *accountCount-n <= k.accounts/2 {
			k.half = time.Since(began)
		}
		return n == *accountCount
	})
	k.live = time.Since(began)
	after := m.database.load()
	k.work = load{statements: after.statements - before.statements, written: after.written - before.written}
	operating.Wait()
	if rest := sampledTime - time.Since(began); during != nil && rest > 0 && !isShort() {
		m.pause(rest)
	}
	k.loads = stopSampling()
	return k
}

// profileTime is for how long processor time is profiled after a kill.
const profileTime = 10 * time.Second

// sampledTime is for how long the load of the database is sampled after a kill.
const sampledTime = 20 * time.Second

// operate returns a function that sends an operation to each of some accounts, through servers other than the one that was killed, and
// repeats it until it is done.
func (m *measurement) operate(except int) func([]vedette.AccountName) quantiles {
	return func(accounts []vedette.AccountName) quantiles {
		accounts = slices.Clone(accounts)
		rand.Shuffle(len(accounts), func(i, j int) { accounts[i], accounts[j] = accounts[j], accounts[i] })
		accounts = accounts[:min(len(accounts), *operations)]
		durations := make([]time.Duration, len(accounts))
		began := time.Now()
		var running sync.WaitGroup
		for i, account := range accounts {
			running.Go(func() {
				for n := 0; !m.patch(m.other(except, i+n), account) && m.t.Context().Err() == nil; n++ {
					time.Sleep(50 * time.Millisecond) // as a client does that tries again
				}
				durations[i] = time.Since(began)
			})
		}
		running.Wait()
		return newQuantiles(durations)
	}
}

// other returns one of the servers that were not killed.
func (m *measurement) other(except, n int) *server {
	others := slices.DeleteFunc(slices.Clone(m.servers), func(s *server) bool { return s == m.servers[except] || !s.isUp() })
	if len(others) == 0 {
		m.t.Fatal("no server runs any more: all were evicted, because the machine has too much to do")
	}
	return others[n%len(others)]
}

// patch patches an object of an account by an operation, and reports whether that is done.
func (m *measurement) patch(s *server, account vedette.AccountName) bool {
	var number int
	if _, err := fmt.Sscanf(string(account), accountFormat, &number); err != nil {
		m.t.Error(err)
		return true
	}
	key, err := m.agents.key(number)
	if err != nil {
		m.t.Error(err)
		return true
	}
	var out struct{ State, Message string }
	status := m.request(s, http.MethodPost, "/vedette/v1/operations", map[string]any{"account": account, "verb": "patch", "kind": key.Kind.Name,
		"namespace": key.Namespace, "name": key.Name, "type": "merge", "patch": map[string]any{"data": map[string]string{"patched": "yes"}}, "timeout": "30s"}, &out)
	return status == http.StatusOK && out.State == "done"
}
