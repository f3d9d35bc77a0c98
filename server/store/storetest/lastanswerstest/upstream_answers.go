package lastanswerstest

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/lastanswers"
)

// UpstreamAnswers are tests that keep the last answers of a Clouddriver.
var UpstreamAnswers = map[string]func(*testing.T, *store.Store){
	"an answer is replaced, and confirmed": func(t *testing.T, s *store.Store) {
		read := func(name string) lastanswers.Answer {
			t.Helper()
			a, err := s.UpstreamAnswer(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if got := read("a"); got.Parts != nil || !got.Fetched.IsZero() {
			t.Errorf("got %+v, want nothing", got)
		}
		first := time.UnixMicro(1_700_000_000_000_001)
		other := lastanswers.Answer{Name: "a ", Fetched: first, Parts: [][]byte{{0xff, 0, '\''}}}
		for _, want := range []lastanswers.Answer{
			other,
			{Name: "a", Fetched: first, Parts: [][]byte{bytes.Repeat([]byte{0xfe}, 1<<20), {1}}},
			{Name: "a", Fetched: first.Add(time.Second), Parts: [][]byte{[]byte("shorter")}},
		} {
			if err := s.SetUpstreamAnswer(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			if got := read(want.Name); !got.Fetched.Equal(want.Fetched) || !reflect.DeepEqual(got.Parts, want.Parts) {
				t.Errorf("got %d parts of %v, want %d of %v", len(got.Parts), got.Fetched, len(want.Parts), want.Fetched)
			}
		}
		if err := s.ConfirmUpstreamAnswer(t.Context(), "a", first.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := read("a"); !got.Fetched.Equal(first.Add(time.Minute)) || string(got.Parts[0]) != "shorter" {
			t.Errorf("got %+v, want the same answer a minute later", got)
		}
		if got := read("a "); !got.Fetched.Equal(first) || !reflect.DeepEqual(got.Parts, other.Parts) {
			t.Errorf("got %+v, want the answer with another name unchanged", got)
		}
	},
}
