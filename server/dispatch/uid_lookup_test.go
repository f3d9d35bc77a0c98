package dispatch

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

var (
	webKey = vedette.Key{Kind: deployments, Namespace: "shop", Name: "web"}
	// versionedGadget is of a group that reads as a version and a group.
	versionedGadget = vedette.Key{Kind: vedette.Kind{Group: "v1.example.com", Name: "Gadget"}, Namespace: "shop", Name: "web"}
)

// TestDeleteUsesStoredUID checks which deletions include the stored uid.
func TestDeleteUsesStoredUID(t *testing.T) {
	named := func(change func(*vedette.DeleteArgs)) vedette.DeleteArgs {
		a := vedette.DeleteArgs{Target: web}
		change(&a)
		return a
	}
	for _, tt := range []struct {
		name string
		args vedette.Args
		want string
	}{
		{"by name", named(func(*vedette.DeleteArgs) {}), "a/1: execute op, uid u1"},
		{"by another name of the kind", named(func(a *vedette.DeleteArgs) { a.Kind = "Deployments.apps" }), "a/1: execute op, uid u1"},
		{"in a version", named(func(a *vedette.DeleteArgs) { a.APIVersion = "apps/v1" }), "a/1: execute op, uid u1"},
		{"without a namespace, which only the agent knows", named(func(a *vedette.DeleteArgs) { a.Namespace = "" }), "a/1: execute op"},
		{"of a group without the kind", named(func(a *vedette.DeleteArgs) { a.APIVersion = "example.com/v1" }), "a/1: execute op"},
		{"of an unknown kind", named(func(a *vedette.DeleteArgs) { a.Kind = "widget" }), "a/1: execute op"},
		{"in a version of a group, as far as only the cluster knows", named(func(a *vedette.DeleteArgs) { a.Kind = "gadgets.v1.example.com" }), "a/1: execute op"},
		{"of a group that reads as a version", named(func(a *vedette.DeleteArgs) { a.Kind, a.APIVersion = "Gadget", "v1.example.com/v2" }), "a/1: execute op, uid u3"},
		{"an object that is not stored", named(func(a *vedette.DeleteArgs) { a.Name = "api" }), "a/1: execute op"},
		{"a uid from the caller", named(func(a *vedette.DeleteArgs) { a.Name, a.KnownUID = "api", "made-up" }), "a/1: execute op"},
		{"by labels", named(func(a *vedette.DeleteArgs) { a.Name, a.LabelSelector = "", "app=web" }), "a/1: execute op"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runScenario(t, func(s *scenario) {
				s.uids = map[vedette.Key]string{webKey: "u1", {Kind: deployments, Namespace: "default", Name: "web"}: "u2", versionedGadget: "u3"}
				a := s.connect("a", "1")
				s.start("op", tt.args)
				if got, want := s.takeLog(), "recorded op delete "+targetOf(tt.args, objectOf(tt.args))+"\n"+tt.want; got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
				a.answerDone("op")
			})
		})
	}
}

// TestSlowUIDLookupIsSkipped checks that an operation does not wait for a slow lookup.
func TestSlowUIDLookupIsSkipped(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.uids, s.uidDelay = map[vedette.Key]string{webKey: "u1"}, time.Second
		a := s.connect("a", "1")
		s.start("op", vedette.DeleteArgs{Target: web})
		time.Sleep(maxUIDLookup)
		s.expectLog("recorded op delete deployment shop/web", "a/1: execute op")
		a.answerDone("op")
		time.Sleep(time.Second)
	})
}

// TestResendKeepsKnownUID checks that a resent deletion spares a new object with the
// same name, and that the object that it found missing is removed from the store.
func TestResendKeepsKnownUID(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.uids = map[vedette.Key]string{webKey: "u1"}
		a := s.connect("a", "1")
		s.start("op", vedette.DeleteArgs{Target: web})
		s.disconnect(a)
		b := s.connect("b", "2")
		s.expectLog("recorded op delete deployment shop/web", "a/1: execute op, uid u1", "b/2: execute op, uid u1, only this uid, may be missing")
		b.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Keys: []vedette.Key{webKey}, UIDs: []string{"u1"}})
		s.expectLog("b/2: forget op", "removed Deployment.apps shop/web u1", "op done 200 ")
	})
}

// TestKnownUIDOfOtherKindIsIgnored checks that nothing is removed if the agent resolves
// the kind to another kind than the server.
func TestKnownUIDOfOtherKindIsIgnored(t *testing.T) {
	runScenario(t, func(s *scenario) {
		s.uids = map[vedette.Key]string{webKey: "u1"}
		a := s.connect("a", "1")
		s.start("op", vedette.DeleteArgs{Target: web, MissingOK: true})
		s.takeLog()
		other := vedette.Key{Kind: vedette.Kind{Group: "example.com", Name: "Deployment"}, Namespace: "shop", Name: "web"}
		a.answer(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Keys: []vedette.Key{other}, UIDs: []string{"u1"}})
		s.expectLog("a/1: forget op", "op done 200 ")
	})
}
