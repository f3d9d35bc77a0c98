package output

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/vedette-io/vedette/server/tables"
)

// Spinner shows on a terminal which task takes long. It prints nothing if the output is not
// a terminal.
type Spinner struct {
	w     io.Writer
	quit  chan struct{} // nil if nothing is shown
	ended sync.WaitGroup

	mu        sync.Mutex
	tasks     []*task // under way, the oldest first
	lineShown bool    // the terminal shows a line of the spinner
}

type task struct {
	description string
	since       time.Time
}

// quietPeriod is how long a task runs before the spinner shows it.
const quietPeriod = 2 * time.Second

// NewSpinner returns a spinner that writes to w, or to the writer behind it, because it moves the cursor.
func NewSpinner(w io.Writer) *Spinner {
	if safe, ok := w.(SafeWriter); ok {
		w = safe.To
	}
	s := &Spinner{w: w}
	if isTerminal(w) {
		s.start()
	}
	return s
}

func (s *Spinner) start() {
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

func (s *Spinner) Stop() {
	if s.quit == nil {
		return
	}
	close(s.quit)
	s.ended.Wait()
	s.quit = nil
	s.Clear()
}

// Track starts a task. The caller must call done when the task has ended.
func (s *Spinner) Track(description string) (done func()) {
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

func (s *Spinner) show(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	if len(s.tasks) == 0 || now.Sub(s.tasks[0].since) < quietPeriod {
		return
	}
	line := fmt.Sprintf("%s (%s)", Sanitize(s.tasks[0].description), tables.Age(now.Sub(s.tasks[0].since)))
	if more := len(s.tasks) - 1; more > 0 {
		line += fmt.Sprintf(", and %d more", more)
	}
	fmt.Fprint(s.w, line)
	s.lineShown = true
}

// Clear removes the line, so that the caller can print another one.
func (s *Spinner) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
}

func (s *Spinner) clearLocked() {
	if s.lineShown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.lineShown = false
	}
}
