package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

func TestWhatAFloorAdmits(t *testing.T) {
	f := floor{uid: "u", version: 10}
	for version, want := range map[string]bool{"9": false, "09": false, "10": true, "11": true, "99999999999999999999": true, "abc": true, "-1": true, "": false} {
		if f.admits(version) != want {
			t.Errorf("version %q: admitted is %v", version, !want)
		}
	}
	for mark, want := range map[string]bool{"": false, "9": false, "10": true, "11": true, "abc": false} {
		if f.passed(mark) != want {
			t.Errorf("mark %q: passed is %v", mark, !want)
		}
	}
	f.doubt = time.Now()
	if f.passed("11") {
		t.Error("a floor in doubt is passed")
	}
}

var (
	floorFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}
	floorKey  = vedette.Key{Kind: floorFeed.Kind, Namespace: "n", Name: "web"}
	floorTime = time.Unix(1_700_000_000, 0)
)

func said(uid, version string) vedette.Object {
	return vedette.Object{Key: floorKey, UID: uid, ResourceVersion: version}
}

// step is a batch that comes some time after what was known was found out.
type step struct {
	after  time.Duration
	upsert string // "uid@version"
	delete string // version
	drop   bool   // of what the operation wrote
	listed string // version of a snapshot that ends
	mark   string
}

