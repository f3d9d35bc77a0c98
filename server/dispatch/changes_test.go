package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/history"
)

// TestChangesOfAgentsAreBounded checks what is kept of changes that an agent of ours would not send.
func TestChangesOfAgentsAreBounded(t *testing.T) {
	valid := json.RawMessage(`[{"op":"add","path":"/a","value":1}]`)
	large := json.RawMessage(`[{"op":"add","path":"/a","value":"` + strings.Repeat("x", vedette.MaxPatchBytes) + `"}]`)
	changes := []vedette.ObjectChange{
		{Key: vedette.Key{Name: "valid"}, Patch: valid, Before: "1", Note: "cut"},
		{Key: vedette.Key{Name: "no patch"}, Patch: json.RawMessage(`{"op":"add"}`)},
		{Key: vedette.Key{Name: "no JSON"}, Patch: json.RawMessage("\xff\x00")},
		{Key: vedette.Key{Name: "large"}, Patch: large},
		{Key: vedette.Key{Name: "texts\x1b[31m"}, Before: strings.Repeat("9", 1000), Note: strings.Repeat("n", 10_000)},
	}
	for range 2000 {
		changes = append(changes, vedette.ObjectChange{Patch: json.RawMessage(`[{"op":"add","path":"/a","value":"` + strings.Repeat("x", 900) + `"}]`)})
	}
	got := boundChanges(changes)
	total := 0
	for i := range got {
		total += len(got[i].Patch)
	}
	if len(got) != vedette.MaxChangeObjects || total > vedette.MaxChangesBytes {
		t.Errorf("got %d changes with %d bytes", len(got), total)
	}
	if string(got[0].Patch) != string(valid) || got[0].Note != "cut" || got[0].Before != "1" {
		t.Errorf("a valid one: got %+v", got[0])
	}
	for i, want := range map[int]string{1: "is not valid", 2: "is not valid", 3: "larger than the limit"} {
		if got[i].Patch != nil || !strings.Contains(got[i].Note, want) {
			t.Errorf("%s: got %+v", got[i].Key.Name, got[i])
		}
	}
	if c := got[4]; len(c.Before) > maxVersionText || len(c.Note) > maxNote || strings.Contains(c.Key.Name, "\x1b") {
		t.Errorf("texts: got %+v", c)
	}
}

// TestTextsOfChangesAreBounded checks what is kept of changes with long names, which cost memory and the database as patches do.
func TestTextsOfChangesAreBounded(t *testing.T) {
	long := strings.Repeat("<", maxNote)
	var changes []vedette.ObjectChange
	for range 5000 {
		changes = append(changes, vedette.ObjectChange{Key: vedette.Key{Kind: vedette.Kind{Name: long, Group: long}, Name: long, Namespace: long}, Before: long, Note: long})
	}
	got, total := boundChanges(changes), 0
	for i := range got {
		total += textBytes(&got[i])
	}
	if last := got[len(got)-1]; total > maxChangesTexts || cap(got) > vedette.MaxChangeObjects+100 || !strings.Contains(last.Note, "more objects") {
		t.Errorf("got %d changes with %d bytes, the last with the note %.100q", len(got), total, last.Note)
	}
	r := newRecorder(Config{}, &purgedStore{}, slog.New(slog.DiscardHandler))
	for i := range 200 {
		r.recordEnd(history.Operation{ID: vedette.OperationID(fmt.Sprint(i)), Changes: slices.Clone(got)})
	}
	if r.detailBytes > 3*maxPendingDetails {
		t.Errorf("%d bytes of changes wait for the database, want about %d", r.detailBytes, maxPendingDetails)
	}
	for _, e := range r.pendingEnds {
		r.completeLocked(e)
	}
	if r.detailBytes != 0 {
		t.Errorf("%d bytes are still counted after all ends are recorded", r.detailBytes)
	}
}

// purgedStore is a history of which only the sizes matter.
type purgedStore struct {
	historyStore
	entries []time.Time // when they were accepted, the oldest first
	reads   int         // of the verb get besides, all old
	recent  int         // of the verb get besides, of the last hour
	size    int64       // of each
	batches int
	other   func() // what another server does after each batch; may be nil
}

func (p *purgedStore) PurgeOperations(_ context.Context, before time.Time, limit int) (n int, bytes int64, err error) {
	p.batches++
	for n < limit && len(p.entries) > 0 && p.entries[0].Before(before) {
		p.entries = p.entries[1:]
		n++
	}
	if p.other != nil {
		p.other()
	}
	return n, int64(n) * p.size, nil
}

