package store

import (
	"strings"
	"unicode/utf8"

	"github.com/vedette-io/vedette"
)

// The lengths in bytes that the narrowest database stores. Kubernetes itself limits nearly all
// names to 253.
const (
	maxAccountName = 255
	maxName        = 512
	maxNamespace   = 63
	maxVersion     = 255
	maxUID         = 253
	maxApplication = 255
	maxCluster     = 320 // kinds and names of Kubernetes have 265 at most
	maxMessage     = 4096
	maxID          = 26 // of a ULID
	maxShort       = 255
	maxWord        = 63
)

// isValidText reports whether every database stores a text unchanged.
func isValidText(s string, maxBytes int) bool {
	return len(s) <= maxBytes && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// sanitize makes a text of unknown origin fit for a column: valid UTF-8 without NUL, because
// PostgreSQL rejects both, and at most maxBytes long.
func sanitize(s string, maxBytes int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "")
	}
	return s
}

// checkKey returns an error if the store cannot keep an object with that key.
func checkKey(key vedette.Key) error {
	if !isValidText(key.Name, maxName) || key.Name == "" || !isValidText(key.Namespace, maxNamespace) {
		return dataErrorf("the name of %.600q cannot be stored: it must have 1 to %d bytes of UTF-8 and no NUL, and its namespace %d at most",
			key.String(), maxName, maxNamespace)
	}
	return nil
}

func checkObject(o *vedette.Object) error {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if !isValidText(o.ResourceVersion, maxVersion) || len(o.UID) > maxUID {
		return dataErrorf("the uid or resourceVersion of %s is longer than %d bytes", o.Key, maxUID)
	}
	return nil
}

// checkMarks rejects marks that no API server sends. They would be kept in memory, and a database that
// rejects them would be asked again for ever.
func checkMarks(feeds []FeedUpdate) error {
	for i := range feeds {
		u := &feeds[i]
		if u.Mark != nil && !isValidText(string(*u.Mark), maxVersion) || !isValidText(string(u.SnapshotMark), maxVersion) {
			return vedette.Errorf(vedette.Invalid, "the resourceVersion of the feed %.300s cannot be stored: it must have at most %d bytes of UTF-8 and no NUL",
				u.Feed.String(), maxVersion)
		}
	}
	return nil
}

func checkID(what, id string) error {
	if id == "" || len(id) > maxID || !isValidText(id, maxID) {
		return vedette.Errorf(vedette.Invalid, "the id %.60q of the %s is not a ULID", id, what)
	}
	return nil
}
