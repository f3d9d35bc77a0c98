package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/chaos/history"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/faults"
	"github.com/vedette-io/vedette/test/oracle"
)

// TestChaos runs rounds on one database after the other.
func TestChaos(t *testing.T) {
	var planes []*controlplane.Plane
	for range *planeCount {
		planes = append(planes, controlplane.New(t, controlplane.Options{APIServerFlags: []string{"--storage-media-type=application/json"}})) // for the recorder
	}
	names := strings.Split(*onDatabase, ",")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name, planes)
			began := time.Now()
			for seed := range seedsOf(t, name) {
				w.round(name, seed)
				if t.Failed() || time.Since(began) > *runTime/time.Duration(len(names)) && *runTime > 0 {
					break
				}
			}
			for _, s := range w.servers {
				t.Logf("%s ended by itself %d times", s.Name, s.ended())
			}
		})
	}
}

// How many faults a round has, and in what time they begin.
func faultsOfRound() (n int, during time.Duration) {
	if *isLong {
		return 12, 40 * time.Second
	}
	return 6, 15 * time.Second
}

// round lets things fail while clients work, ends all faults, and checks everything.
func (w *world) round(database string, seed int64) {
	t := w.t
	t.Logf("seed %d on %s, %d control planes", seed, database, len(w.planes))
	ctx, cancel := context.WithCancel(t.Context())
	namespace := fmt.Sprintf("chaos-%s-%d", database, seed)
	l := w.newLoad(namespace)
	recorded, stopRecorder := w.startRecorder(ctx, l)
	readers, stopReaders := w.startReaders(ctx, namespace)
	defer stopRecorder()
	defer stopReaders()
	defer cancel()
	working, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	clients.Go(func() { l.run(working, rand.New(rand.NewPCG(uint64(seed), 1))) })
	n, during := faultsOfRound()
	plan := faults.Schedule(rand.New(rand.NewPCG(uint64(seed), 2)), append(w.parts(), w.etcdParts(recorded)...), n, during)
	for _, i := range plan {
		t.Log(i)
	}
	faults.RunAll(ctx, plan, func(err error) { t.Error(err) })
	healed := time.Now()
	sleep(ctx, time.Second) // some operations have no fault at all
	stop()
	clients.Wait()
	r := &result{world: w, load: l, recorder: recorded, readers: readers}
	took := r.awaitConvergence(healed)
	r.awaitEnds()
	r.check(seed)
	t.Logf("seed %d on %s: %v; converged %.1fs after the last fault", seed, database, l.summary(), took.Seconds())
	if t.Failed() {
		t.Logf("run again: make chaos SEED=%d DB=%s TIME=1s", seed, database)
	}
}

func (l *load) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(l.counts)) {
		parts = append(parts, fmt.Sprint(name, " ", l.counts[name]))
	}
	return strings.Join(parts, ", ")
}

// startRecorder creates the namespace of a round in all clusters, and records what happens there.
func (w *world) startRecorder(ctx context.Context, l *load) (r *recorder, stop func()) {
	r = newRecorder(l.began, l.namespace)
	ctx, cancel := context.WithCancel(ctx)
	for i, plane := range w.planes {
		if err := plane.Create(ctx, "/api/v1/namespaces", object{"metadata": object{"name": l.namespace}}); err != nil {
			w.t.Fatal(err)
		}
		revision, err := plane.Mark(ctx, registryPrefix+"~chaos")
		if err != nil {
			w.t.Fatal(err)
		}
		p := &recordedPlane{plane: plane, account: accountName(i), next: revision + 1}
		r.planes = append(r.planes, p)
		r.start(ctx, p)
	}
	return r, func() {
		cancel()
		for _, p := range r.planes {
			p.stop()
		}
	}
}

// startReaders follows the changes of a namespace at each server.
func (w *world) startReaders(ctx context.Context, namespace string) (readers []*reader, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, s := range w.servers {
		r := &reader{address: s.REST, namespace: namespace}
		readers = append(readers, r)
		running.Go(func() { r.run(ctx) })
	}
	return readers, func() { cancel(); running.Wait() }
}

