package peer

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/rest"
)

// A request over REST proves which process sends it by two headers. The called server gives a challenge with status 401:
//
//	WWW-Authenticate: Vedette-Server challenge="…"
//
// The caller sends its request again with a proof of its key, which is that of its row in the table of servers:
//
//	Authorization: Vedette-Server PROOF.SIGNATURE
//
// A challenge is good for one request to the process that gave it, within challengeAge by that process' own clock. So a request cannot be
// sent again, neither to it, nor to another server, nor after a restart, and clocks of different machines are never compared.
const proofScheme = "Vedette-Server"

const (
	challengeAge = 10 * time.Second
	// maxUsed bounds the challenges that are remembered because they were used. Only servers use any.
	maxUsed = 4096
	// maxProofBytes is more than a proof has.
	maxProofBytes = 4 << 10
	challengeSize = 8 + 16 + macSize
	macSize       = 16
)

// challenges gives challenges, and knows which were used. Those that were not used take no memory.
type challenges struct {
	secret [32]byte
	start  time.Time

	mu   sync.Mutex
	used map[[challengeSize]byte]time.Time // when they were given
}

func newChallenges() *challenges {
	c := &challenges{start: time.Now(), used: map[[challengeSize]byte]time.Time{}}
	_, _ = rand.Read(c.secret[:]) // it never fails
	return c
}

// strictBase64 has one text for each value, so that a challenge has no second spelling.
var strictBase64 = base64.RawURLEncoding.Strict()

func (c *challenges) issue() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Since(c.start)))
	b = append(b, make([]byte, 16)...)
	_, _ = rand.Read(b[8:]) // it never fails
	return strictBase64.EncodeToString(append(b, c.mac(b)...))
}

func (c *challenges) mac(b []byte) []byte {
	h := hmac.New(sha256.New, c.secret[:])
	_, _ = h.Write(b) // it never fails
	return h.Sum(nil)[:macSize]
}

// given returns when this process gave a challenge.
func (c *challenges) given(text string) (time.Time, [challengeSize]byte, error) {
	raw, err := strictBase64.DecodeString(text)
	if err != nil || len(raw) != challengeSize || !hmac.Equal(raw[24:], c.mac(raw[:24])) {
		return time.Time{}, [challengeSize]byte{}, errors.New("its challenge is not one of this process: it was given by another server, or before a restart")
	}
	at := c.start.Add(time.Duration(binary.BigEndian.Uint64(raw)))
	if age := time.Since(at); age > challengeAge {
		return time.Time{}, [challengeSize]byte{}, fmt.Errorf("its challenge was given %s ago, and is good for %s",
			age.Round(time.Millisecond), challengeAge)
	}
	return at, [challengeSize]byte(raw), nil
}

// use marks a challenge as used. It fails if it was before.
func (c *challenges) use(challenge [challengeSize]byte, given time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isUsed := c.used[challenge]; isUsed {
		return errors.New("its challenge was used before")
	}
	if len(c.used) >= maxUsed {
		for known, at := range c.used {
			if time.Since(at) > challengeAge {
				delete(c.used, known)
			}
		}
	}
	if len(c.used) >= maxUsed {
		return vedette.Errorf(vedette.Unavailable, "other servers have sent more than %d requests within %s: try again", maxUsed, challengeAge)
	}
	c.used[challenge] = given
	return nil
}

// proof is what a caller signs.
type proof struct {
	From      vedette.ServerID `json:"from"`
	To        vedette.ServerID `json:"to"`
	Challenge string           `json:"challenge"`
	Digest    string           `json:"digest"` // of the body: SHA-256, hexadecimal
	Key       []byte           `json:"key"`    // the public one
}

// signed returns the bytes that the signature of a proof is made of. What TLS signs with the same key begins otherwise.
func signed(method, path string, encoded []byte) []byte {
	return fmt.Appendf(nil, "vedette: a request of one server to another\n%s %s\n%s", method, path, encoded)
}

