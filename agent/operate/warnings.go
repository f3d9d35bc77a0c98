package operate

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// warningCollector are what API servers said to the requests of one operation, beside their
// answers, and what kubectl would warn of: each text once, in the order in which they
// came.
type warningCollector struct {
	mu        sync.Mutex
	texts     []string
	bytes     int  // of texts
	truncated bool // were said than are kept
}

// What an operation keeps of warnings. An API server puts 4096 characters of them
// into one answer, whose longest ones it cuts. Operations of many requests, as a prune
// is, could gather those of each; nobody reads more than some screens of them, and an
// outcome is held wherever it waits.
const (
	maxWarnings     = 100
	maxWarningBytes = 16 << 10 // bytes of all texts
)

// truncationNotice stands for the warnings that were one too many.
const truncationNotice = "there were more warnings, which are not shown: an operation tells the first 100 of them, and up to 16 KiB"

// miscPersistentWarning is that of a warning that is meant for people to see. All of API servers
// have it; caches on the way have others.
const miscPersistentWarning = 299

type warningCollectorKey struct{}

// withWarningCollector begins the account of one operation.
func withWarningCollector(ctx context.Context) (context.Context, *warningCollector) {
	w := &warningCollector{}
	return context.WithValue(ctx, warningCollectorKey{}, w), w
}

// collectWarnings notes what an answer warns of. What of it is no warning by the rules
// of the header is passed over, as kubectl does.
func collectWarnings(ctx context.Context, header http.Header) {
	values := header.Values("Warning")
	w, ok := ctx.Value(warningCollectorKey{}).(*warningCollector)
	if !ok || len(values) == 0 {
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

// warn adds a warning of our own.
func warn(ctx context.Context, text string) {
	w, ok := ctx.Value(warningCollectorKey{}).(*warningCollector)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
}

func (w *warningCollector) addLocked(text string) {
	switch {
	case w.truncated, slices.Contains(w.texts, text):
	case len(w.texts) == maxWarnings, w.bytes+len(text) > maxWarningBytes:
		w.truncated = true
	default:
		w.texts, w.bytes = append(w.texts, text), w.bytes+len(text)
	}
}

// hasWarnings reports whether anything was warned of so far.
func hasWarnings(ctx context.Context) bool {
	w, ok := ctx.Value(warningCollectorKey{}).(*warningCollector)
	return ok && len(w.list()) > 0
}

// list is what the operation's outcome tells.
func (w *warningCollector) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.truncated {
		return append(slices.Clone(w.texts), truncationNotice)
	}
	return slices.Clone(w.texts)
}

// rewriteWarnings rewrites what was warned of so far. What hides bytes may tear letters.
func rewriteWarnings(ctx context.Context, rewrite func(texts []string) []string) {
	w, ok := ctx.Value(warningCollectorKey{}).(*warningCollector)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	texts, truncated := w.texts, w.truncated
	w.texts, w.bytes, w.truncated = nil, 0, false
	for _, text := range rewrite(texts) {
		w.addLocked(strings.ToValidUTF8(text, "\uFFFD"))
	}
	w.truncated = w.truncated || truncated
}
