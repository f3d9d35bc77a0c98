package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

func TestVersionFloorAllows(t *testing.T) {
	f := versionFloor{uid: "u", version: 10}
	for version, want := range map[string]bool{"9": false, "09": false, "10": true, "11": true, "99999999999999999999": true, "abc": true, "-1": true, "": false} {
		if f.allows(version) != want {
			t.Errorf("version %q: admitted is %v", version, !want)
		}
	}
	for mark, want := range map[string]bool{"": false, "9": false, "10": true, "11": true, "abc": false} {
		if f.passedBy(mark) != want {
			t.Errorf("mark %q: passed is %v", mark, !want)
		}
	}
	f.since = time.Now()
	if f.passedBy("11") {
		t.Error("a floor in doubt is passed")
	}
}

var (
	floorFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	floorKey  = vedette.Key{Kind: floorFeed.Kind, Namespace: "n", Name: "web"}
	floorTime = time.Unix(1_700_000_000, 0)
)

func objectAt(uid, version string) vedette.Object {
	return vedette.Object{Key: floorKey, UID: uid, ResourceVersion: version}
}

// filterStep is a batch that comes some time after what was known was found out.
type filterStep struct {
	after  time.Duration
	upsert string // "uid@version"
	delete string // version
	drop   bool   // of what the operation wrote
	listed string // version of a snapshot that ends
	mark   string
}

func (st filterStep) batch() Batch {
	b := Batch{Feeds: []FeedUpdate{{Feed: floorFeed, SnapshotMark: vedette.Mark(st.listed)}}}
	if st.upsert != "" {
		uid, version, _ := strings.Cut(st.upsert, "@")
		b.Upserts = []vedette.Object{objectAt(uid, version)}
	}
	if st.delete != "" {
		b.Deletes = []Deletion{{floorKey, strings.TrimPrefix(st.delete, "-")}}
	}
	if st.drop {
		b.Drops = []Drop{{floorFeed, []uint64{vedette.Digest("u", "10"), 4711}}}
	}
	if mark := vedette.Mark(st.mark); mark != "" {
		b.Feeds[0].Mark = &mark
	}
	return b
}

