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
		back.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Fresh: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
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
		a.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, Fresh: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		time.Sleep(mostWriting)
		s.want("a/1 may forget op", "op done 200 ")
	})
}