// result is what is known after a round.
type result struct {
	*world
	load     *load
	recorder *recorder
	readers  []*reader
}

// How long everything may take to be as it should after the last fault. Clusters that were restored may be noticed by a verification only, and what
// operations had written before counts for two minutes (docs/guarantees.md).
const (
	convergenceTime        = time.Minute
	restoreConvergenceTime = 5 * time.Minute
)

// awaitConvergence waits until everything is as it should, and returns how long that took since all faults had ended.
func (r *result) awaitConvergence(healed time.Time) time.Duration {
	var found, last []string
	limit := convergenceTime
	if len(r.recorder.firstRestores()) > 0 {
		limit = restoreConvergenceTime
	}
	if !r.eventually(limit, func(context.Context) bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
		defer cancel()
		last, found = found, r.differences(ctx)
		return len(found) == 0
	}) {
		r.t.Errorf("%v after the last fault, %d things are not as they should be:\n%s", time.Since(healed).Round(time.Second), len(found),
			strings.Join(found[:min(len(found), 30)], "\n"))
	}
	took := time.Since(healed)
	if len(last) > 0 && took > slowConvergence {
		r.t.Logf("the last of %d differences: %s", len(last), last[0])
	}
	return took
}

// endTime is how long tasks and operations may take to end after everything else is as it should be. Tasks of a server that has disappeared end
// after a minute.
const endTime = 90 * time.Second

// awaitEnds waits until all tasks and operations have ended.
func (r *result) awaitEnds() {
	var found []string
	if !r.eventually(endTime, func(context.Context) bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second) // its own, so that the last look says what it sees
		defer cancel()
		found = r.running(ctx)
		return len(found) == 0
	}) {
		r.t.Errorf("%v after everything else is as it should be:\n%s", endTime, strings.Join(found[:min(len(found), 30)], "\n"))
	}
}

// slowConvergence is after what time a log says what was last.
const slowConvergence = 5 * time.Second

// differences describes what is not as it should be when nothing fails.
func (r *result) differences(ctx context.Context) []string {
	want, feeds, err := r.listed(ctx)
	if err != nil {
		return []string{"the clusters cannot be listed: " + err.Error()}
	}
	got, rows, err := oracle.Stored(ctx, r.db.sql)
	if err != nil {
		return []string{"the database cannot be read: " + err.Error()}
	}
	found := slices.Concat(oracle.CompareObjects(want, got), oracle.CompareFeeds(feeds, rows, got), r.roleDifferences(ctx), r.programDifferences(ctx))
	versions, last := r.recorder.all(), r.recorder.last()
	for i, reader := range r.readers {
		for _, difference := range history.CompareFinal(history.CheckEvents(reader.all(), versions).Last, last) {
			found = append(found, fmt.Sprintf("reader of s%d: %s", i, difference))
		}
	}
	for _, s := range r.servers {
		found = append(found, r.readDifferences(ctx, s, last)...)
	}
	return found
}

// listed returns a fresh list of all kinds of all accounts, and the feeds that should exist.
func (w *world) listed(ctx context.Context) (oracle.State, map[oracle.FeedKey]bool, error) {
	objects, feeds := oracle.State{}, map[oracle.FeedKey]bool{}
	for i, plane := range w.planes {
		for _, k := range kinds {
			var list struct{ Items []watchedListItem }
			if err := plane.Get(ctx, strings.Replace(k.path, "/namespaces/%s", "", 1), &list); err != nil {
				return nil, nil, err
			}
			feeds[oracle.FeedKey{Account: accountName(i), Kind: k.kind}] = true
			for _, item := range list.Items {
				m := item.Metadata
				objects[oracle.Row{Account: accountName(i), Kind: k.kind, Namespace: m.Namespace, Name: m.Name}] = oracle.Version(m.UID, m.ResourceVersion)
			}
		}
	}
	return objects, feeds, nil
}

type watchedListItem struct {
	Metadata struct{ Namespace, Name, UID, ResourceVersion string }
}