func (p *purgedStore) PurgeOperationsOf(_ context.Context, verb vedette.Verb, _ time.Time, limit int) (n int, bytes int64, err error) {
	if verb == vedette.VerbGet {
		n = min(limit, p.reads)
		p.reads -= n
	}
	return n, int64(n) * p.size, nil
}

func (p *purgedStore) HistoryBytesOf(_ context.Context, verb vedette.Verb) (int64, error) {
	if verb != vedette.VerbGet {
		return 0, nil
	}
	return int64(p.reads+p.recent) * p.size, nil
}

func (p *purgedStore) HistorySize(context.Context) (history.Size, error) {
	entries := int64(len(p.entries) + p.reads + p.recent)
	return history.Size{Entries: entries, Bytes: entries * p.size}, nil
}

// TestHistoryIsLimited checks what is deleted of a history that is too old or too large.
func TestHistoryIsLimited(t *testing.T) {
	for _, tt := range []struct {
		what          string
		old, recent   int // entries of two days, and of minutes ago
		keep          time.Duration
		maxBytes      int64
		want, batches int
	}{
		{"neither", 1000, 1000, 72 * time.Hour, 1 << 30, 2000, 1},
		{"too old", 1200, 1000, 24 * time.Hour, 1 << 30, 1000, 13},
		{"too large", 3000, 1000, 72 * time.Hour, 2_500_000, 2500, 16},
		{"too large, but of the last hour", 100, 3000, 72 * time.Hour, 1_000_000, 3000, 3},
	} {
		p := &purgedStore{size: 1000}
		for i := range tt.old {
			p.entries = append(p.entries, time.Now().Add(-48*time.Hour+time.Duration(i)*time.Second))
		}
		for i := range tt.recent {
			p.entries = append(p.entries, time.Now().Add(-50*time.Minute+time.Duration(i)*time.Millisecond))
		}
		r := newRecorder(Config{KeepHistory: tt.keep, MaxHistory: tt.maxBytes}, p, slog.New(slog.DiscardHandler))
		r.purge(t.Context())
		if len(p.entries) != tt.want || p.batches != tt.batches || r.size.Entries != int64(tt.want) {
			t.Errorf("%s: got %d entries after %d batches, want %d after %d; shown are %d", tt.what, len(p.entries), p.batches, tt.want, tt.batches, r.size.Entries)
		}
	}
}

// TestServersShrinkTogether checks that servers of one database, each of which finds its history too large, do not each delete what is too
// much.
func TestServersShrinkTogether(t *testing.T) {
	p := &purgedStore{size: 1000}
	for i := range 100_000 {
		p.entries = append(p.entries, time.Now().Add(-48*time.Hour+time.Duration(i)*time.Millisecond))
	}
	p.other = func() { // it began with the same size, and deletes as much
		if len(p.entries) > 50_000 {
			p.entries = p.entries[purgeBatch:]
		}
	}
	r := newRecorder(Config{KeepHistory: 72 * time.Hour, MaxHistory: 50_000_000}, p, slog.New(slog.DiscardHandler))
	r.purge(t.Context())
	if n := len(p.entries); n > 50_000 || n < 50_000-2*measureInterval*purgeBatch {
		t.Errorf("%d operations are left, want about 50000", n)
	}
}

// TestReadsArePurgedFirst checks that reads, which anybody may send who may read, do not push changes out of the history.
func TestReadsArePurgedFirst(t *testing.T) {
	for _, tt := range []struct{ changes, reads, recent, wantChanges, wantReads int }{
		{1000, 5000, 0, 1000, 1000},
		{3000, 5000, 0, 2000, 0},
		{1000, 5000, 9000, 1000, 0}, // reads of the last hour are kept anyway
		{3000, 5000, 9000, 2000, 0},
	} {
		p := &purgedStore{size: 1000, reads: tt.reads, recent: tt.recent}
		for i := range tt.changes {
			p.entries = append(p.entries, time.Now().Add(-48*time.Hour+time.Duration(i)*time.Second))
		}
		r := newRecorder(Config{KeepHistory: 72 * time.Hour, MaxHistory: 2_000_000}, p, slog.New(slog.DiscardHandler))
		r.purge(t.Context())
		if len(p.entries) != tt.wantChanges || p.reads != tt.wantReads {
			t.Errorf("%d changes and %d reads: %d and %d are left, want %d and %d", tt.changes, tt.reads, len(p.entries), p.reads, tt.wantChanges, tt.wantReads)
		}
	}
}

