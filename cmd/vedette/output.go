package main

import "fmt"

// printf prints a line about something that was done.
func (r *accountRun) printf(format string, args ...any) { r.printfTo(false, format, args...) }

// warnf prints a line to the error output.
func (r *accountRun) warnf(format string, args ...any) { r.printfTo(true, format, args...) }

// printWarnings prints what the account's API servers warned of, each text once, as kubectl
// does.
func (r *accountRun) printWarnings(warnings []string) {
	prefix := "Warning: "
	if len(r.fanOut.accounts) > 1 {
		prefix = r.account + ": " + prefix
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

func (r *accountRun) printfTo(toStderr bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.fanOut.accounts) > 1 && !toStderr {
		text = r.account + ": " + text
	}
	r.writeLine(text, toStderr)
}

// writeLine prints a line as it is.
func (r *accountRun) writeLine(text string, toStderr bool) {
	r.fanOut.mu.Lock()
	defer r.fanOut.mu.Unlock()
	r.pending = append(r.pending, outputLine{text, toStderr})
	if r.fanOut.interleaved {
		r.fanOut.flushLocked(r)
		return
	}
	r.fanOut.printLocked()
}

func (r *accountRun) finish() {
	r.fanOut.mu.Lock()
	defer r.fanOut.mu.Unlock()
	r.ended = true
	r.fanOut.printLocked()
}

// printLocked prints what may be printed: all of the hand whose turn it is, and of
// those after it once those before have ended.
func (fan *fanOut) printLocked() {
	for fan.printing < len(fan.runs) {
		run := fan.runs[fan.printing]
		fan.flushLocked(run)
		if !run.ended {
			return
		}
		fan.printing++
	}
}

// flushLocked prints what a hand has said.
func (fan *fanOut) flushLocked(run *accountRun) {
	for _, s := range run.pending {
		w := fan.out
		if s.toStderr {
			w = fan.errOut
		}
		fan.spin.clear()
		fmt.Fprintln(w, sanitizeCells(s.text))
	}
	run.pending = nil
}
