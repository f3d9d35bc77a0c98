package writethrough

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

var (
	pods = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	web  = vedette.Key{Kind: pods.Kind, Namespace: "n", Name: "web"}
)

func objectAt(uid, version string) *vedette.Object {
	return &vedette.Object{Key: web, UID: uid, ResourceVersion: version}
}

// nothing is a database without objects in which all feeds are declared.
var nothing = Database{func(vedette.Key) bool { return true }, func(vedette.Key) (uid, version string) { return "", "" }}

// step is a batch, some time after the operation's result.
type step struct {
	after  time.Duration
	upsert string // "uid@version"
	delete string // version; "-" for a deletion without one
	drop   bool   // of what the operation wrote
	listed string // version of a snapshot that ends
	mark   string
}

func (s step) batch() commit.Batch {
	b := commit.Batch{Feeds: []commit.FeedUpdate{{Feed: pods, SnapshotMark: vedette.Mark(s.listed)}}}
	if s.upsert != "" {
		uid, version, _ := strings.Cut(s.upsert, "@")
		b.Upserts = []vedette.Object{*objectAt(uid, version)}
	}
	if s.delete != "" {
		b.Deletes = []commit.Deletion{{Key: web, Version: strings.TrimPrefix(s.delete, "-")}}
	}
	if s.drop {
		b.Drops = []commit.Drop{{Feed: pods, Digests: []uint64{vedette.Digest("", "", "u", "10"), 4711}}}
	}
	if mark := vedette.Mark(s.mark); mark != "" {
		b.Feeds[0].Mark = &mark
	}
	return b
}

func describe(b commit.Batch) string {
	var out []string
	for _, o := range b.Upserts {
		out = append(out, o.UID+"@"+o.ResourceVersion)
	}
	for range b.Deletes {
		out = append(out, "deleted")
	}
	for _, d := range b.Drops {
		out = append(out, fmt.Sprint(len(d.Digests), " dropped"))
	}
	return strings.Join(out, " ")
}

