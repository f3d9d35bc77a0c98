package operate

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// warnings are what API servers said to the requests of one operation, beside their
// answers, and what kubectl would warn of: each text once, in the order in which they
// came.
type warnings struct {
	mu    sync.Mutex
	texts []string
	bytes int  // of texts
	more  bool // were said than are kept
}

// What an operation keeps of warnings. An API server puts 4096 characters of them
// into one answer, whose longest ones it cuts. Operations of many requests, as a prune
// is, could gather those of each; nobody reads more than some screens of them, and an
// outcome is held wherever it waits.
const (
	mostWarnings = 100
	mostWarned   = 16 << 10 // bytes of all texts
)

// unkept stands for the warnings that were one too many.
const unkept = "there were more warnings, which are not shown: an operation tells the first 100 of them, and up to 16 KiB"

// warnCode is that of a warning that is meant for people to see. All of API servers
// have it; caches on the way have others.
const warnCode = 299

type warningsKey struct{}

// withWarnings begins the account of one operation.
func withWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// noteWarnings notes what an answer warns of. What of it is no warning by the rules
// of the header is passed over, as kubectl does.
func noteWarnings(ctx context.Context, answer http.Header) {
	said := answer.Values("Warning")
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok || len(said) == 0 {
		return
	}
	parsed, _ := utilnet.ParseWarningHeaders(said)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range parsed {
		if one.Code == warnCode && one.Text != "" {
			w.addLocked(one.Text)
		}
	}
}

// warn adds a warning of our own.
func warn(ctx context.Context, text string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
}

func (w *warnings) addLocked(text string) {
	switch {
	case w.more, slices.Contains(w.texts, text):
	case len(w.texts) == mostWarnings, w.bytes+len(text) > mostWarned:
		w.more = true
	default:
		w.texts, w.bytes = append(w.texts, text), w.bytes+len(text)
	}
}

// warned reports whether anything was warned of so far.
func warned(ctx context.Context) bool {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	return ok && len(w.told()) > 0
}

// told is what the operation's outcome tells.
func (w *warnings) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.more {
		return append(slices.Clone(w.texts), unkept)
	}
	return slices.Clone(w.texts)
}

// veilWarnings rewrites what was warned of so far. What hides bytes may tear letters.
func veilWarnings(ctx context.Context, hide func(texts []string) []string) {
	w, ok := ctx.Value(warningsKey{}).(*warnings)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	texts, more := w.texts, w.more
	w.texts, w.bytes, w.more = nil, 0, false
	for _, text := range hide(texts) {
		w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
	}
	w.more = w.more || more
}