// roleDifferences checks that each account has one agent, which is the one in the database.
func (w *world) roleDifferences(ctx context.Context) (found []string) {
	holders := map[string]string{}
	if err := oracle.ForEachRow(ctx, w.db.sql, `SELECT name, holder FROM accounts WHERE name IS NOT NULL`, func(rows *sql.Rows) error {
		var name, holder string
		err := rows.Scan(&name, &holder)
		holders[name] = holder
		return err
	}); err != nil {
		return []string{err.Error()}
	}
	for i := range w.planes {
		account, isHeld := accountName(i), false
		for _, a := range w.agentsOf(i) {
			want := "standby"
			if holders[account] == a.id {
				want, isHeld = "reporting", true
			}
			if got := a.role(ctx, account); got != want {
				found = append(found, fmt.Sprintf("agent %s has role %q in %s, want %q because the holder is %q", a.id, got, account, want, holders[account]))
			}
		}
		if !isHeld {
			found = append(found, fmt.Sprintf("%s is held by %q, which is not one of its agents", account, holders[account]))
		}
	}
	return found
}

// role returns the role that an agent reports, and its error.
func (a *agent) role(ctx context.Context, account string) string {
	var health struct {
		Error    string
		Accounts []struct{ Name, State, Error string }
	}
	if err := getJSON(ctx, a.health, &health); err != nil {
		return err.Error()
	}
	for _, entry := range health.Accounts {
		if entry.Name == account && health.Error == "" {
			return strings.TrimSpace(entry.State + " " + entry.Error)
		}
	}
	return health.Error
}

