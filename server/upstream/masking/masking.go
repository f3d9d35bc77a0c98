// Package masking hides the credentials that this server adds to requests in answers that repeat them.
package masking

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/mask"
)

// minCredentialBytes is how long a credential must be to be masked in an error. Shorter texts, and
// numbers, are in answers for other reasons, too, and a masked number would not be JSON.
const minCredentialBytes = 6

// minTaskCredentialBytes is how long a credential must be to be masked in a task. A task contains
// names and annotations that pipelines use, and a short password may be part of one.
const minTaskCredentialBytes = 16

// Credentials finds what this server has added to requests in answers that repeat it, as error pages
// and gateways do. Users of Spinnaker may not see it.
//
// Headers with a configured name are removed, and configured values are masked in all others. Trailers and informational
// responses are not passed on. Bodies of redirects and errors are masked while they stream; only what may be the beginning of
// a credential is held back. A compressed error is decoded for that, so the server asks for no encoding but gzip, and rejects
// an error in another one. Tasks are masked as a whole, because other users can read them, and there also the credentials of
// the caller. Headers that tell who asks, from where or for what are not credentials: with "X-Spinnaker-User: spinnaker",
// masking would change every annotation of Spinnaker.
//
// Not masked are bodies of successes, which are large, are data, and may be merged, and values that the upstream transforms.
// Who gets credentials can always pass them on, so this protects from accidents, and not from an upstream that is an
// attacker.
type Credentials struct {
	headers []string   // their names
	forms   [][]byte   // their values, as they may be written in an answer; longest first
	starts  *[256]bool // With which bytes they begin
}

// New returns the credentials that are sent: a user with a password, unless the user is empty, and values of headers.
func New(username string, password configfile.Secret, headers map[string]configfile.Secret) Credentials {
	c := Credentials{starts: &[256]bool{}}
	if username != "" {
		c = c.With(password.Reveal()).With(base64.StdEncoding.EncodeToString([]byte(username + ":" + password.Reveal())))
		c.headers = append(c.headers, "Authorization")
	}
	for name, value := range headers {
		if !isCredential(name) {
			continue
		}
		c = c.With(value.Reveal())
		c.headers = append(c.headers, name)
	}
	return c
}

