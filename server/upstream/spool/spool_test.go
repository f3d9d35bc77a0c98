package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/fair"
)

// TestSpoolReturnsWhatWasWritten writes answers of several sizes, and reads them back.
func TestSpoolReturnsWhatWasWritten(t *testing.T) {
	for _, size := range []int{0, 1, blockBytes - 1, blockBytes, blockBytes + 1, 5*blockBytes + 7} {
		m := NewMemory(8 << 20)
		g, err := m.Acquire(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		s := New(t.Context(), g)
		want := []byte(strings.Repeat(`{"account":"theirs","name":"replicaSet web"},`, size/45+1)[:size])
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 10_007)
			if written, err := s.Write(rest[:n]); err != nil || written != n {
				t.Fatalf("got %d, %v, want %d bytes written", written, err, n)
			}
			rest = rest[n:]
		}
		for range 2 {
			read, err := io.ReadAll(iotestReader{s.Reader()})
			var copied bytes.Buffer
			if _, copyErr := s.WriteTo(&copied); errors.Join(err, copyErr) != nil || !bytes.Equal(read, want) || !bytes.Equal(copied.Bytes(), want) {
				t.Errorf("size %d: got %d and %d bytes, %v, %v", size, len(read), copied.Len(), err, copyErr)
			}
		}
		if s.Size() != int64(size) || s.Held() > g.held.Units() || size > 2*blockBytes && s.Held() > int64(size)/2 {
			t.Errorf("size %d: got %d bytes that take %d, with a grant of %d", size, s.Size(), s.Held(), g.held.Units())
		}
		g.Release()
		if used := m.Used(); used != 0 {
			t.Errorf("got %d bytes used, want 0", used)
		}
	}
}

// iotestReader hides the method WriteTo.
type iotestReader struct{ io.Reader }

// TestGrantsThatGrowEnd lets many grants grow at once far beyond what there is: each ends in turn.
func TestGrantsThatGrowEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1000)
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				g, err := m.Acquire(t.Context(), fmt.Sprint(i%5), 20)
				if err != nil {
					t.Error(err)
					return
				}
				defer g.Release()
				for range 10 {
					time.Sleep(time.Second)
					if err := g.Grow(t.Context(), 20); err != nil {
						t.Error(err)
						return
					}
				}
				time.Sleep(time.Second)
				g.Shrink(50)
				time.Sleep(time.Second)
			})
		}
		group.Wait()
		if used := m.Used(); used != 0 {
			t.Errorf("got %d bytes used, want 0", used)
		}
	})
}

// TestGrantsThatCannotGrow checks the largest grant, and a wait that ends.
func TestGrantsThatCannotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1000)
		large, err := m.Acquire(t.Context(), "a", 100)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = large.Grow(t.Context(), 10)
		}
		if total := large.held.Units() + large.extra; !errors.Is(err, fair.ErrTooLarge) || total != 370+250 {
			t.Errorf("got %d bytes and %v, want 370 of the share of a caller and the reserve", total, err)
		}
		other, err := m.Acquire(t.Context(), "b", 100)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := other.Grow(ctx, 300); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		large.Shrink(250)
		if err := other.Grow(t.Context(), 250); err != nil {
			t.Error(err)
		}
		large.Release()
		other.Release()
		other.Release()
		if used := m.Used(); used != 0 {
			t.Errorf("got %d bytes used, want 0", used)
		}
	})
}
