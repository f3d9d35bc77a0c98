package versions

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/vedette-io/vedette"
)

// readVersions returns what caches ask for.
func readVersions(v *Versions) [4]uint64 {
	return [4]uint64{v.ApplicationVersion("shop"), v.NamespaceVersion("prod", "n"), v.AccountsVersion(), v.ChangeMark()}
}

// TestVersionsOfServersThatShare publishes at one server what another one has changed.
func TestVersionsOfServersThatShare(t *testing.T) {
	one, two := New(0), New(0)
	one.SetSharing(Sharing{IsCurrent: func() bool { return true }, Published: func(e *Effect) {
		m := e.Message()
		two.PublishOther(m.Effect())
	}})
	many := &Effect{Account: "prod"}
	for n := range maxMessageObjects + 1 {
		many.AddObject("shop", 1, "n", fmt.Sprint(n))
	}
	objects := &Effect{Account: "prod", Clusters: true}
	objects.AddObject("shop", 1, "n", "web")
	for name, e := range map[string]*Effect{"objects": objects, "many objects": many, "an account": AccountEffect("prod", false),
		"an account with its objects": AccountEffect("prod", true)} {
		beforeOne, beforeTwo := readVersions(one), readVersions(two)
		mark := two.ChangedAccounts(0).Mark
		one.PublishOutcome(e, nil)
		afterOne, afterTwo := readVersions(one), readVersions(two)
		for i := range afterOne {
			if (afterOne[i] != beforeOne[i]) != (afterTwo[i] != beforeTwo[i]) {
				t.Errorf("%s: version %d has changed: %v, and at the other server: %v", name, i, afterOne[i] != beforeOne[i], afterTwo[i] != beforeTwo[i])
			}
		}
		if got, want := len(two.ChangedAccounts(mark).Names) == 1, e.accountRow; got != want {
			t.Errorf("%s: the account has changed: %v, want %v", name, got, want)
		}
		staleOne, _ := one.StaleClusters.Take()
		staleTwo, _ := two.StaleClusters.Take()
		if !reflect.DeepEqual(staleOne, staleTwo) {
			t.Errorf("%s: got stale clusters %v, want %v", name, staleTwo, staleOne)
		}
		var changed []ChangedObject
		if _, ok := two.Changes.Since(beforeTwo[3], func(c ChangedObject) { changed = append(changed, c) }); ok != (name == "objects" || name == "an account") ||
			name == "objects" && !reflect.DeepEqual(changed, objects.Changed) {
			t.Errorf("%s: got changed objects %v, complete: %v", name, changed, ok)
		}
	}
}

// TestEverythingChangesWhileOthersAreNotHeard reads versions while it is not known what other servers have changed.
func TestEverythingChangesWhileOthersAreNotHeard(t *testing.T) {
	v, isCurrent := New(0), true
	v.SetSharing(Sharing{IsCurrent: func() bool { return isCurrent }, Published: func(*Effect) {}})
	v.AccountLog.Note("prod")
	first := readVersions(v)
	mark := v.ChangedAccounts(0)
	if again := readVersions(v); again != first || mark.All || len(mark.Names) != 1 {
		t.Errorf("while others are heard: got %v, %v and %+v", first, again, mark)
	}
	isCurrent = false
	second, third := readVersions(v), readVersions(v)
	for i := range second {
		if second[i] == first[i] || third[i] == second[i] {
			t.Errorf("while others are not heard: version %d is %d, %d, %d", i, first[i], second[i], third[i])
		}
	}
	later := v.ChangedAccounts(mark.Mark)
	if _, all := v.StaleClusters.Take(); !later.All || !all {
		t.Errorf("while others are not heard: got %+v, and all clusters are stale: %v", later, all)
	}
	isCurrent = true
	v.AccountLog.Note("test")
	if c := v.ChangedAccounts(later.Mark); c.All || fmt.Sprint(c.Names) != "[test]" {
		t.Errorf("when others are heard again: got %+v, want test", c)
	}
	if c := v.ChangedAccounts(mark.Mark); !c.All {
		t.Errorf("a reader that has not read in between: got %+v, want all", c)
	}
}

// FuzzMessage decodes stripes of any length.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("12345678"), []byte{})
	f.Fuzz(func(t *testing.T, applications, namespaces []byte) {
		m := Message{Account: vedette.AccountName("a"), IsUnnamed: true, Applications: applications, Namespaces: namespaces}
		e := m.Effect()
		again := e.Message()
		if !reflect.DeepEqual(again.Effect(), e) {
			t.Error("it changes when it is encoded again")
		}
	})
}