func (st step) batch() Batch {
	b := Batch{Feeds: []FeedUpdate{{Feed: floorFeed, Listed: vedette.Mark(st.listed)}}}
	if st.upsert != "" {
		uid, version, _ := strings.Cut(st.upsert, "@")
		b.Upserts = []vedette.Object{said(uid, version)}
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

// told writes what is left of a batch.
func told(b Batch) string {
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

func TestScreening(t *testing.T) {
	const written, gone = "written", "gone"
	for name, c := range map[string]struct {
		known string // what an operation found out of the object: u@10, or that u has gone
		steps []step
		want  []string // of each step
		left  bool     // whether it is still known
	}{
		"older news":                            {written, []step{{upsert: "u@9", mark: "9"}}, []string{""}, true},
		"the same news":                         {written, []step{{upsert: "u@10"}}, []string{"u@10"}, false},
		"a mark beyond":                         {written, []step{{upsert: "u@9", mark: "12"}}, []string{""}, false},
		"the deletion of a forerunner":          {written, []step{{delete: "9"}}, []string{""}, true},
		"its deletion":                          {written, []step{{delete: "11"}}, []string{"deleted"}, false},
		"a drop and a newer list":               {written, []step{{drop: true}, {listed: "10"}}, []string{"1 dropped", "deleted"}, false},
		"a drop and an older list":              {written, []step{{drop: true}, {listed: "9"}, {mark: "15"}}, []string{"1 dropped", "", ""}, true},
		"a drop and an older list in one":       {written, []step{{drop: true, listed: "9", mark: "20"}}, []string{"1 dropped"}, true},
		"news after an older list":              {written, []step{{drop: true, listed: "9"}, {upsert: "u@10"}}, []string{"1 dropped", "u@10"}, false},
		"an item, a drop and an older list":     {written, []step{{upsert: "u@8"}, {drop: true, listed: "9"}}, []string{"", "1 dropped"}, true},
		"a history that went back":              {written, []step{{drop: true, listed: "5"}, {after: 119 * time.Second}, {after: 121 * time.Second}}, []string{"1 dropped", "", "deleted"}, false},
		"a history that went back to another":   {written, []step{{upsert: "u@4"}, {drop: true, listed: "5"}, {after: time.Second, upsert: "u@6"}, {after: time.Hour}}, []string{"", "1 dropped", "", "u@6"}, false},
		"a history that went back and went on":  {written, []step{{upsert: "u@4", listed: "5"}, {after: time.Hour, upsert: "u@6"}}, []string{"", "u@6"}, false},
		"a list that is newer and knows better": {written, []step{{upsert: "u@9"}, {listed: "12"}}, []string{"", "u@9"}, false},
		"a deletion without a version":          {written, []step{{delete: "-"}, {listed: "12"}}, []string{"", "deleted"}, false},
		"versions that can't be compared":       {written, []step{{upsert: "u@abc"}}, []string{"u@abc"}, false},
		"a list that can't be compared":         {written, []step{{drop: true}, {listed: "abc"}}, []string{"1 dropped", "deleted"}, false},

		"late news of what has gone":           {gone, []step{{upsert: "u@99", mark: "99"}, {delete: "100", mark: "100"}}, []string{"", "deleted"}, true},
		"the next of that name":                {gone, []step{{upsert: "u@9"}, {upsert: "v@11"}}, []string{"", "v@11"}, true},
		"it is forgotten":                      {gone, []step{{after: 9 * time.Minute}, {after: 10 * time.Minute}}, []string{"", ""}, false},
		"a list from before it went":           {gone, []step{{upsert: "u@9", listed: "9"}, {after: time.Minute, delete: "12"}, {after: time.Hour}}, []string{"", "deleted", ""}, false},
		"a history in which it has never gone": {gone, []step{{upsert: "u@4", listed: "5"}, {after: time.Hour}}, []string{"", "u@4"}, false},
	} {
		known := knowledge{map[vedette.Key]floor{}, map[string]tomb{}}
		if c.known == written {
			known.floors[floorKey] = floor{uid: "u", version: 10}
		} else {
			known.tombs["u"] = tomb{key: floorKey, made: floorTime}
		}
		var got []string
		for _, st := range c.steps {
			sc := &screening{batch: st.batch(), knowledge: known, now: floorTime.Add(st.after)}
			sc.run()
			known = sc.knowledge
			got = append(got, told(sc.batch))
		}
		if !slices.Equal(got, c.want) || known.empty() == c.left {
			t.Errorf("%s: got %q, want %q; still known: %v", name, got, c.want, !known.empty())
		}
	}
}

func TestWhatAnOperationMayWrite(t *testing.T) {
	row := func(version string) *storedRow { return &storedRow{version: version} }
	half := &listing{begun: true, last: indexRow{namespace: "n", name: "m"}}
	for name, c := range map[string]struct {
		at     standing
		writes bool
		floor  string // "" for none, else its version, and "?" where the snapshot is yet to say whether it is there
	}{
		"over what is older":               {standing{row: row("9"), mark: "9"}, true, "10"},
		"not over what is as new":          {standing{row: row("10"), mark: "9"}, false, ""},
		"not over what can't be compared":  {standing{row: row("abc"), mark: "9"}, false, ""},
		"over what must be told anew":      {standing{row: row("")}, true, "10"},
		"over what the feed has passed":    {standing{row: row("9"), mark: "12"}, true, ""},
		"where nothing is":                 {standing{mark: "9"}, true, "10"},
		"not where it has gone since":      {standing{mark: "10"}, false, ""},
		"not where the mark says nothing":  {standing{mark: "abc"}, false, ""},
		"where no feed ever was":           {standing{}, true, "10"},
		"not where it went before a list":  {standing{listing: &listing{from: "12"}}, false, ""},
		"before the index is read":         {standing{listing: &listing{from: "5"}}, true, "10"},
		"before the index comes to it":     {standing{listing: half}, true, "10"},
		"after the index was read":         {standing{listing: &listing{begun: true, whole: true}}, true, "10?"},
		"after the index has passed it":    {standing{listing: &listing{begun: true, last: indexRow{namespace: "n", name: "web"}}}, true, "10?"},
		"what has gone":                    {standing{mark: "9", buried: true}, false, ""},
		"a floor that is higher is kept":   {standing{row: row("9"), mark: "9", floor: &floor{version: 11}}, true, "11"},
		"what the snapshot said is kept":   {standing{row: row("9"), listing: half, floor: &floor{version: 9, dispute: dispute{word: &word{}}}}, true, "10?"},
		"a floor that is lower is no more": {standing{row: row("9"), mark: "9", floor: &floor{version: 9}}, true, "10"},
	} {
		c.at.key = floorKey
		o := said("u", "10")
		writes, kept := c.at.write(&o)
		got := ""
		if kept != nil {
			got = fmt.Sprint(kept.version)
			if kept.word != nil {
				got += "?"
			}
		}
		if writes != c.writes || got != c.floor {
			t.Errorf("%s: writes %v with floor %q, want %v with %q", name, writes, got, c.writes, c.floor)
		}
	}
}

func TestFloorsOfAccountsThatLeave(t *testing.T) {
	var f floors
	f.raise("prod", floorKey, floor{version: 10})
	f.leave("prod", time.Now().Add(-tombFor+time.Minute))
	f.bury("other", "u", tomb{key: floorKey, made: time.Now()})
	if f.of("prod").empty() {
		t.Error("what is known of an agent that may come back is forgotten")
	}
	f.bury("other", "v", tomb{key: floorKey, made: time.Now().Add(2 * time.Minute)})
	if !f.of("prod").empty() || len(f.of("other").tombs) != 2 {
		t.Errorf("kept %v and %v", f.of("prod"), f.of("other"))
	}
}