// TestPendingChangesAreBounded records ends while the database does not take them.
func TestPendingChangesAreBounded(t *testing.T) {
	r := newRecorder(Config{}, &purgedStore{}, slog.New(slog.DiscardHandler))
	patch := json.RawMessage(`["` + strings.Repeat("x", 60_000) + `"]`)
	for i := range 1000 {
		r.recordEnd(history.Operation{ID: vedette.OperationID(fmt.Sprint(i)), Changes: []vedette.ObjectChange{{Patch: patch}}})
	}
	kept, total := 0, 0
	for _, e := range r.pendingEnds {
		total += len(e.row.Changes[0].Patch)
		if e.row.Changes[0].Patch != nil {
			kept++
		} else if e.row.Changes[0].Note == "" {
			t.Fatal("a patch is missing without a note")
		}
	}
	if kept < 100 || total > maxPendingDetails || len(r.pendingEnds) != 1000 {
		t.Errorf("got %d patches with %d bytes of %d ends", kept, total, len(r.pendingEnds))
	}
	for _, e := range r.pendingEnds {
		r.completeLocked(e)
	}
	if r.detailBytes != 0 {
		t.Errorf("%d bytes are still counted after all ends are recorded", r.detailBytes)
	}
}

// TestUndoNamesWhatItTakesBack ends an undo after the operation whose template it takes back.
func TestUndoNamesWhatItTakesBack(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.rows["applied"] = history.Operation{ID: "applied", State: vedette.Done, Changes: []vedette.ObjectChange{{Key: webKey, TemplateBefore: "a", TemplateAfter: "b"}}}
		r := newRecorder(Config{}, s, slog.New(slog.DiscardHandler))
		undo := &inflight{op: vedette.Operation{Account: "prod", Args: vedette.UndoArgs{}}}
		change := func(before, after string) vedette.Outcome {
			return vedette.Outcome{State: vedette.Done, Changes: []vedette.ObjectChange{{Key: webKey, TemplateBefore: before, TemplateAfter: after}}}
		}
		for what, tt := range map[string]struct {
			f    *inflight
			out  vedette.Outcome
			want vedette.OperationID
		}{
			"an undo":                          {undo, change("b", "a"), "applied"},
			"an undo of what kubectl did":      {undo, change("c", "a"), ""},
			"an undo that changed no template": {undo, change("b", "b"), ""},
			"an apply":                         {&inflight{op: vedette.Operation{Account: "prod", Args: vedette.ApplyArgs{}}}, change("b", "a"), ""},
			"an undo that failed":              {undo, vedette.Outcome{State: vedette.Failed, Changes: change("b", "a").Changes}, ""},
		} {
			if got := r.findUndone(s.t.Context(), tt.f, tt.out); got != tt.want {
				t.Errorf("%s: got %q, want %q", what, got, tt.want)
			}
		}
	})
}

// TestRowsAreBounded checks that the end of an operation that waits for the database has no more of an agent's texts than the history keeps.
func TestRowsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	key := vedette.Key{Kind: vedette.Kind{Name: long, Group: long}, Namespace: long, Name: long}
	other := key
	other.Name += "y"
	r := newRecorder(Config{}, &purgedStore{}, slog.New(slog.DiscardHandler))
	for _, keys := range [][]vedette.Key{{key}, {key, other}} {
		row := r.finalRow(&inflight{}, vedette.Outcome{State: vedette.Failed, Reason: long, Message: long, Keys: keys})
		size := len(row.Reason) + len(row.Message) + len(row.Kind) + len(row.Namespace) + len(row.Name)
		for _, o := range row.Objects {
			size += len(o.Kind.Name) + len(o.Kind.Group) + len(o.Namespace) + len(o.Name)
		}
		if size > 32<<10 || !strings.HasPrefix(row.Message, "xxxx") || row.Name == "" && len(row.Objects) == 0 {
			t.Errorf("got %d bytes of texts for %d objects", size, len(keys))
		}
	}
}

// TestObjectsOfAnOperationAreBounded checks the objects of an operation whose agent names the same ones again and again, and too many.
func TestObjectsOfAnOperationAreBounded(t *testing.T) {
	var out vedette.Outcome
	for i := range 200_000 {
		key := webKey
		key.Name = fmt.Sprint(i / 2)
		out.Keys = append(out.Keys, key)
	}
	for range vedette.MaxChangeObjects {
		out.Changes = append(out.Changes, vedette.ObjectChange{Key: webKey})
	}
	var row history.Operation
	setObjects(&row, out)
	if len(row.Objects) != vedette.MaxChangeObjects || row.Objects[1].Name != "1" {
		t.Errorf("got %d objects, %v", len(row.Objects), row.Objects[:2])
	}
	setObjects(&row, vedette.Outcome{Keys: []vedette.Key{webKey, webKey}})
	if row.Name != webKey.Name || row.Namespace != webKey.Namespace {
		t.Errorf("one object that is named twice: got %s/%s", row.Namespace, row.Name)
	}
}
