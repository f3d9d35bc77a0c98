package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestFollow follows streams that break in several ways. Their errors reach the function that decides whether to go on, and events about the
// stream itself reach nobody.
func TestFollow(t *testing.T) {
	t.Parallel()
	streams := []string{
		"event: ready\ndata: {}\n\n",
		"event: added\ndata: {}\n\nevent: lagged\ndata: {}\n\n",
		"event: error\ndata: {\"error\":{\"kind\":\"unknown_kind\",\"message\":\"no Foo any more\"}}\n\n",
	}
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, streams[requests.Add(1)-1])
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	var ends []error
	err = c.Follow(t.Context(), Query{}, func(e Event) error {
		events = append(events, e.Type)
		return nil
	}, func(err error) error {
		if ends = append(ends, err); IsPermanent(err) {
			return err
		}
		return nil
	})
	if vedette.KindOf(err) != vedette.UnknownKind || len(ends) != 3 || !errors.Is(ends[0], io.ErrUnexpectedEOF) || !errors.Is(ends[1], ErrLagged) {
		t.Errorf("got %v after %v, want the error of the third stream", err, ends)
	}
	if want := []string{"ready", "added", "lagged", "error"}; !slices.Equal(events, want) {
		t.Errorf("got the events %q, want %q", events, want)
	}
}

// TestFollowEndsWithItsContext checks that an interrupt is not an error, and that no other stream is opened.
func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, "event: ready\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Follow(ctx, Query{}, func(Event) error {
		cancel()
		return nil
	}, func(err error) error {
		t.Errorf("got %v, want nothing that breaks", err)
		return nil
	})
	if err != nil || requests.Load() != 1 {
		t.Errorf("got %v after %d streams, want one", err, requests.Load())
	}
}