// prove returns the Authorization of a request.
func (i *Identity) prove(method, path string, p proof) (string, error) {
	private, ok := i.certificate.PrivateKey.(ed25519.PrivateKey)
	if !ok {
		return "", errors.New("the key of this server cannot sign")
	}
	p.Key, _ = private.Public().(ed25519.PublicKey)
	encoded, err := rest.Encode(p)
	if err != nil {
		return "", err
	}
	signature := ed25519.Sign(private, signed(method, path, encoded))
	return proofScheme + " " + strictBase64.EncodeToString(encoded) + "." + strictBase64.EncodeToString(signature), nil
}

// keyOfPublic returns what the table of servers has of a public key.
func keyOfPublic(key ed25519.PublicKey) ([32]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return [32]byte{}, fmt.Errorf("encode a public key: %w", err)
	}
	return sha256.Sum256(der), nil
}

// UnprovenError is the error of a request whose sender has not proved to be a server of this installation.
type UnprovenError struct {
	reason    string
	challenge string
}

func (e *UnprovenError) Error() string {
	return "only servers that share the database may call this, and prove it with the key of their process; other credentials mean nothing here: " + e.reason
}

// Challenge returns the value of the header WWW-Authenticate, with which the sender can try again.
func (e *UnprovenError) Challenge() string { return proofScheme + ` challenge="` + e.challenge + `"` }

// proven is a request whose sender is known.
type proven struct {
	from   Peer
	given  time.Time // when this process gave the challenge
	digest string
}

// verify returns who sends a request. The body need not be read for that.
func (c *challenges) verify(cfg *Config, path string, r *http.Request) (proven, error) {
	found, err := c.check(cfg, path, r)
	if err == nil || vedette.KindOf(err) != "" {
		return found, err
	}
	return proven{}, &UnprovenError{err.Error(), c.issue()}
}

func (c *challenges) check(cfg *Config, path string, r *http.Request) (proven, error) {
	values := r.Header.Values("Authorization")
	text, isProof := strings.CutPrefix(strings.Join(values, ","), proofScheme+" ")
	if !isProof {
		return proven{}, errors.New("the request has no proof")
	}
	if len(text) > maxProofBytes {
		return proven{}, errors.New("the proof is too long")
	}
	first, last, _ := strings.Cut(text, ".")
	encoded, err := strictBase64.DecodeString(first)
	signature, signatureErr := strictBase64.DecodeString(last)
	var p proof
	isProof = err == nil && signatureErr == nil && exactjson.Unmarshal(encoded, &p, exactjson.Limits{}) == nil
	if !isProof || len(p.Key) != ed25519.PublicKeySize {
		return proven{}, errors.New("the proof cannot be read")
	}
	from, runs := cfg.Members.Peer(p.From)
	key, err := keyOfPublic(p.Key)
	switch {
	case err != nil || !runs || key != from.Key || !ed25519.Verify(p.Key, signed(r.Method, path, encoded), signature):
		return proven{}, errors.New("no server with this name and key runs, or the proof is of another request")
	case p.To != cfg.Self || p.From == cfg.Self:
		return proven{}, fmt.Errorf("the proof is of a request from server %.253q to server %.253q", p.From, p.To)
	}
	given, challenge, err := c.given(p.Challenge)
	if err == nil {
		err = c.use(challenge, given)
	}
	return proven{from, given, p.Digest}, err
}

// readBody reads the body of a proven request.
func (p proven) readBody(w http.ResponseWriter, r *http.Request, name string, maxBytes int64) ([]byte, error) {
	body, err := rest.ReadBody(w, r, name, maxBytes)
	if err != nil {
		return nil, err
	}
	if digestOf(body) != p.digest {
		return nil, vedette.Errorf(vedette.Denied, "the %s is not the one that server %s has signed", name, p.from.ID)
	}
	return body, nil
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
