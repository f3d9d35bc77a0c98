package operations

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// Digester computes what the history keeps of an operation with an id from its caller, so that an
// operation that is sent again is known from another one.
//
// A digest is of the form "1:PLAIN:KEY:DOCUMENTS". PLAIN is of everything but the documents: user, account,
// verb, target, options. Whoever reads the database reads most of it anyway. DOCUMENTS is of manifests and patches,
// which may have Secrets: it needs a key that is not in the database, without which no guess can be checked. KEY
// names the key. Operations without documents have neither.
type Digester struct {
	key   []byte
	keyID string
}

const digestVersion = "1"

// NewDigester returns one with a key. Without a key it makes one, which ends with the process.
func NewDigester(key []byte) Digester {
	if len(key) == 0 {
		key = []byte(rand.Text())
	}
	return Digester{key, hex.EncodeToString(macOf(key, "key"))[:16]}
}

func macOf(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // hashing does not fail
	}
	return h.Sum(nil)
}

// Of returns the digest of an operation.
func (d Digester) Of(op vedette.Operation) string {
	plain, documents := splitDocuments(op.Args)
	sum := macOf(nil, digestUser(op.Requester), string(op.Account), string(op.Args.Verb()), strconv.FormatBool(op.DryRun), plain)
	parts := []string{digestVersion, hex.EncodeToString(sum), "", ""}
	if len(documents) > 0 {
		// The plain digest is part of it, so that equal documents of two operations do not look equal.
		parts[2], parts[3] = d.keyID, hex.EncodeToString(macOf(d.key, append([]string{string(op.ID), parts[1]}, documents...)...))
	}
	return strings.Join(parts, ":")
}

// digestUser returns who an operation with an id is of. A proven name is a part of it, so that another one who claims the
// same user does not get its outcome.
func digestUser(q vedette.Requester) string {
	if q.Proven == "" {
		return q.Claimed
	}
	return q.Claimed + "\x00" + q.Proven
}

// splitDocuments returns the arguments without their documents, and the documents.
func splitDocuments(args vedette.Args) (plain string, documents []string) {
	without := reflect.New(reflect.TypeOf(args)).Elem()
	without.Set(reflect.ValueOf(args))
	for i := range without.NumField() {
		if field := without.Field(i); field.Type() == reflect.TypeFor[[]byte]() && !field.IsZero() {
			documents = append(documents, without.Type().Field(i).Name, string(field.Bytes()))
			field.SetZero()
		}
	}
	raw, err := json.Marshal(without.Interface())
	if err != nil { // the arguments were decoded from JSON, so they can be encoded
		panic(err)
	}
	return string(raw), documents
}

// sameness is what two digests tell.
type sameness int

const (
	isOther sameness = iota
	isSame
	isUnknown // all but the documents is the same, and these were recorded with another key
)

func compareDigests(recorded, now string) sameness {
	if hmac.Equal([]byte(recorded), []byte(now)) {
		return isSame
	}
	x, y := strings.Split(recorded, ":"), strings.Split(now, ":")
	if len(x) == len(y) && x[0] == y[0] && x[1] == y[1] && x[2] != "" && y[2] != "" && x[2] != y[2] {
		return isUnknown
	}
	return isOther
}
