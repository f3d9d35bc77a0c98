package configfile

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// mask is what is shown in place of a secret.
const mask = "********"

// Sensitive marks types whose text must not be quoted in a message.
type Sensitive interface{ Hidden() }

// Secret is a password or a token. However it is printed, logged or encoded,
// only a mask comes out; Reveal gives the text. The text is behind a pointer
// because fmt asks no method of a value in an unexported field, and would print
// a string there. The zero value is empty.
type Secret struct{ text *string }

// NewSecret hides a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text itself.
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

// Format prints the mask for every verb: %q, %x and %#v too.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue logs the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText encodes the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as it is, white space included.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// Bytes is a size. It is written as a number of bytes or with a unit: 8MiB,
// 256Mi, 4MB. Units are powers of 1024, as in Spring, whether or not there is
// an i in them.
type Bytes int64

var units = []struct {
	letter string
	shift  uint
}{{"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	const expected = expectedError("a size such as 8MiB or a number of bytes")
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

// String returns the size in the biggest unit that leaves a whole number.
func (b Bytes) String() string {
	for i := len(units) - 1; i >= 0; i-- {
		if size := Bytes(1) << units[i].shift; b >= size && b%size == 0 {
			return strconv.FormatInt(int64(b/size), 10) + strings.ToUpper(units[i].letter) + "iB"
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Duration is a span of time, written as 10m, 1h30m or a number of seconds.
type Duration time.Duration

// UnmarshalText reads a span of time.
func (d *Duration) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		s = strconv.FormatInt(n, 10) + "s"
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return expectedError("a span of time such as 10m, or a number of seconds")
	}
	*d = Duration(v)
	return nil
}

// String returns "10m0s".
func (d Duration) String() string { return time.Duration(d).String() }
