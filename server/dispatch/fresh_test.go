package dispatch

import (
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
)

// An outcome that comes while nobody holds the account, because its agent has just
// connected again, is told when what it wrote can be read.
func TestWhatWasWrittenWaitsForACacher(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.cut(a)
		s.heard()
		back := &agent{stage: s, name: "a/1"}
		m := &roster.Member{Agent: roster.Agent{ID: "a"}}
		back.visit = s.Attach(m, "1", back)
		back.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		time.Sleep(time.Second)
		s.want("a/1 may forget op")
		s.mu.Lock()
		s.holders["prod"] = m
		s.mu.Unlock()
		s.seated()
		time.Sleep(100 * time.Millisecond)
		s.want("stored  web at 7", "op done 200 ")
	})
}

// It is not waited for for ever.
func TestWhatWasWrittenWaitsNotForEver(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.cut(a)
		s.heard()
		a.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		time.Sleep(mostWriting)
		s.want("a/1 may forget op", "op done 200 ")
	})
}

// The account's commits make way for an operation from its acceptance on, until
// what it wrote is stored, and for none of which nothing will be.
func TestCommitsMakeWay(t *testing.T) {
	tests := []struct {
		why  string
		args vedette.Args
		want bool
	}{
		{"it changes something", scale, true},
		{"it is asked for to be stored", vedette.RecacheArgs{Target: web}, true},
		{"it only reads", read, false},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			onStage(t, func(s *stage) {
				s.do("op", tt.args)
				s.makesWay(tt.want, "before an agent is there")
				a := s.connect("a", "1")
				s.heard() // it is sent
				a.done("op")
				s.makesWay(false, "after it was answered")
			})
		})
	}
	onStage(t, func(s *stage) {
		leave := s.do("op", scale)
		leave()
		s.makesWay(true, "after the caller left")
		a := s.connect("a", "1")
		s.heard()
		a.done("op")
		s.makesWay(false, "after it ended")
		s.do("op", scale)
		s.makesWay(false, "after it was refused")
		go s.Execute(s.t.Context(), vedette.Operation{ID: "dry", Account: "prod", Args: scale, DryRun: true})
		s.makesWay(false, "for a dry run")
		a.done("dry")
	})
}

func (s *stage) makesWay(want bool, when string) {
	s.t.Helper()
	s.heard()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.hurried > 0; got != want {
		s.t.Errorf("%s commits make way: %t, want %t", when, got, want)
	}
}
