package dispatch

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// The cluster of an account, as two agents see it, and another one.
var (
	blue       = vedette.Cluster{UID: "blue", Host: "https://a", Fingerprint: "AA"}
	blueHidden = vedette.Cluster{Host: "https://a", Fingerprint: "AA"}
	green      = vedette.Cluster{UID: "green", Host: "https://a", Fingerprint: "AA"}
)

var (
	change = vedette.ApplyArgs{Manifest: []byte(`{"kind": "ConfigMap"}`)}
	read   = vedette.GetArgs{Target: vedette.Target{Kind: "pod", Name: "p"}}
)

// TestOperationsNameTheirCluster checks that an agent gets the identity of the cluster that it
// registered, and no other one.
func TestOperationsNameTheirCluster(t *testing.T) {
	runScenario(t, func(s *scenario) {
		a := s.connectTo(blue, "a", "1")
		s.start("1", change)
		s.expectLog("recorded 1 apply ConfigMap ", "a/1: execute 1, in cluster blue")
		s.disconnect(a)
		b := s.connectTo(blueHidden, "b", "1") // which may not know the uid
		s.expectLog("b/1: execute 1")
		b.answerDone("1")
		if got := s.takeLog(); !strings.Contains(got, "1 done 200 ") {
			t.Errorf("got %q", got)
		}
	})
}

// TestOperationsForAnotherClusterAreRefused checks that operations which wait while their account gets
// another cluster are sent to no agent of that cluster.
func TestOperationsForAnotherClusterAreRefused(t *testing.T) {
	for name, args := range map[string]vedette.Args{"a change": change, "a read": read} {
		t.Run(name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				s.stored = blue // no agent serves the account
				s.start("1", args)
				s.takeLog()
				s.connectTo(green, "b", "1")
				s.expectRefused("1 failed 409 ")
			})
		})
	}
	t.Run("sent before", func(t *testing.T) {
		runScenario(t, func(s *scenario) {
			a := s.connectTo(blue, "a", "1")
			s.start("1", change)
			s.expectLog("recorded 1 apply ConfigMap ", "a/1: execute 1, in cluster blue")
			s.disconnect(a)
			s.connectTo(green, "b", "1")
			s.expectRefused("1 lost 504 ")
		})
	})
	t.Run("unknown cluster at first", func(t *testing.T) {
		runScenario(t, func(s *scenario) {
			s.start("1", change)
			s.takeLog()
			a := s.connectTo(blue, "a", "1")
			s.expectLog("a/1: execute 1, in cluster blue")
			s.disconnect(a)
			s.connectTo(green, "b", "1")
			s.expectRefused("1 lost 504 ")
		})
	})
}

// TestOperationsWaitForARegistration checks an agent that deregisters the account at the moment at which it
// is to get an operation, because the address leads to another cluster. What it got without a cluster it would
// execute in the next one that it reaches.
func TestOperationsWaitForARegistration(t *testing.T) {
	for name, tt := range map[string]struct {
		next vedette.Cluster
		want string
	}{"another cluster": {green, "1 lost 504 "}, "the same cluster again": {blue, "a/1: execute 1, in cluster blue"}} {
		t.Run(name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				a := s.connectTo(blue, "a", "1")
				s.start("1", change)
				s.expectLog("recorded 1 apply ConfigMap ", "a/1: execute 1, in cluster blue")
				s.disconnect(a)
				s.connectTo(vedette.Cluster{}, "a", "1")
				s.expectLog("")
				s.connectTo(tt.next, "a", "1")
				if got := s.takeLog(); !strings.Contains(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// expectRefused expects the outcome of an operation, which was not sent and names no cluster.
func (s *scenario) expectRefused(outcome string) {
	s.t.Helper()
	got := s.takeLog()
	if !strings.Contains(got, outcome) || strings.Contains(got, "execute") || !strings.Contains(got, "another cluster") {
		s.t.Errorf("got %q, want %q", got, outcome)
	}
	if strings.Contains(got, "blue") || strings.Contains(got, "green") {
		s.t.Errorf("%q names a cluster", got)
	}
}
