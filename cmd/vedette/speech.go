package main

import "fmt"

// say prints a line about something that was done.
func (h *hand) say(format string, args ...any) { h.tell(false, format, args...) }

// warn prints a line to the error output.
func (h *hand) warn(format string, args ...any) { h.tell(true, format, args...) }

// heed prints what the account's API servers warned of, each text once, as kubectl
// does.
func (h *hand) heed(warnings []string) {
	prefix := "Warning: "
	if len(h.crew.accounts) > 1 {
		prefix = h.account + ": " + prefix
	}
	for _, text := range warnings {
		if h.heeded[text] {
			continue
		}
		if h.heeded == nil {
			h.heeded = map[string]bool{}
		}
		h.heeded[text] = true
		h.write(prefix+text, true)
	}
}

func (h *hand) tell(toErrs bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(h.crew.accounts) > 1 && !toErrs {
		text = h.account + ": " + text
	}
	h.write(text, toErrs)
}

// write prints a line as it is.
func (h *hand) write(text string, toErrs bool) {
	h.crew.mu.Lock()
	defer h.crew.mu.Unlock()
	h.said = append(h.said, said{text, toErrs})
	if h.crew.live {
		h.crew.utterLocked(h)
		return
	}
	h.crew.printLocked()
}

func (h *hand) end() {
	h.crew.mu.Lock()
	defer h.crew.mu.Unlock()
	h.ended = true
	h.crew.printLocked()
}

// printLocked prints what may be printed: all of the hand whose turn it is, and of
// those after it once those before have ended.
func (c *crew) printLocked() {
	for c.turn < len(c.hands) {
		h := c.hands[c.turn]
		c.utterLocked(h)
		if !h.ended {
			return
		}
		c.turn++
	}
}

// utterLocked prints what a hand has said.
func (c *crew) utterLocked(h *hand) {
	for _, s := range h.said {
		w := c.out
		if s.toErrs {
			w = c.errOut
		}
		c.spin.clear()
		fmt.Fprintln(w, cleanCells(s.text))
	}
	h.said = nil
}