// isCredential reports whether a header may hold a credential. Those that tell only who asks, from
// where, or for what have values that occur in answers for other reasons.
func isCredential(header string) bool {
	name := strings.ToLower(header)
	for _, prefix := range []string{"accept", "host", "user-agent", "x-forwarded-", "x-spinnaker-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}

// InTasks returns the credentials that are masked in tasks.
func (c Credentials) InTasks() Credentials {
	tasks := Credentials{headers: c.headers, starts: &[256]bool{}}
	for _, form := range c.forms {
		if len(form) >= minTaskCredentialBytes {
			tasks.forms = append(tasks.forms, form)
			tasks.starts[form[0]] = true
		}
	}
	return tasks
}

// With returns the credentials with one more, which may begin with a scheme, as in "Bearer token".
func (c Credentials) With(value string) Credentials {
	forms := slices.Clone(c.forms)
	_, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	for _, text := range []string{value, strings.TrimSpace(token)} {
		if len(text) >= minCredentialBytes && strings.Trim(text, "0123456789") != "" {
			forms = append(forms, formsOf(text)...)
		}
	}
	slices.SortFunc(forms, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	c.forms, c.starts = slices.CompactFunc(forms, bytes.Equal), &[256]bool{}
	for _, form := range c.forms {
		c.starts[form[0]] = true
	}
	return c
}

// formsOf returns a text as JSON, HTML and URLs contain it.
func formsOf(text string) [][]byte {
	quoted, err := json.Marshal(text)
	if err != nil { // any string can be encoded
		panic(err)
	}
	escaped := string(quoted[1 : len(quoted)-1])
	forms := [][]byte{}
	quotesEscaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	for _, form := range []string{text, escaped, quotesEscaped, strings.ReplaceAll(escaped, "/", `\/`),
		strings.ReplaceAll(escaped, "=", `\u003d`), html.EscapeString(text), url.QueryEscape(text), url.PathEscape(text)} {
		forms = append(forms, []byte(form))
	}
	return forms
}

// Hide removes the credentials from an answer: from its header, and from its body if it is not a
// success. Bodies still stream. Those of successes are not searched: they are large, and are data.
func (c Credentials) Hide(r *http.Response) (*http.Response, error) {
	if len(c.headers) == 0 {
		return r, nil
	}
	hidden := *r // without trailers, which the original gets when its body ends
	hidden.Trailer = nil
	for _, name := range append([]string{"Trailer"}, c.headers...) {
		hidden.Header.Del(name)
	}
	for name, values := range hidden.Header {
		if c.occursIn(name) {
			delete(hidden.Header, name)
			continue
		}
		for i, value := range values {
			values[i] = string(c.Mask([]byte(value)))
		}
	}
	if r.StatusCode < http.StatusMultipleChoices {
		return &hidden, nil
	}
	body, err := decoded(&hidden)
	if err != nil {
		return nil, err
	}
	hidden.Body, hidden.ContentLength = &maskedBody{c, body, r.Body, nil, nil, nil}, -1
	hidden.Header.Del("Content-Length")
	return &hidden, nil
}

func (c Credentials) occursIn(text string) bool {
	return slices.ContainsFunc(c.forms, func(form []byte) bool { return bytes.Contains(bytes.ToLower([]byte(text)), bytes.ToLower(form)) })
}

// decoded returns the body of an answer without its encoding.
func decoded(r *http.Response) (io.Reader, error) {
	encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ","))
	r.Header.Del("Content-Encoding")
	switch encoding {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
		return &gzipBody{body: r.Body}, nil
	}
	return nil, fmt.Errorf("the upstream Clouddriver encodes an answer as %.40q, for which nobody has asked", encoding)
}

// gzipBody begins to decode when it is read, so that an answer need not wait for its body.
type gzipBody struct {
	body io.Reader
	gzip *gzip.Reader
}

func (b *gzipBody) Read(p []byte) (int, error) {
	if b.gzip == nil {
		reader, err := gzip.NewReader(b.body)
		if errors.Is(err, io.EOF) { // the answer to a HEAD request has no body
			return 0, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("decode an answer of the upstream Clouddriver: %w", err)
		}
		b.gzip = reader
	}
	return b.gzip.Read(p)
}

// Mask replaces the credentials in a text.
func (c Credentials) Mask(text []byte) []byte {
	masked, _ := c.split(text, true)
	return masked
}

// split masks the beginning of a text. It returns the rest, which may be the beginning of a credential,
// unless the text is complete.
func (c Credentials) split(text []byte, complete bool) (masked, rest []byte) {
	done := 0
	for i := 0; i < len(text); i++ {
		if !c.starts[text[i]] {
			continue
		}
		length, isPartial := c.match(text[i:])
		switch {
		case isPartial && !complete:
			return append(masked, text[done:i]...), text[i:]
		case length > 0:
			masked = append(append(masked, text[done:i]...), mask.Placeholder...)
			done = i + length
			i = done - 1
		}
	}
	return append(masked, text[done:]...), nil
}

// match returns the length of the credential with which a text begins, or 0. The text is partial if a
// longer credential may begin with it.
func (c Credentials) match(text []byte) (length int, isPartial bool) {
	for _, form := range c.forms { // longest first
		if bytes.HasPrefix(text, form) {
			return len(form), isPartial
		}
		isPartial = isPartial || bytes.HasPrefix(form, text)
	}
	return 0, isPartial
}

// maskedBody is a body without credentials. It holds back at most the beginning of one.
type maskedBody struct {
	Credentials
	body   io.Reader
	closer io.Closer
	masked []byte // not yet read
	rest   []byte // not yet masked
	err    error  // after masked and rest
}

func (b *maskedBody) Read(p []byte) (int, error) {
	for len(b.masked) == 0 && b.err == nil {
		chunk := make([]byte, max(len(p), 1<<10))
		var n int
		n, b.err = b.body.Read(chunk)
		b.masked, b.rest = b.split(append(b.rest, chunk[:n]...), b.err != nil)
	}
	n := copy(p, b.masked)
	b.masked = b.masked[n:]
	if n == 0 {
		return 0, b.err
	}
	return n, nil
}

// Close releases the connection.
func (b *maskedBody) Close() error { return b.closer.Close() }
