package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
)

// hungStore counts objects when it is told to.
type hungStore struct {
	readStore
	answered chan struct{}
}

func (s hungStore) ObjectCounts(context.Context, ...vedette.AccountName) (map[vedette.Kind]int64, error) {
	<-s.answered
	return nil, nil
}

// TestKindsOfAHungDatabase checks that a caller who leaves does not wait for the one that counts.
func TestKindsOfAHungDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		a, large := &api{Config: Config{Store: hungStore{answered: answered}}}, &accountfeeds.List{}
		for range maxExactAccounts + 1 {
			large.Accounts = append(large.Accounts, &accountfeeds.Account{})
		}
		go func() { _, _ = a.readKinds(t.Context(), large, filter{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := a.readKinds(ctx, large, filter{})
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
