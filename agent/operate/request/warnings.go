package request

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Warnings holds the warnings of one operation: those of API servers, and those that
// kubectl would print itself. Each text is kept once, in the order of arrival.
type Warnings struct {
	mu        sync.Mutex
	texts     []string
	bytes     int  // of texts
	truncated bool // some texts were not kept
}

// The limits exist because an operation of many requests, for example a prune, could collect the
// warnings of all of them, and its outcome stays in memory until the server has acknowledged it.
// An API server sends at most 4096 characters of warnings with one response.
const (
	maxWarnings     = 100
	maxWarningBytes = 16 << 10 // bytes of all texts
)

// truncationNotice replaces the warnings above the limits.
const truncationNotice = "there were more warnings, which are not shown: an operation reports the first 100 of them, and up to 16 KiB"

// miscPersistentWarning is the only code that API servers use. Other codes come from caches
// between them and us.
const miscPersistentWarning = 299

// addHeader adds the warnings of a response. Values that are malformed are ignored, as in kubectl.
func (w *Warnings) addHeader(header http.Header) {
	values := header.Values("Warning")
	if len(values) == 0 {
		return
	}
	parsed, _ := utilnet.ParseWarningHeaders(values)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, warning := range parsed {
		if warning.Code == miscPersistentWarning && warning.Text != "" {
			w.addLocked(warning.Text)
		}
	}
}

// Add adds a warning of our own.
func (w *Warnings) Add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
}

func (w *Warnings) addLocked(text string) {
	switch {
	case w.truncated, slices.Contains(w.texts, text):
	case len(w.texts) == maxWarnings, w.bytes+len(text) > maxWarningBytes:
		w.truncated = true
	default:
		w.texts, w.bytes = append(w.texts, text), w.bytes+len(text)
	}
}

func (w *Warnings) isEmpty() bool { return len(w.List()) == 0 }

// List returns the warnings as the outcome has them. The caller owns the slice.
func (w *Warnings) List() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.truncated {
		return append(slices.Clone(w.texts), truncationNotice)
	}
	return slices.Clone(w.texts)
}

// rewrite replaces the texts by those that a function returns for them. The result is made
// valid UTF-8, because masking may cut a character.
func (w *Warnings) rewrite(rewrite func(texts []string) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts, truncated := w.texts, w.truncated
	w.texts = nil
	w.bytes = 0
	w.truncated = false
	for _, text := range rewrite(texts) {
		w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
	}
	w.truncated = w.truncated || truncated
}

// suppressSecrets replaces the warnings that quote the data of a Secret.
func (w *Warnings) suppressSecrets() {
	w.rewrite(func(texts []string) []string {
		for i, text := range texts {
			if secretDataPattern.MatchString(text) {
				texts[i] = "a warning is not shown, because it quotes a Secret"
			}
		}
		return texts
	})
}
