package upstream

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
	"github.com/vedette-io/vedette/server/upstream/merging"
)

// TestListsOfSmallValues checks lists that take many times more memory than bytes, in members that
// are there twice or whose names differ in case, which encoding/json reads too.
func TestListsOfSmallValues(t *testing.T) {
	many := "[1" + strings.Repeat(",1", merging.MaxElements) + "]"
	texts := `["` + strings.Repeat(`","`, merging.MaxElements) + `"]`
	for _, tt := range []struct{ name, pattern, body string }{
		{"results", "search", `[{"results":` + many + `}]`},
		{"results that are there twice", "search", `[{"results":[],"results":` + many + `}]`},
		{"results in capitals", "search", `[{"results":[],"RESULTS":` + many + `}]`},
		{"types of an artifact account", "artifacts/credentials", `[{"name":"a","types":` + texts + `}]`},
	} {
		if _, err := join(t, endpoint(t, tt.pattern), []byte("[]"), []byte(tt.body)); err == nil {
			t.Errorf("%s: got no error", tt.name)
		}
	}
}

// TestPanicReturnsMemory checks that a defect of this server does not use up the memory for merges.
func TestPanicReturnsMemory(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = func(http.ResponseWriter, *http.Request) {
		for w.handler.client.memory.Used() == 0 { // until the other answer is there
			runtime.Gosched()
		}
		panic(http.ErrAbortHandler)
	}
	w.theirs.answer = answerJSON(http.StatusOK, `[{"name":"theirs"}]`)
	for range 3 {
		if response, err := http.Get(w.url + "/credentials"); err == nil {
			response.Body.Close()
			t.Fatal("got an answer, want none")
		}
	}
	if got := w.handler.client.memory.Used(); got != 0 {
		t.Errorf("got %d bytes of memory used, want none", got)
	}
}

// TestHostileTaskAnswersAreUnavailable checks answers to a submission and to a poll.
func TestHostileTaskAnswersAreUnavailable(t *testing.T) {
	for _, tt := range []struct{ name, submitted, polled, want string }{
		{"an ID with a slash", `{"id":"../credentials"}`, ``, "named no task that can be followed"},
		{"an ID of dots", `{"id":".."}`, ``, "named no task that can be followed"},
		{"a long ID", `{"id":"` + strings.Repeat("x", 1000) + `"}`, ``, "named no task that can be followed"},
		{"an ID with a line break", `{"id":"a\nb"}`, ``, "named no task that can be followed"},
		{"no ID", `{}`, ``, "named no task that can be followed"},
		{"very many results", `{"id":"a"}`, `{"resultObjects":[1` + strings.Repeat(",1", merging.MaxElements+1) + `]}`, reasonTooLarge},
		{"an error of several megabytes", ``, ``, "answered 500"},
	} {
		w := newWorld(t, nil)
		w.theirs.answer = func(out http.ResponseWriter, r *http.Request) {
			switch {
			case tt.submitted == "":
				answerJSON(http.StatusInternalServerError, `{"errors":["`+strings.Repeat("x", 4<<20)+`"]}`)(out, r)
			case r.Method == http.MethodPost:
				answerJSON(http.StatusOK, tt.submitted)(out, r)
			default:
				answerJSON(http.StatusOK, tt.polled)(out, r)
			}
		}
		remote := &callerRemote{Remote: w.remote, header: http.Header{}}
		id, err := remote.Submit(t.Context(), []task.Request{{Name: "resize", Description: []byte(`{}`)}}, "r")
		if err == nil {
			_, err = remote.Get(t.Context(), id)
		}
		if vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 4096 {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
