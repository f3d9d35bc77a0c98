package fanout

import (
	"fmt"
	"slices"

	"github.com/vedette-io/vedette/internal/cli/output"
)

// Printf prints a line to the output. It begins with the account if there are several.
func (r *Run) Printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.fanOut.Accounts) > 1 {
		text = r.Account + ": " + text
	}
	r.PrintLine(text)
}

// PrintLine prints a line to the output without the account, for texts that name it themselves.
func (r *Run) PrintLine(text string) { r.write(outputLine{text: text}) }

// Warnf prints a line to the error output.
func (r *Run) Warnf(format string, args ...any) {
	r.write(outputLine{text: fmt.Sprintf(format, args...), toStderr: true})
}

// Noticef is Warnf for what is no failure and may hold for many accounts. At most output.MaxNotices are printed.
func (r *Run) Noticef(format string, args ...any) {
	r.write(outputLine{text: fmt.Sprintf(format, args...), toStderr: true, class: notice})
}

// printWarnings prints the warnings of API servers, each text once, as kubectl does.
func (r *Run) printWarnings(warnings []string) {
	prefix := "Warning: "
	if len(r.fanOut.Accounts) > 1 {
		prefix = r.Account + ": " + prefix
	}
	for _, text := range warnings {
		r.write(outputLine{text: prefix + text, toStderr: true, class: warning, warning: text})
	}
}

func (r *Run) write(line outputLine) {
	r.fanOut.mu.Lock()
	defer r.fanOut.mu.Unlock()
	r.pending = append(r.pending, line)
	if r.fanOut.Interleaved {
		r.fanOut.flushLocked(r)
		return
	}
	r.fanOut.printLocked()
}

func (r *Run) finish() {
	r.fanOut.mu.Lock()
	defer r.fanOut.mu.Unlock()
	r.ended = true
	r.fanOut.printLocked()
}

// printLocked prints the pending lines of the first run that has not ended, and of all runs
// before it.
func (fan *FanOut) printLocked() {
	for fan.printing < len(fan.runs) {
		run := fan.runs[fan.printing]
		fan.flushLocked(run)
		if !run.ended {
			return
		}
		fan.printing++
	}
}

// flushLocked prints the pending lines of a run.
func (fan *FanOut) flushLocked(run *Run) {
	for _, s := range run.pending {
		fan.spin.Clear()
		switch {
		case s.class == notice:
			fan.notices.Add(s.text, s.text)
		case s.class == warning && fan.wasWarnedLocked(run, s.warning):
		case s.toStderr:
			fmt.Fprintln(fan.errOut, output.SanitizeCells(s.text))
		default:
			fmt.Fprintln(fan.out, output.SanitizeCells(s.text))
		}
	}
	run.pending = nil
}

// wasWarnedLocked reports whether a warning was printed before, and notes the account.
func (fan *FanOut) wasWarnedLocked(run *Run, text string) bool {
	first, seen := fan.warnedBy[text]
	if !seen {
		if fan.warnedBy == nil {
			fan.warnedBy = map[string]string{}
		}
		fan.warnedBy[text] = run.Account
		return false
	}
	if first != run.Account && !slices.Contains(fan.alsoWarned, run.Account) {
		fan.alsoWarned = append(fan.alsoWarned, run.Account)
	}
	return true
}

func (fan *FanOut) printLeftOut() {
	fan.spin.Clear()
	fan.notices.Flush("select an account with --account")
	if n := len(fan.alsoWarned); n > 0 {
		names := output.Sanitize(abbreviate(fan.alsoWarned))
		fmt.Fprintf(fan.errOut, "Warnings above came from %s, too: %s\n", output.Count(n, "more account"), names)
	}
	fan.alsoWarned = nil
}
