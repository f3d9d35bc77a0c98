package configfile

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// mask is printed instead of a secret.
const mask = "********"

// Sensitive is implemented by types whose text must not be quoted in messages.
type Sensitive interface{ Hidden() }

// Secret is a password or a token. It is printed, logged and encoded as a mask; Reveal returns the
// text. The text is behind a pointer because fmt does not call methods of values in unexported
// fields and would print a string. The zero value is empty.
type Secret struct{ text *string }

// NewSecret returns a Secret with the given text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Hidden keeps the text out of messages.
func (Secret) Hidden() {}

// String returns a mask, or "" for an empty secret.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return mask
}

// Format prints the mask for every verb, including %q, %x and %#v.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the text, including its white space.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// ExactText is a text whose spaces at both ends stay. Those of other texts are removed, because they
// come from quotes and from files.
type ExactText string

// UnmarshalText keeps the text as it is.
func (e *ExactText) UnmarshalText(text []byte) error {
	*e = ExactText(text)
	return nil
}

// Bytes is a size in bytes. It is written as a number or with a unit: 8MiB, 256Mi, 4MB. As in
// Spring, units are powers of 1024 with or without an i.
type Bytes int64

var units = []struct {
	letter string
	shift  uint
}{{"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}}

// UnmarshalText parses a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	const expected = expectedError("a size like 8MiB or a number of bytes")
	s := strings.ToLower(strings.TrimSpace(string(text)))
	s = strings.TrimSuffix(strings.TrimSuffix(s, "b"), "i")
	shift := uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.letter); ok {
			s, shift = rest, u.shift
			break
		}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return expected
	}
	*b = Bytes(n << shift)
	return nil
}

// String returns the size in the largest unit that gives a whole number.
func (b Bytes) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if size := Bytes(1) << units[i].shift; b >= size && b%size == 0 {
			return strconv.FormatInt(int64(b/size), 10) + strings.ToUpper(units[i].letter) + "iB"
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// parseDuration parses a duration, written as 10m, 1h30m, 14d, 2w, PT10M or a number of seconds.
func parseDuration(text string) (time.Duration, error) {
	s := strings.ToLower(text)
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		s = strconv.FormatInt(n, 10) + "s"
	}
	for unit, hours := range map[string]int64{"d": 24, "w": 7 * 24} {
		number, hasUnit := strings.CutSuffix(strings.TrimPrefix(s, "p"), unit)
		if n, err := strconv.ParseInt(number, 10, 16); err == nil && hasUnit {
			s = strconv.FormatInt(n*hours, 10) + "h"
		}
	}
	v, err := time.ParseDuration(strings.TrimPrefix(s, "pt")) // as in ISO 8601
	if err != nil || v < 0 {
		return 0, expectedError("a duration like 10m or a number of seconds")
	}
	return v, nil
}