// TestOlderVersionsAreFilteredOut records one fact about an object: u is at version 10, or u is gone. Then
// batches follow, each of which is filtered and settled.
func TestOlderVersionsAreFilteredOut(t *testing.T) {
	const written, gone, absent = "written", "gone", "absent"
	for name, c := range map[string]struct {
		fact  string
		steps []step
		want  []string // what is stored of each batch
		kept  bool     // whether the fact is still kept after the last one
	}{
		"an older version is left out":                               {written, []step{{upsert: "u@9", mark: "9"}}, []string{""}, true},
		"the same version ends the floor":                            {written, []step{{upsert: "u@10"}}, []string{"u@10"}, false},
		"a mark beyond the version ends the floor":                   {written, []step{{upsert: "u@9", mark: "12"}}, []string{""}, false},
		"the deletion of a predecessor is left out":                  {written, []step{{delete: "9"}}, []string{""}, true},
		"a later deletion is stored":                                 {written, []step{{delete: "11"}}, []string{"deleted"}, false},
		"a drop is stored when a newer list ends":                    {written, []step{{drop: true}, {listed: "10"}}, []string{"1 dropped", "deleted"}, false},
		"a drop by an older list is withheld until there is news":    {written, []step{{drop: true}, {listed: "9"}, {mark: "15"}}, []string{"1 dropped", "", ""}, true},
		"a drop and the end of an older list in one batch":           {written, []step{{drop: true, listed: "9", mark: "20"}}, []string{"1 dropped"}, true},
		"an update after an older list ends the floor":               {written, []step{{drop: true, listed: "9"}, {upsert: "u@10"}}, []string{"1 dropped", "u@10"}, false},
		"an item, a drop and the end of an older list":               {written, []step{{upsert: "u@8"}, {drop: true, listed: "9"}}, []string{"", "1 dropped"}, true},
		"a restored cluster without the object wins after a while":   {written, []step{{drop: true, listed: "5"}, {after: 119 * time.Second}, {after: 121 * time.Second}}, []string{"1 dropped", "", "deleted"}, false},
		"a restored cluster with an older object wins after a while": {written, []step{{upsert: "u@4"}, {drop: true, listed: "5"}, {after: time.Second, upsert: "u@6"}, {after: time.Hour}}, []string{"", "1 dropped", "", "u@6"}, false},
		"a restored cluster wins with its newest version":            {written, []step{{upsert: "u@4", listed: "5"}, {after: time.Hour, upsert: "u@6"}}, []string{"", "u@6"}, false},
		"the end of a newer list accepts what the list had":          {written, []step{{upsert: "u@9"}, {listed: "12"}}, []string{"", "u@9"}, false},
		"a deletion without a version waits for the end of the list": {written, []step{{delete: "-"}, {listed: "12"}}, []string{"", "deleted"}, false},
		"a version that cannot be compared is stored":                {written, []step{{upsert: "u@abc"}}, []string{"u@abc"}, false},
		"a list that cannot be compared wins":                        {written, []step{{drop: true}, {listed: "abc"}}, []string{"1 dropped", "deleted"}, false},

		"any version of a uid that is gone is left out":            {gone, []step{{upsert: "u@99", mark: "99"}, {delete: "100", mark: "100"}}, []string{"", "deleted"}, true},
		"another object with the same name is stored":              {gone, []step{{upsert: "u@9"}, {upsert: "v@11"}}, []string{"", "v@11"}, true},
		"a tombstone expires after ten minutes":                    {gone, []step{{after: 9 * time.Minute}, {after: 10 * time.Minute}}, []string{"", ""}, false},
		"a list that is older than the deletion":                   {gone, []step{{upsert: "u@9", listed: "9"}, {after: time.Minute, delete: "12"}, {after: time.Hour}}, []string{"", "deleted", ""}, false},
		"what was before an absence is left out":                   {absent, []step{{upsert: "u@10", mark: "9"}, {delete: "10"}}, []string{"", ""}, true},
		"what comes after an absence is stored":                    {absent, []step{{upsert: "v@11"}}, []string{"v@11"}, false},
		"a mark beyond an absence":                                 {absent, []step{{upsert: "u@9", mark: "11"}}, []string{""}, false},
		"an absence of which no feed reports anything":             {absent, []step{{after: 9 * time.Minute}, {after: 10 * time.Minute}}, []string{"", ""}, false},
		"a list that is older than an absence":                     {absent, []step{{upsert: "u@9", listed: "9"}, {after: time.Minute, delete: "12"}}, []string{"", "deleted"}, false},
		"drops are not kept back by an absence":                    {absent, []step{{drop: true, listed: "12"}}, []string{"2 dropped"}, false},
		"a restored cluster in which the object still is":          {absent, []step{{upsert: "u@4", listed: "5"}, {after: time.Hour}}, []string{"", "u@4"}, false},
		"a restored cluster in which the object was never deleted": {gone, []step{{upsert: "u@4", listed: "5"}, {after: time.Hour}}, []string{"", "u@4"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var o State
			switch c.fact {
			case written:
				o.Write("prod", objectAt("u", "10"), Stored{})
			case gone:
				o.Remove("prod", web, "u")
			case absent:
				o.RemoveAbsent("prod", vedette.Absence{Key: web, Version: "10"}, Stored{})
			}
			began := time.Now()
			var got []string
			for _, s := range c.steps {
				time.Sleep(s.after - time.Since(began))
				f := o.Filter("prod", s.batch(), nothing)
				f.Settle()
				got = append(got, describe(f.Batch))
			}
			kept := o.accounts["prod"] != nil
			if !slices.Equal(got, c.want) || kept != c.kept {
				t.Errorf("%s: got %q, kept %v, want %q, kept %v", name, got, kept, c.want, c.kept)
			}
		})
	}
}

func TestUnsettledBatchChangesNothing(t *testing.T) {
	var s State
	s.Write("prod", objectAt("u", "10"), Stored{})
	for range 2 { // the first commit fails
		if got := describe(s.Filter("prod", step{upsert: "u@9", mark: "20"}.batch(), nothing).Batch); got != "" {
			t.Errorf("got %q, want the stale version left out each time", got)
		}
	}
}

func TestFactsAboutUndeclaredObjectsAreDropped(t *testing.T) {
	var s State
	s.Write("prod", objectAt("u", "10"), Stored{})
	s.Remove("prod", web, "v")
	s.Filter("prod", commit.Batch{}, Database{IsDeclared: func(vedette.Key) bool { return false }}).Settle()
	if len(s.accounts) != 0 {
		t.Errorf("got %v, want nothing kept", s.accounts["prod"].operationWrites)
	}
}