// describeBatch writes what is left of a batch.
func describeBatch(b Batch) string {
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

func TestStaleFilter(t *testing.T) {
	const written, gone = "written", "gone"
	for name, c := range map[string]struct {
		known string // what an operation found out of the object: u@10, or that u has gone
		steps []filterStep
		want  []string // of each step
		left  bool     // whether it is still known
	}{
		"older news":                            {written, []filterStep{{upsert: "u@9", mark: "9"}}, []string{""}, true},
		"the same news":                         {written, []filterStep{{upsert: "u@10"}}, []string{"u@10"}, false},
		"a mark beyond":                         {written, []filterStep{{upsert: "u@9", mark: "12"}}, []string{""}, false},
		"the deletion of a forerunner":          {written, []filterStep{{delete: "9"}}, []string{""}, true},
		"its deletion":                          {written, []filterStep{{delete: "11"}}, []string{"deleted"}, false},
		"a drop and a newer list":               {written, []filterStep{{drop: true}, {listed: "10"}}, []string{"1 dropped", "deleted"}, false},
		"a drop and an older list":              {written, []filterStep{{drop: true}, {listed: "9"}, {mark: "15"}}, []string{"1 dropped", "", ""}, true},
		"a drop and an older list in one":       {written, []filterStep{{drop: true, listed: "9", mark: "20"}}, []string{"1 dropped"}, true},
		"news after an older list":              {written, []filterStep{{drop: true, listed: "9"}, {upsert: "u@10"}}, []string{"1 dropped", "u@10"}, false},
		"an item, a drop and an older list":     {written, []filterStep{{upsert: "u@8"}, {drop: true, listed: "9"}}, []string{"", "1 dropped"}, true},
		"a history that went back":              {written, []filterStep{{drop: true, listed: "5"}, {after: 119 * time.Second}, {after: 121 * time.Second}}, []string{"1 dropped", "", "deleted"}, false},
		"a history that went back to another":   {written, []filterStep{{upsert: "u@4"}, {drop: true, listed: "5"}, {after: time.Second, upsert: "u@6"}, {after: time.Hour}}, []string{"", "1 dropped", "", "u@6"}, false},
		"a history that went back and went on":  {written, []filterStep{{upsert: "u@4", listed: "5"}, {after: time.Hour, upsert: "u@6"}}, []string{"", "u@6"}, false},
		"a list that is newer and knows better": {written, []filterStep{{upsert: "u@9"}, {listed: "12"}}, []string{"", "u@9"}, false},
		"a deletion without a version":          {written, []filterStep{{delete: "-"}, {listed: "12"}}, []string{"", "deleted"}, false},
		"versions that can't be compared":       {written, []filterStep{{upsert: "u@abc"}}, []string{"u@abc"}, false},
		"a list that can't be compared":         {written, []filterStep{{drop: true}, {listed: "abc"}}, []string{"1 dropped", "deleted"}, false},

		"late news of what has gone":           {gone, []filterStep{{upsert: "u@99", mark: "99"}, {delete: "100", mark: "100"}}, []string{"", "deleted"}, true},
		"the next of that name":                {gone, []filterStep{{upsert: "u@9"}, {upsert: "v@11"}}, []string{"", "v@11"}, true},
		"it is forgotten":                      {gone, []filterStep{{after: 9 * time.Minute}, {after: 10 * time.Minute}}, []string{"", ""}, false},
		"a list from before it went":           {gone, []filterStep{{upsert: "u@9", listed: "9"}, {after: time.Minute, delete: "12"}, {after: time.Hour}}, []string{"", "deleted", ""}, false},
		"a history in which it has never gone": {gone, []filterStep{{upsert: "u@4", listed: "5"}, {after: time.Hour}}, []string{"", "u@4"}, false},
	} {
		known := observations{map[vedette.Key]versionFloor{}, map[string]tombstone{}}
		if c.known == written {
			known.floors[floorKey] = versionFloor{uid: "u", version: 10}
		} else {
			known.tombstones["u"] = tombstone{key: floorKey, createdAt: floorTime}
		}
		var got []string
		for _, st := range c.steps {
			filter := &staleFilter{batch: st.batch(), observations: known, now: floorTime.Add(st.after)}
			filter.run()
			known = filter.observations
			got = append(got, describeBatch(filter.batch))
		}
		if !slices.Equal(got, c.want) || known.isEmpty() == c.left {
			t.Errorf("%s: got %q, want %q; still known: %v", name, got, c.want, !known.isEmpty())
		}
	}
}

func TestObjectStateDecidesWrites(t *testing.T) {
	row := func(version string) *storedRow { return &storedRow{version: version} }
	partlyIndexed := &feedSnapshot{indexStarted: true, lastIndexed: indexRow{namespace: "n", name: "m"}}
	for name, c := range map[string]struct {
		state  objectState
		writes bool
		floor  string // "" for none, else its version, and "?" where the snapshot is yet to say whether it is there
	}{
		"over what is older":               {objectState{row: row("9"), mark: "9"}, true, "10"},
		"not over what is as new":          {objectState{row: row("10"), mark: "9"}, false, ""},
		"not over what can't be compared":  {objectState{row: row("abc"), mark: "9"}, false, ""},
		"over what must be told anew":      {objectState{row: row("")}, true, "10"},
		"over what the feed has passed":    {objectState{row: row("9"), mark: "12"}, true, ""},
		"where nothing is":                 {objectState{mark: "9"}, true, "10"},
		"not where it has gone since":      {objectState{mark: "10"}, false, ""},
		"not where the mark says nothing":  {objectState{mark: "abc"}, false, ""},
		"where no feed ever was":           {objectState{}, true, "10"},
		"not where it went before a list":  {objectState{snapshot: &feedSnapshot{previousMark: "12"}}, false, ""},
		"before the index is read":         {objectState{snapshot: &feedSnapshot{previousMark: "5"}}, true, "10"},
		"before the index comes to it":     {objectState{snapshot: partlyIndexed}, true, "10"},
		"after the index was read":         {objectState{snapshot: &feedSnapshot{indexStarted: true, indexDone: true}}, true, "10?"},
		"after the index has passed it":    {objectState{snapshot: &feedSnapshot{indexStarted: true, lastIndexed: indexRow{namespace: "n", name: "web"}}}, true, "10?"},
		"what has gone":                    {objectState{mark: "9", deleted: true}, false, ""},
		"a floor that is higher is kept":   {objectState{row: row("9"), mark: "9", floor: &versionFloor{version: 11}}, true, "11"},
		"what the snapshot said is kept":   {objectState{row: row("9"), snapshot: partlyIndexed, floor: &versionFloor{version: 9, conflict: conflict{claim: &claim{}}}}, true, "10?"},
		"a floor that is lower is no more": {objectState{row: row("9"), mark: "9", floor: &versionFloor{version: 9}}, true, "10"},
	} {
		c.state.key = floorKey
		o := objectAt("u", "10")
		writes, newFloor := c.state.decideWrite(&o)
		got := ""
		if newFloor != nil {
			got = fmt.Sprint(newFloor.version)
			if newFloor.claim != nil {
				got += "?"
			}
		}
		if writes != c.writes || got != c.floor {
			t.Errorf("%s: writes %v with floor %q, want %v with %q", name, writes, got, c.writes, c.floor)
		}
	}
}

func TestOverlayOfDisconnectedAccountExpires(t *testing.T) {
	var f overlays
	f.setFloor("prod", floorKey, versionFloor{version: 10})
	f.markDisconnected("prod", time.Now().Add(-tombstoneTTL+time.Minute))
	f.addTombstone("other", "u", tombstone{key: floorKey, createdAt: time.Now()})
	if f.clone("prod").isEmpty() {
		t.Error("what is known of an agent that may come back is forgotten")
	}
	f.addTombstone("other", "v", tombstone{key: floorKey, createdAt: time.Now().Add(2 * time.Minute)})
	if !f.clone("prod").isEmpty() || len(f.clone("other").tombstones) != 2 {
		t.Errorf("kept %v and %v", f.clone("prod"), f.clone("other"))
	}
}
