package answer_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/answer"
)

type list struct {
	Items []struct{} `json:"items"`
}

func newReader() *answer.Reader {
	return answer.NewReader(answer.Config{Service: "Front50", TextBytes: 1 << 20, DecodedBytes: 4 << 20, Bytes: 8 << 20, Wait: 4 * time.Second})
}

func TestLargeOrInvalidAnswersFail(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // of the error
	}{
		"an answer":           {`{"items":[{},{}]}`, ""},
		"a large answer":      {`{"items":[{}` + strings.Repeat(",{}", 20_000) + `]}`, ""},
		"a long answer":       {`{"items":[` + strings.Repeat(" ", 1<<20) + `]}`, "more than 1 MiB"},
		"a member twice":      {`{"items":[],"items":[{}]}`, "not valid"},
		"another type":        {`{"items":7}`, "not valid"},
		"one that breaks off": {`{"items":[{}`, "not valid"},
	} {
		memory := newReader().Begin("ann")
		var got list
		err := memory.Read(t.Context(), strings.NewReader(c.text), &got)
		memory.Release()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestAnswersShareMemory keeps large answers back when all but their end has arrived. Others wait, and say why they failed;
// a small one does not wait.
func TestAnswersShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReader()
		read := func(caller string, from io.Reader) error {
			memory := r.Begin(caller)
			defer memory.Release()
			var got list
			return memory.Read(t.Context(), from, &got)
		}
		var ends []*io.PipeWriter
		results := make(chan error, 10)
		for range cap(results) {
			from, to := io.Pipe()
			ends = append(ends, to)
			go func() { results <- read("mallory", from) }()
			go func() { _, _ = to.Write([]byte(`{"items":[` + strings.Repeat(" ", 900<<10))) }()
		}
		time.Sleep(10 * time.Second)
		waited := 0
		for len(results) > 0 {
			if err := <-results; err == nil || !strings.Contains(err.Error(), "for Front50") {
				t.Errorf("got %v, want that the memory for Front50 is used", err)
			}
			waited++
		}
		if held := cap(results) - waited; held < 1 || held > 2 {
			t.Errorf("%d answers of 900 KiB are in 6 MiB, want 1 or 2", held)
		}
		if err := read("ann", strings.NewReader(`{"items":[]}`)); err != nil {
			t.Errorf("a small answer beside large ones: %v", err)
		}
		for _, end := range ends {
			_ = end.CloseWithError(errors.New("the test has ended"))
		}
	})
}
