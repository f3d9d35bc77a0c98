package sqldb

import (
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// The lengths in bytes that the narrowest database stores. Kubernetes itself limits nearly all
// names to 253.
const (
	MaxAccountName = 255
	MaxName        = 512
	MaxNamespace   = 63
	MaxVersion     = 255
	MaxUID         = 253
	MaxApplication = 255
	MaxCluster     = 320 // kinds and names of Kubernetes have 265 at most
	MaxMessage     = 4096
	MaxID          = 26 // of a ULID
	MaxShort       = 255
	MaxWord        = 63
)

// IsValidText reports whether every database stores a text unchanged.
func IsValidText(s string, maxBytes int) bool {
	return len(s) <= maxBytes && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// Sanitize makes a text of unknown origin fit for a column: valid UTF-8 without NUL, because
// PostgreSQL rejects both, and at most maxBytes long.
func Sanitize(s string, maxBytes int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "")
	}
	return s
}

// CheckID returns an error for a text that is not a ULID.
func CheckID(what, id string) error {
	if id == "" || len(id) > MaxID || !IsValidText(id, MaxID) {
		return vedette.Errorf(vedette.Invalid, "the id %.60q of the %s is not a ULID", id, what)
	}
	return nil
}

// BoolToInt returns a bool as it is stored.
func BoolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Limits of Kubernetes. The name of a label is a DNS name, a slash and 63 characters.
const (
	MaxLabelName  = 317
	MaxLabelValue = 63
)

// Limits of the rows of a page.
const (
	DefaultLimit = 500
	MaxLimit     = 5000
)