// TestFloorsAreDerived filters a batch of a server that knows nothing about an object which is stored at version 10, beyond the mark of its feed.
func TestFloorsAreDerived(t *testing.T) {
	stored := nothing
	stored.Ahead = func(key vedette.Key) (uid, version string) {
		if key == web {
			return "u", "10"
		}
		return "", ""
	}
	for name, c := range map[string]struct {
		step  step
		want  string
		floor string // that is kept, see floorOfWeb
	}{
		"an older version":                  {step{upsert: "u@9", mark: "9"}, "", "10"},
		"the same version":                  {step{upsert: "u@10"}, "u@10", ""},
		"a newer version":                   {step{upsert: "u@11"}, "u@11", ""},
		"a version that cannot be compared": {step{upsert: "u@abc"}, "u@abc", ""},
		"the deletion of a predecessor":     {step{delete: "9"}, "", "10?"},
		"a later deletion":                  {step{delete: "11"}, "deleted", ""},
		"a mark that reaches the version":   {step{upsert: "u@9", mark: "10"}, "", ""},
		"nothing about the object":          {step{mark: "9"}, "", ""},
	} {
		var s State
		f := s.Filter("prod", c.step.batch(), stored)
		f.Settle()
		if got := describe(f.Batch); got != c.want || s.floorOfWeb() != c.floor {
			t.Errorf("%s: got %q with floor %q, want %q with %q", name, got, s.floorOfWeb(), c.want, c.floor)
		}
	}
}

func TestTombstonesAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s State
		s.Remove("prod", web, "mine")
		if s.HasTombstones("prod", 3) {
			t.Error("got all tombstones known before they are added")
		}
		s.AddTombstones("prod", 3, []Tombstone{{web, "mine", 9 * time.Minute}, {web, "u", 9 * time.Minute}})
		if !s.HasTombstones("prod", 3) || s.HasTombstones("prod", 4) {
			t.Errorf("got those of term 3 known %v, and of term 4 %v, want only the former", s.HasTombstones("prod", 3), s.HasTombstones("prod", 4))
		}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{0, ""}, {time.Minute, "u@9"}} { // a mark ends tombstones that have expired
			time.Sleep(c.after)
			s.Filter("prod", step{mark: "8"}.batch(), nothing).Settle()
			if got := describe(s.Filter("prod", step{upsert: "u@9"}.batch(), nothing).Batch); got != c.want {
				t.Errorf("after %v: got %q, want %q", c.after, got, c.want)
			}
			if got := describe(s.Filter("prod", step{upsert: "mine@9"}.batch(), nothing).Batch); got != "" {
				t.Errorf("after %v: got %q of an object that this server saw deleted, want nothing", c.after, got)
			}
		}
		s.Disconnect("prod")
		if s.HasTombstones("prod", 3) {
			t.Error("got all tombstones known although another server may have had the account")
		}
	})
}

