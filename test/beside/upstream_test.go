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
	// runs adds how often each operation ran, by account and clientRequestId.
	addRuns(ctx context.Context, runs map[string]map[string]int) error
	// knows reports whether it has an application of a cluster.
	knows(application string) bool
}

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

// accounts returns the names of all accounts that Spinnaker must see.
func (s standIn) accounts() []string { return []string{"legacy", east, west} }
