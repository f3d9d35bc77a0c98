package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette/server/views"
)

// spinner shows on a terminal what is taking long. Elsewhere it is silent.
type spinner struct {
	w     io.Writer
	quit  chan struct{} // nil where nothing is shown
	ended sync.WaitGroup

	mu        sync.Mutex
	tasks     []*task // under way, the oldest first
	lineShown bool    // a line stands on the terminal
}

type task struct {
	description string
	since       time.Time
}

// quietPeriod is how long a task may take without a word.
const quietPeriod = 2 * time.Second

func newSpinner(w io.Writer) *spinner {
	s := &spinner{w: w}
	if isTerminal(w) {
		s.start()
	}
	return s
}

func (s *spinner) start() {
	s.quit = make(chan struct{})
	s.ended.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-s.quit:
				return
			case now := <-tick.C:
				s.show(now)
			}
		}
	})
}

func (s *spinner) stop() {
	if s.quit == nil {
		return
	}
	close(s.quit)
	s.ended.Wait()
	s.quit = nil
	s.clear()
}

// track says that a task has begun, and returns what says that it has ended.
func (s *spinner) track(description string) (done func()) {
	t := &task{description, time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == t })
	}
}

func (s *spinner) show(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	if len(s.tasks) == 0 || now.Sub(s.tasks[0].since) < quietPeriod {
		return
	}
	line := fmt.Sprintf("%s (%s)", sanitize(s.tasks[0].description), views.Age(now.Sub(s.tasks[0].since)))
	if more := len(s.tasks) - 1; more > 0 {
		line += fmt.Sprintf(", and %d more", more)
	}
	fmt.Fprint(s.w, line)
	s.lineShown = true
}

// clear takes the line away, so that others can be printed.
func (s *spinner) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
}

func (s *spinner) clearLocked() {
	if s.lineShown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.lineShown = false
	}
}