// TestOnlyNewerVersionsAreWritten decides about the result of an operation that wrote version 10.
func TestOnlyNewerVersionsAreWritten(t *testing.T) {
	beginSnapshot := func(mark vedette.Mark) func(*State) {
		return func(s *State) { s.BeginSnapshot("prod", pods, mark) }
	}
	indexThrough := func(name string) func(*State) {
		return func(s *State) {
			s.BeginSnapshot("prod", pods, "")
			s.RecordIndex("prod", pods, IndexChunk{First: true, Through: vedette.Key{Kind: pods.Kind, Namespace: "n", Name: name}})
		}
	}
	for name, c := range map[string]struct {
		before func(*State) // nil if nothing is known
		stored Stored
		want   bool   // stored
		floor  string // its version, or "" for none; with "?" if the feed claims that there is no object
	}{
		"over an older version":                      {nil, Stored{Exists: true, Version: "9", Mark: "9"}, true, "10"},
		"not over the same version":                  {nil, Stored{Exists: true, Version: "10", Mark: "9"}, false, ""},
		"not over a version that cannot be compared": {nil, Stored{Exists: true, Version: "abc", Mark: "9"}, false, ""},
		"over an object that must be reported again": {nil, Stored{Exists: true}, true, "10"},
		"without a floor if the feed is past it":     {nil, Stored{Exists: true, Version: "9", Mark: "12"}, true, ""},
		"if no object is stored":                     {nil, Stored{Mark: "9"}, true, "10"},
		"not if the object may be deleted again":     {nil, Stored{Mark: "10"}, false, ""},
		"not if the mark cannot be compared":         {nil, Stored{Mark: "abc"}, false, ""},
		"before the feed's first snapshot":           {nil, Stored{}, true, "10"},
		"not if it was deleted before the snapshot":  {beginSnapshot("12"), Stored{PreviousMark: "12"}, false, ""},
		"before the index is read":                   {beginSnapshot("5"), Stored{PreviousMark: "5"}, true, "10"},
		"before the index has reached it":            {indexThrough("m"), Stored{}, true, "10"},
		"after the index has passed it":              {indexThrough("web"), Stored{}, true, "10?"},
		"after the whole index was read":             {func(s *State) { s.RecordIndex("prod", pods, IndexChunk{First: true, Last: true}) }, Stored{}, true, "10?"},
		"not if the uid is gone":                     {func(s *State) { s.Remove("prod", web, "u") }, Stored{Mark: "9"}, false, ""},
		"not if the object is gone since":            {func(s *State) { s.RemoveAbsent("prod", vedette.Absence{Key: web, Version: "10"}, Stored{}) }, Stored{Mark: "9"}, false, ""},
		"over what is gone":                          {func(s *State) { s.RemoveAbsent("prod", vedette.Absence{Key: web, Version: "9"}, Stored{}) }, Stored{Mark: "9"}, true, "10"},
		"a higher floor stays":                       {func(s *State) { s.Write("prod", objectAt("u", "11"), Stored{}) }, Stored{Exists: true, Version: "9", Mark: "9"}, true, "11"},
		"a lower floor is raised":                    {func(s *State) { s.Write("prod", objectAt("u", "9"), Stored{}) }, Stored{Exists: true, Version: "9", Mark: "9"}, true, "10"},
		"what the snapshot claimed stays with a floor": {func(s *State) {
			indexThrough("m")(s)
			s.Write("prod", objectAt("u", "9"), Stored{})
			s.Filter("prod", step{delete: "-"}.batch(), nothing).Settle()
		}, Stored{Exists: true, Version: "9"}, true, "10?"},
	} {
		var s State
		if c.before != nil {
			c.before(&s)
		}
		previous := s.floorOfWeb()
		write := s.Write("prod", objectAt("u", "10"), c.stored)
		got := s.floorOfWeb()
		if !write && got == previous {
			got = ""
		}
		if write != c.want || got != c.floor {
			t.Errorf("%s: got %v with floor %q, want %v with %q", name, write, got, c.want, c.floor)
		}
	}
}

// TestOnlyOlderVersionsAreAbsent decides what to remove if an operation found nothing at version 10.
func TestOnlyOlderVersionsAreAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		before  func(*State) // nil if nothing is known
		stored  Stored
		want    bool   // removed
		floor   string // its version, or "" for none
	}{
		"an older version":                    {"10", nil, Stored{Exists: true, Version: "9", Mark: "9"}, true, "11"},
		"the same version, which is gone too": {"10", nil, Stored{Exists: true, Version: "10", Mark: "9"}, true, "11"},
		"not a newer version":                 {"10", nil, Stored{Exists: true, Version: "11", Mark: "9"}, false, ""},
		"not one that cannot be compared":     {"10", nil, Stored{Exists: true, Version: "abc", Mark: "9"}, false, ""},
		"not one that must be reported again": {"10", nil, Stored{Exists: true, Mark: "9"}, false, ""},
		"a version that the feed has passed":  {"10", nil, Stored{Exists: true, Version: "9", Mark: "10"}, true, ""}, // a newer change has replaced the deletion
		"nothing is stored":                   {"10", nil, Stored{Mark: "9"}, false, "11"},
		"nothing is stored in a snapshot":     {"10", nil, Stored{}, false, "11"},
		"nothing, and the feed has passed it": {"10", nil, Stored{Mark: "10"}, false, ""},
		"a mark that cannot be compared":      {"10", nil, Stored{Mark: "abc"}, false, ""},
		"an absence that cannot be compared":  {"abc", nil, Stored{Exists: true, Version: "9", Mark: "9"}, false, ""},
		"an absence without a version":        {"", nil, Stored{Exists: true, Version: "9", Mark: "9"}, false, ""},
		"the highest version":                 {"18446744073709551615", nil, Stored{Exists: true, Version: "9", Mark: "9"}, false, ""},
		"a newer floor stays":                 {"10", func(s *State) { s.Write("prod", objectAt("v", "12"), Stored{}) }, Stored{Exists: true, Version: "12", Mark: "9"}, false, "12"},
		"an older floor is raised":            {"10", func(s *State) { s.Write("prod", objectAt("u", "9"), Stored{}) }, Stored{Exists: true, Version: "9", Mark: "8"}, true, "11"},
	} {
		var s State
		if c.before != nil {
			c.before(&s)
		}
		removed := s.RemoveAbsent("prod", vedette.Absence{Key: web, Version: c.version}, c.stored)
		if floor := s.floorOfWeb(); removed != c.want || floor != c.floor {
			t.Errorf("%s: got %v with floor %q, want %v with %q", name, removed, floor, c.want, c.floor)
		}
	}
}

