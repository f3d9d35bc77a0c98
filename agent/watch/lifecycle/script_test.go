package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
)

// TestScriptsRunAsRecorded runs events from testdata. Each line in the first column of a script is an event, and the indented lines below
// are the effects that follow from it, and what has become of the feed.
func TestScriptsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("got %d scripts, want at least 8: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{}
			for line := range strings.Lines(string(text)) {
				if err := s.runLine(strings.TrimSuffix(line, "\n")); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			golden.Compare(t, file, s.out.String())
		})
	}
}

type script struct {
	feed *Feed
	now  time.Time
	out  strings.Builder
}

func (s *script) runLine(line string) error {
	if strings.HasPrefix(line, " ") {
		return nil // of the last run
	}
	fmt.Fprintln(&s.out, line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, arg, _ := strings.Cut(line, " ")
	if name == "feed" {
		s.feed, s.now = New(vedette.Mark(arg)), began
		return nil
	}
	if name == "synthetic" {
		s.feed, s.now = NewSynthetic(), began
		return nil
	}
	s.now = s.now.Add(time.Second)
	event, err := parseEvent(name, arg)
	if err != nil {
		return err
	}
	for _, effect := range s.feed.Step(event, s.now) {
		fmt.Fprintf(&s.out, "    %s\n", formatEffect(effect))
	}
	fmt.Fprintf(&s.out, "    = %s", s.feed.Phase())
	if s.feed.Mark() != "" {
		fmt.Fprintf(&s.out, ", mark %s", s.feed.Mark())
	}
	if s.feed.IsBeginningAnew() {
		s.out.WriteString(", beginning anew")
	}
	fmt.Fprintln(&s.out)
	return nil
}

func parseEvent(name, arg string) (Event, error) {
	switch name {
	case "started":
		return Started{}, nil
	case "list-accepted":
		return ListAccepted{}, nil
	case "begun":
		return Begun{}, nil
	case "list-restarted":
		return ListRestarted{}, nil
	case "listed":
		return Listed{vedette.Mark(arg)}, nil
	case "taken":
		return Taken{}, nil
	case "watch-opened":
		return WatchOpened{}, nil
	case "changed":
		return Changed{vedette.Mark(arg)}, nil
	case "skipped":
		return Skipped{arg}, nil
	case "lasted":
		return Lasted{}, nil
	case "watch-ended":
		return WatchEnded{WatchEnd(arg)}, nil
	case "failed":
		for _, f := range failures {
			if f.name == arg {
				return Failed{f.Failure}, nil
			}
		}
	case "pause-over":
		return PauseOver{}, nil
	case "interrupted":
		return Interrupted{}, nil
	case "report-lost":
		return ReportLost{}, nil
	case "reset":
		return ResetWanted{vedette.Mark(arg)}, nil
	case "anew":
		return AnewWanted{}, nil
	case "reconnect":
		d, err := time.ParseDuration(arg)
		return ReconnectWanted{began.Add(d)}, err
	case "reached":
		return Reached{}, nil
	}
	return nil, fmt.Errorf("no such event")
}

func formatEffect(effect Effect) string {
	text := strings.TrimPrefix(fmt.Sprintf("%T%+v", effect, effect), "lifecycle.")
	return strings.TrimSuffix(text, "{}")
}