func getJSON(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// running returns the tasks and operations that have not ended. Nobody waits for them any more.
func (w *world) running(ctx context.Context) (found []string) {
	for what, query := range map[string]string{
		"task":      `SELECT id, server FROM tasks WHERE state = 'running'`,
		"operation": `SELECT id, server FROM operations WHERE state = 'pending'`,
	} {
		if err := oracle.ForEachRow(ctx, w.db.sql, query, func(rows *sql.Rows) error {
			var id, server string
			err := rows.Scan(&id, &server)
			found = append(found, fmt.Sprintf("%s %s of %s has not ended", what, id, server))
			return err
		}); err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// programDifferences returns the programs that do not run or do not answer.
func (w *world) programDifferences(ctx context.Context) (found []string) {
	for _, a := range w.agents {
		if err := a.Exited(); err != nil {
			found = append(found, err.Error())
		}
	}
	for _, s := range w.servers {
		if !s.IsReady(ctx) {
			found = append(found, s.Name+" does not answer")
		}
	}
	return found
}

// readDifferences reads all objects of the clients at a server.
func (r *result) readDifferences(ctx context.Context, s *server, last map[string]history.Version) (found []string) {
	for _, t := range r.load.targets {
		answer, err := s.Do(ctx, http.MethodGet, fmt.Sprintf("/vedette/v1/objects/%s/%ss/%s/%s", accountName(t.account), t.kind, r.load.namespace, t.name), nil)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		var view struct{ Manifest watchedObject }
		_ = json.Unmarshal(answer.Body, &view) // an error has no manifest
		got := view.Manifest.value(t.kind)
		if answer.Status == http.StatusNotFound {
			got = history.Absent
		}
		want := last[t.object()]
		if want.Value != got && r.recorder.isAmbiguous(t.object(), got) {
			r.t.Logf("%s has had the version %d of %s twice, and shows what it was before the cluster was restored", s.Name, want.Version, t.object())
			continue
		}
		if want := want.Value; got != want || answer.Header.Get("Vedette-Stale") == "true" {
			found = append(found, fmt.Sprintf("%s answers %d with %q for %s, stale %q; want %q", s.Name, answer.Status, got, t.object(), answer.Header.Get("Vedette-Stale"), want))
		}
	}
	return found
}

// checkTime is how long the checker may take for an object.
const checkTime = 30 * time.Second

// check checks everything that was recorded.
func (r *result) check(seed int64) {
	t := r.t
	if err := r.recorder.failure(); err != nil {
		t.Error(err)
	}
	r.load.mu.Lock()
	operations, problems := slices.Clone(r.load.operations), slices.Clone(r.load.problems)
	r.load.mu.Unlock()
	versions := r.recorder.all()
	effects := history.CheckEffects(r.resolve(operations), versions)
	violations := slices.Concat(problems, effects.Violations, r.checkCreated())
	maps.Copy(r.restored, r.recorder.firstRestores())
	repeated := 0
	for i, reader := range r.readers {
		checked := history.CheckEvents(reader.all(), versions)
		repeated += checked.Repeated
		for _, v := range checked.Violations {
			violations = append(violations, fmt.Sprintf("reader of s%d: %s", i, v))
		}
		violations = append(violations, r.unknownVersions(i, reader.all())...)
	}
	began := time.Now()
	r.markLate(operations)
	linear := history.CheckLinearizable(history.BeforeRestores(slices.Concat(operations, effects.Repeated), r.recorder.firstRestores()), checkTime)
	t.Logf("%d operations decide about linearizability, checked in %v; %d took effect again before they were answered; %d events repeat the last one",
		linear.Checked, time.Since(began).Round(time.Millisecond), len(effects.Repeated), repeated)
	if len(linear.Early) > 0 {
		t.Logf("linearizable only without reads of effects that were not answered yet: %v", linear.Early)
	}
	for _, object := range linear.Inconclusive {
		t.Logf("%s: the time of the checker did not suffice", object)
	}
	violations = append(violations, linear.Violations...)
	crashes, err := r.crashes(r.restored)
	if err != nil {
		t.Error(err)
	}
	for _, v := range slices.Concat(violations, crashes) {
		t.Error(v)
	}
	if len(linear.Violations) > 0 {
		r.keepPicture(linear, seed)
	}
	if t.Failed() || *keepLogs {
		r.keepHistory(operations, seed)
	}
}

// unknownVersions returns the events of a reader that have no version although their cluster was never restored.
func (r *result) unknownVersions(reader int, events []history.Event) (found []string) {
	for i, e := range events {
		account, _, _ := strings.Cut(e.Object, "/")
		if _, wasRestored := r.restored[account]; e.Type == history.Present && e.Version == history.UnknownVersion && !wasRestored {
			found = append(found, fmt.Sprintf("reader of s%d: event %d has no version: %v", reader, i, e))
		}
	}
	return found
}

// resolve returns operations with the outcome that the servers' history has, where no client was told one. When such an operation ended is not
// known.
func (r *result) resolve(operations []history.Operation) []history.Operation {
	ids := map[[2]string]string{}
	for _, accepted := range r.load.ids {
		ids[[2]string{accepted.op.Object, accepted.op.Value}] = accepted.id
	}
	resolved := slices.Clone(operations)
	for i, o := range resolved {
		id := ids[[2]string{o.Object, o.Value}]
		if o.Outcome != history.Unknown || o.Verb != history.Write || id == "" {
			continue
		}
		if o.Outcome = r.historyOutcome(id); o.Outcome != history.Unknown {
			o.Return = o.Latest
			o.Detail += "; the history says that it is " + string(o.Outcome)
		}
		resolved[i] = o
	}
	return resolved
}

var lateEffect = regexp.MustCompile(`^time=(\S+) .*msg="write-through failed.* operation=(\S+)`)

// Servers write this many lines of a message in this time, and leave out the others (internal/logthrottle).
const (
	linesPerWindow = 20
	logWindow      = 10 * time.Second
)

// markLate marks the operations of which a server's log says that it could not store the result in time, and that the feed will report it
// (docs/guarantees.md, "Outcomes without stored objects"). While a log leaves out such lines, each operation that ends may be one.
func (r *result) markLate(operations []history.Operation) {
	late, unlogged := map[string]bool{}, []string{} // the last operation of each window before lines are left out
	for _, s := range r.servers {
		text, err := os.ReadFile(s.Log)
		if err != nil {
			r.t.Error(err)
		}
		var began time.Time // of the window, by the clock of the server
		lines := 0
		for line := range strings.Lines(string(text)) {
			match := lateEffect.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			late[match[2]] = true
			at, err := time.Parse(time.RFC3339, match[1])
			if err != nil {
				r.t.Error(err)
			}
			if since := at.Sub(began); since < 0 || since >= logWindow { // clocks may jump
				began, lines = at, 0
			}
			if lines++; lines >= linesPerWindow {
				unlogged = append(unlogged, match[2])
			}
		}
	}
	origins := map[string]string{}
	if err := oracle.ForEachRow(r.t.Context(), r.db.sql, `SELECT id, origin FROM operations`, func(rows *sql.Rows) error {
		var id, origin string
		err := rows.Scan(&id, &origin)
		if origin != "api" && origin != "" { // otherwise it belongs to no task
			origins[id] = origin
		}
		return err
	}); err != nil {
		r.t.Error(err)
	}
	for id, origin := range origins {
		if late[id] {
			late[origin] = true // the task
		}
	}
	ends := map[string]time.Duration{}
	for _, accepted := range r.load.ids {
		ends[accepted.id] = accepted.op.Return
	}
	for _, o := range operations {
		ends[o.ID] = o.Return
	}
	var windows []time.Duration
	for _, id := range unlogged {
		end, isKnown := ends[id]
		if !isKnown {
			end, isKnown = ends[origins[id]]
		}
		if isKnown {
			windows = append(windows, end)
		}
	}
	marked := 0
	for i, o := range operations {
		isUnlogged := slices.ContainsFunc(windows, func(from time.Duration) bool {
			return o.Return >= from-time.Second && o.Return <= from+logWindow+time.Second
		})
		if o.ID != "" && (late[o.ID] || isUnlogged) {
			operations[i].IsLate = true
			marked++
		}
	}
	if marked > 0 {
		r.t.Logf("%d operations were answered, or may have been, before their effect could be stored", marked)
	}
}

// historyOutcome returns the outcome of an operation by the history; unknown if it has none.
func (r *result) historyOutcome(id string) history.Outcome {
	var out outcome
	r.servers[0].Request(r.t.Context(), http.MethodGet, "/vedette/v1/operations/"+id, nil, &out)
	switch out.State {
	case "done":
		return history.Done
	case "failed":
		return history.Failed
	}
	return history.Unknown
}

// checkCreated checks that no operation has created two objects, and that each that is done has created one.
func (r *result) checkCreated() (found []string) {
	for _, accepted := range r.load.ids {
		if !accepted.creates {
			continue
		}
		o := accepted.op
		if o.Outcome == history.Unknown {
			o.Outcome = r.historyOutcome(accepted.id)
		}
		n := len(r.recorder.created(accepted.id))
		if n > 1 || n == 1 && o.Outcome == history.Failed || n == 0 && o.Outcome == history.Done {
			found = append(found, fmt.Sprintf("created %d objects: %v", n, o))
		}
	}
	return found
}

// keepPicture writes a page that shows the first history that is not linearizable.
func (r *result) keepPicture(linear history.Linearizability, seed int64) {
	path := filepath.Join(r.dir, fmt.Sprintf("linearizability-%d.html", seed))
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(linear.Picture(file), file.Close())
	}
	if err != nil {
		r.t.Error(err)
	}
	r.t.Logf("%s shows the history", path)
}

// keepHistory writes everything that clients and readers were told, and what happened in the clusters.
func (r *result) keepHistory(operations []history.Operation, seed int64) {
	var text strings.Builder
	for _, o := range operations {
		fmt.Fprintln(&text, o)
	}
	for object, versions := range r.recorder.all() {
		fmt.Fprintf(&text, "%s in its cluster: %v\n", object, versions)
	}
	for i, reader := range r.readers {
		for n, e := range reader.all() {
			fmt.Fprintf(&text, "s%d event %d: %v\n", i, n, e)
		}
	}
	path := filepath.Join(r.dir, fmt.Sprintf("history-%d.txt", seed))
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		r.t.Error(err)
	}
}
