package fanout

import (
	"fmt"

	"github.com/vedette-io/vedette/internal/cli/output"
)

// Printf prints a line to the output. It begins with the account if there are several.
func (r *Run) Printf(format string, args ...any) { r.printfTo(false, format, args...) }

// Warnf prints a line to the error output.
func (r *Run) Warnf(format string, args ...any) { r.printfTo(true, format, args...) }

// printWarnings prints the warnings of API servers, each text once, as kubectl does.
func (r *Run) printWarnings(warnings []string) {
	prefix := "Warning: "
	if len(r.fanOut.Accounts) > 1 {
		prefix = r.Account + ": " + prefix
	}
	for _, text := range warnings {
		if r.printedWarnings[text] {
			continue
		}
		if r.printedWarnings == nil {
			r.printedWarnings = map[string]bool{}
		}
		r.printedWarnings[text] = true
		r.writeLine(prefix+text, true)
	}
}

func (r *Run) printfTo(toStderr bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.fanOut.Accounts) > 1 && !toStderr {
		text = r.Account + ": " + text
	}
	r.writeLine(text, toStderr)
}

// writeLine prints a line without the account.
func (r *Run) writeLine(text string, toStderr bool) {
	r.fanOut.mu.Lock()
	defer r.fanOut.mu.Unlock()
	r.pending = append(r.pending, outputLine{text, toStderr})
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
		w := fan.out
		if s.toStderr {
			w = fan.errOut
		}
		fan.spin.Clear()
		fmt.Fprintln(w, output.SanitizeCells(s.text))
	}
	run.pending = nil
}
