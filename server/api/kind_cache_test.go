package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestKindsOfAHungDatabase checks that a caller who leaves does not wait for the one that counts.
func TestKindsOfAHungDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, answered := newKindCache(), make(chan struct{})
		go func() {
			_, _ = c.get(t.Context(), func() ([]kindView, error) { <-answered; return []kindView{{Kind: "Pod"}}, nil })
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.get(ctx, func() ([]kindView, error) { return nil, nil })
			left <- err
		}()
		cancel()
		synctest.Wait()
		if len(left) == 0 || !errors.Is(<-left, context.Canceled) {
			t.Error("a caller who left still waits")
		}
		close(answered)
	})
}