func (s *State) floorOfWeb() string {
	if s.accounts["prod"] == nil {
		return ""
	}
	f, ok := s.accounts["prod"].floors[web]
	switch {
	case !ok:
		return ""
	case f.reported != nil && f.reported.object == nil:
		return fmt.Sprint(f.version, "?")
	}
	return fmt.Sprint(f.version)
}

func TestOnlyOlderListsAreRewound(t *testing.T) {
	for name, c := range map[string]struct {
		before, listed vedette.Mark
		want           bool
	}{
		"an older state":                            {"9", "5", true},
		"the same state":                            {"9", "9", false},
		"a newer state":                             {"9", "12", false},
		"no mark before":                            {"", "5", false},
		"a mark that cannot be compared":            {"abc", "5", false},
		"a list that cannot be compared":            {"9", "abc", false},
		"a list without a version":                  {"9", "", false},
		"a list with version 0, which says nothing": {"9", "0", false},
	} {
		var s State
		s.BeginSnapshot("prod", pods, c.before)
		if _, _, got := s.Rewound("prod", pods, c.listed); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	var s State
	if _, _, got := s.Rewound("prod", pods, "5"); got {
		t.Error("without a snapshot: got true, want false")
	}
}

func TestUndeclaredFeedsAreForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		feeds  []vedette.Feed
		groups []string
		want   bool // kept
	}{
		"its kind is declared":                  {[]vedette.Feed{pods}, nil, true},
		"its namespace is declared":             {[]vedette.Feed{{Kind: pods.Kind, Namespace: "n"}}, nil, true},
		"another namespace is declared":         {[]vedette.Feed{{Kind: pods.Kind, Namespace: "m"}}, nil, false},
		"another kind is declared":              {[]vedette.Feed{{Kind: vedette.Kind{Name: "Service"}}}, nil, false},
		"its API group could not be discovered": {nil, []string{""}, true},
	} {
		var s State
		s.Write("prod", objectAt("u", "10"), Stored{})
		s.Remove("prod", web, "v")
		s.Prune("prod", c.feeds, c.groups)
		if got := s.accounts["prod"] != nil; got != c.want {
			t.Errorf("%s: got kept %v, want %v", name, got, c.want)
		}
	}
}

func TestFactsOfDisconnectedAccountExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s State
		s.Write("prod", objectAt("u", "10"), Stored{})
		s.Disconnect("prod")
		time.Sleep(TombstoneTTL - time.Second)
		s.Remove("other", web, "u")
		if s.floorOfWeb() == "" {
			t.Error("got no floor, want it kept while the agent may reconnect")
		}
		time.Sleep(time.Second)
		s.Remove("other", web, "v")
		if got := s.floorOfWeb(); got != "" || len(s.accounts["other"].tombstones) != 2 {
			t.Errorf("got floor %q and tombstones %v, want no floor and 2", got, s.accounts["other"].tombstones)
		}
	})
}

func TestFloorComparesVersions(t *testing.T) {
	f := floor{uid: "u", version: 10}
	for version, want := range map[string]bool{"9": false, "09": false, "10": true, "11": true, "99999999999999999999": true, "abc": true, "-1": true, "": false} {
		if got := f.allows(version); got != want {
			t.Errorf("version %q: got %v, want %v", version, got, want)
		}
	}
	for mark, want := range map[string]bool{"": false, "9": false, "10": true, "11": true, "abc": false} {
		if got := f.isPassedBy(mark); got != want {
			t.Errorf("mark %q: got %v, want %v", mark, got, want)
		}
	}
	f.since = time.Now()
	if f.isPassedBy("11") {
		t.Error("got a floor in divergence that is passed, want one that is not")
	}
}
