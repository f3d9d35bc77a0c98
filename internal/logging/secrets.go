package logging

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// SetSecrets makes a logger that New returned, and all loggers that come from it, replace secrets by
// ***: those that are given, and those of the call before, which connections may still use. It masks
//
//   - a value of one line, of 6 bytes or more;
//   - in a value of several lines, and in YAML or JSON on one line, the values at names such as token,
//     password and key, and the lines of a certificate or a key;
//
// as it is, quoted, in JSON, in URLs and in base64. The time that a line takes depends on its length,
// and not on the number of secrets.
func SetSecrets(log *slog.Logger, values []string) {
	if h, ok := log.Handler().(contextHandler); ok {
		h.secrets.set(values)
	}
}

// maskedPlace replaces a secret.
const maskedPlace = "***"

// secretWriter masks secrets in what is written, which is one line at a time.
type secretWriter struct {
	next  io.Writer
	index atomic.Pointer[secretIndex] // nil if there are no secrets

	mu   sync.Mutex
	last []string // of the last call of set
}

func (w *secretWriter) set(values []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	index := newSecretIndex(slices.Concat(values, w.last)) // a list of its own, which it may sort
	w.last = slices.Clone(values)
	if len(index.forms) == 0 {
		index = nil
	}
	w.index.Store(index)
}

func (w *secretWriter) Write(line []byte) (int, error) {
	index := w.index.Load()
	if index == nil {
		return w.next.Write(line)
	}
	if _, err := w.next.Write(index.mask(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

const (
	minSecretBytes = 6  // a shorter secret is a word that lines contain for other reasons
	maxPrefixBytes = 12 // by which secrets are found
	// maxSamePrefix is how many secrets with the same beginning are compared. If there are more, such as
	// tokens with the same header, all that begins so is masked up to its end.
	maxSamePrefix = 16
	maxForms      = 100_000
	// maxFormsBytes is the length of a secret that is masked in all its forms. Longer ones, such as the keys
	// in the kubeconfigs of hundreds of accounts, are masked as they are: copies would take too much memory.
	maxFormsBytes = 1024
)

// secretIndex finds secrets by their first bytes.
type secretIndex struct {
	forms    map[string][]string      // by prefix; the longest first
	starts   [1 << 16]bool            // the first two bytes of all prefixes, because most places of a line begin none
	prefixes [maxPrefixBytes + 1]bool // which lengths prefixes have
}

func newSecretIndex(values []string) *secretIndex {
	x, count := &secretIndex{forms: map[string][]string{}}, 0
	slices.Sort(values) // a value that two configurations have is parsed once
	for _, value := range slices.Compact(values) {
		for _, part := range secretParts(value) {
			for _, form := range formsOf(part) {
				if count < maxForms && x.add(form) {
					count++
				}
			}
		}
	}
	for _, forms := range x.forms {
		slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	}
	return x
}

// add reports whether the form is new.
func (x *secretIndex) add(form string) bool {
	if len(form) < minSecretBytes {
		return false
	}
	prefix := form[:min(len(form), maxPrefixBytes)]
	if slices.Contains(x.forms[prefix], form) || len(x.forms[prefix]) > maxSamePrefix {
		return false
	}
	x.forms[prefix] = append(x.forms[prefix], form)
	x.starts[int(form[0])<<8|int(form[1])] = true
	x.prefixes[len(prefix)] = true
	return true
}

// secretName matches names whose values are secrets.
var secretName = regexp.MustCompile(`(?i)(token|pass|secret|key|data|cred|auth)[^:=]*$`)

// pemLine matches a line of the body of a certificate or a key.
var pemLine = regexp.MustCompile(`^[A-Za-z0-9+/=]{40,}$`)

// secretParts returns the parts of a value that are secret by themselves: a file has addresses and
// names, too, which must stay readable in the log.
func secretParts(value string) []string {
	value = strings.TrimSpace(value)
	parts := documentParts(value)
	if !strings.Contains(value, "\n") {
		return append(parts, value)
	}
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if pemLine.MatchString(line) {
			parts = append(parts, line)
			continue
		}
		for _, separator := range []string{": ", "=", ":"} {
			if name, text, found := strings.Cut(line, separator); found && secretName.MatchString(strings.Trim(name, `"'`)) {
				parts = append(parts, strings.Trim(strings.TrimSuffix(strings.TrimSpace(text), ","), `"'`))
				break
			}
		}
	}
	return parts
}

// formsOf returns how a secret may be written in a line. Errors quote what they got, and the line quotes
// the error, so a secret may be escaped twice.
func formsOf(secret string) []string {
	if len(secret) > maxFormsBytes {
		return []string{secret}
	}
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))}
	once := escaped(secret)
	forms = append(forms, once...)
	for _, form := range once {
		forms = append(forms, escaped(form)...)
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// escaped returns a text as Go and JSON quote it, without the quotes.
func escaped(text string) []string {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text can always be encoded
	html, _ := json.Marshal(text)
	forms := []string{strconv.Quote(text), strings.TrimSpace(plain.String()), string(html)}
	for i, form := range forms {
		forms[i] = form[1 : len(form)-1]
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// mask returns a line without secrets. It returns the line itself if it has none.
func (x *secretIndex) mask(line []byte) []byte {
	var masked []byte
	kept := 0 // up to where the line is in masked
	for i := 0; i+minSecretBytes <= len(line); i++ {
		if !x.starts[int(line[i])<<8|int(line[i+1])] {
			continue
		}
		if n := x.lengthAt(line[i:]); n > 0 {
			masked = append(append(masked, line[kept:i]...), maskedPlace...)
			kept = i + n
			i = kept - 1
		}
	}
	if masked == nil {
		return line
	}
	return append(masked, line[kept:]...)
}

// lengthAt returns the length of the longest secret with which text begins; 0 for none.
func (x *secretIndex) lengthAt(text []byte) int {
	for n := min(len(text), maxPrefixBytes); n >= minSecretBytes; n-- {
		if !x.prefixes[n] {
			continue
		}
		forms := x.forms[string(text[:n])]
		if len(forms) > maxSamePrefix {
			return wordLength(text)
		}
		for _, form := range forms {
			if len(text) >= len(form) && string(text[:len(form)]) == form {
				return len(form)
			}
		}
	}
	return 0
}

// wordLength returns the length of the text up to a space or a quote.
func wordLength(text []byte) int {
	end := slices.IndexFunc(text, func(b byte) bool { return b <= ' ' || b == '"' || b == '\'' || b == '\\' })
	if end < 0 {
		return len(text)
	}
	return max(end, minSecretBytes)
}
