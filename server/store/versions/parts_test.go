package versions

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPartsTellTheWhole publishes in one of two parts what it has changed, and at another process what that is told.
func TestPartsTellTheWhole(t *testing.T) {
	whole, other := New(0), New(0)
	part, otherPart := whole.NewPart(1), other.NewPart(1)
	unconcerned := other.NewPart(2)
	whole.SetSharing(Sharing{IsCurrent: func() bool { return true }, Published: func(e *Effect) {
		m := e.Message()
		if of, concerns := m.OfPart(1); concerns {
			otherPart.PublishOther(of.Effect())
		}
		if _, concerns := m.OfPart(2); concerns {
			t.Error("a part is told of objects of another one")
		}
		other.PublishOther(m.Effect())
	}})
	before := [][4]uint64{readVersions(whole), readVersions(other)}
	e := &Effect{Account: "prod", Clusters: true}
	e.AddObject("shop", 7, "n", "web")
	part.PublishOutcome(e, nil)
	for i, v := range []*Versions{whole, other} {
		after := readVersions(v)
		if after[0] == before[i][0] || after[1] == before[i][1] {
			t.Errorf("process %d: got versions %v after %v, want that objects have changed", i, after, before[i])
		}
		_, ok := v.Changes.Since(before[i][3], func(c ChangedObject) {
			if number, kind := Part(c.KindID); number != 1 || kind != 7 {
				t.Errorf("process %d: got kind %d of part %d, want 7 of 1", i, kind, number)
			}
		})
		if !ok || after[3] != before[i][3]+1 {
			t.Errorf("process %d: the object is not known", i)
		}
	}
	for name, v := range map[string]*Versions{"the part": part, "that of the other process": otherPart} {
		if stale, all := v.StaleClusters.Take(); len(stale) != 1 || all {
			t.Errorf("%s: got stale clusters %v, %v, want those of the account", name, stale, all)
		}
	}
	if stale, all := unconcerned.StaleClusters.Take(); len(stale) != 0 || all {
		t.Errorf("got stale clusters %v, %v in a part that is not concerned", stale, all)
	}
	whole.PublishAll()
	if _, all := part.StaleClusters.Take(); !all {
		t.Error("not all changes when all of the whole does")
	}
}

// TestUncertainChangesOfPartsArePublishedAgain publishes a change whose outcome is not known, and reads when it has ended.
func TestUncertainChangesOfPartsArePublishedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := New(time.Second)
		part := whole.NewPart(1)
		e := &Effect{Account: "prod"}
		e.AddObject("shop", 7, "n", "web")
		part.PublishOutcome(e, errors.New("the connection is lost"))
		first := whole.ApplicationVersion("shop")
		if again := whole.ApplicationVersion("shop"); again != first {
			t.Errorf("got version %d after %d, want the same until the transaction has ended", again, first)
		}
		time.Sleep(2 * time.Second)
		if later := whole.ApplicationVersion("shop"); later == first {
			t.Error("the version is the same after the transaction has ended")
		}
	})
}
