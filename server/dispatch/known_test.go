package dispatch

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

var webKey = vedette.Key{Kind: deployments, Namespace: "shop", Name: "web"}

// TestKnownUID holds which deletions go with the uid that is stored.
func TestKnownUID(t *testing.T) {
	named := func(change func(*vedette.DeleteArgs)) vedette.DeleteArgs {
		a := vedette.DeleteArgs{Target: web}
		change(&a)
		return a
	}
	for _, tt := range []struct {
		why  string
		args vedette.Args
		want string
	}{
		{"by name", named(func(*vedette.DeleteArgs) {}), "a/1 is sent op, of uid u1"},
		{"by another name of the kind", named(func(a *vedette.DeleteArgs) { a.Kind = "Deployments.apps" }), "a/1 is sent op, of uid u1"},
		{"in a version", named(func(a *vedette.DeleteArgs) { a.APIVersion = "apps/v1" }), "a/1 is sent op, of uid u1"},
		{"without a namespace, which is default", named(func(a *vedette.DeleteArgs) { a.Namespace = "" }), "a/1 is sent op, of uid u2"},
		{"of a group that has no such kind", named(func(a *vedette.DeleteArgs) { a.APIVersion = "example.com/v1" }), "a/1 is sent op"},
		{"of a kind that nobody reports", named(func(a *vedette.DeleteArgs) { a.Kind = "widget" }), "a/1 is sent op"},
		{"what is not stored", named(func(a *vedette.DeleteArgs) { a.Name = "api" }), "a/1 is sent op"},
		{"what a caller made up", named(func(a *vedette.DeleteArgs) { a.Name, a.KnownUID = "api", "made-up" }), "a/1 is sent op"},
		{"by labels", named(func(a *vedette.DeleteArgs) { a.Name, a.LabelSelector = "", "app=web" }), "a/1 is sent op"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			onStage(t, func(s *stage) {
				s.uids = map[vedette.Key]string{webKey: "u1", {Kind: deployments, Namespace: "default", Name: "web"}: "u2"}
				a := s.connect("a", "1")
				s.do("op", tt.args)
				if got, want := s.heard(), "noted op delete "+targetOf(tt.args)+"\n"+tt.want; got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
				a.done("op")
			})
		})
	}
}

// What is known is not waited for.
func TestKnownUIDTakesTooLong(t *testing.T) {
	onStage(t, func(s *stage) {
		s.uids, s.slow = map[vedette.Key]string{webKey: "u1"}, time.Second
		a := s.connect("a", "1")
		s.do("op", vedette.DeleteArgs{Target: web})
		time.Sleep(mostKnowing)
		s.want("noted op delete deployment shop/web", "a/1 is sent op")
		a.done("op")
		time.Sleep(time.Second)
	})
}

// A process that is given what another one had deletes no object that came since,
// and takes from what is stored what it found gone.
func TestKnownUIDIsHandedOver(t *testing.T) {
	onStage(t, func(s *stage) {
		s.uids = map[vedette.Key]string{webKey: "u1"}
		a := s.connect("a", "1")
		s.do("op", vedette.DeleteArgs{Target: web})
		s.cut(a)
		b := s.connect("b", "2")
		s.want("noted op delete deployment shop/web", "a/1 is sent op, of uid u1", "b/2 is sent op, of uid u1 and no other, which may be gone")
		b.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Keys: []vedette.Key{webKey}, UIDs: []string{"u1"}})
		s.want("b/2 may forget op", "removed Deployment.apps shop/web u1", "op done 200 ")
	})
}

// An agent that takes a name for another kind than the server finds nothing there.
func TestKnownUIDOfAnotherKind(t *testing.T) {
	onStage(t, func(s *stage) {
		s.uids = map[vedette.Key]string{webKey: "u1"}
		a := s.connect("a", "1")
		s.do("op", vedette.DeleteArgs{Target: web, MissingOK: true})
		s.heard()
		other := vedette.Key{Kind: vedette.Kind{Group: "example.com", Name: "Deployment"}, Namespace: "shop", Name: "web"}
		a.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Keys: []vedette.Key{other}, UIDs: []string{"u1"}})
		s.want("a/1 may forget op", "op done 200 ")
	})
}
