package beside

import (
	"context"
	"testing"

	"github.com/vedette-io/vedette/test/beside/standin"
)

// clouddriver is the upstream Clouddriver: a stand-in or a real one.
type clouddriver interface {
	URL() string
	Freeze()
	Thaw()
	// addRuns adds how often each operation ran, by account and clientRequestId, except those that the clusters show.
	addRuns(ctx context.Context, runs map[string]map[string]int) error
	// mayRunTwice reports whether a task is one of this Clouddriver, which may run a request twice that is repeated while it is frozen.
	mayRunTwice(task string) bool
	// knows reports whether it has an application of the clusters.
	knows(application string) bool
	// accounts returns the names of all accounts that Spinnaker must see.
	accounts() []string
	// hasLabels reports whether the labels of objects tell who has answered.
	hasLabels() bool
}

// mayRunTwice implements clouddriver.
func (standIn) mayRunTwice(string) bool { return false }

// standIn is a stand-in whose objects are those of the clusters.
type standIn struct{ *standin.Server }

func startStandIn(t *testing.T, clusters map[string]*cluster) standIn {
	t.Helper()
	accounts := []standin.Account{{Name: "legacy", Provider: "aws"}}
	var objects []standin.Object
	for account, c := range clusters {
		accounts = append(accounts, standin.Account{Name: account})
		for _, o := range c.objects {
			if o.Application() != newcomer {
				objects = append(objects, o)
			}
		}
	}
	return standIn{standin.Start(t, accounts, objects)}
}

func (s standIn) addRuns(_ context.Context, runs map[string]map[string]int) error {
	for _, run := range s.Runs() {
		runs[run.Account][run.RequestID]++
	}
	return nil
}

func (s standIn) knows(application string) bool { return application != newcomer }

func (s standIn) hasLabels() bool { return true }

func (s standIn) accounts() []string { return []string{"legacy", east, west} }
