package web

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// AsGson rewrites a manifest the way Clouddriver shows it. Clouddriver reads
// manifests with Gson into a map and writes them with Jackson: every number
// becomes a double ("3.0"), and members that are null are left out. Numbers must
// look like this because Orca casts those below status to Double, and fails on
// "3". Invalid JSON is returned unchanged; encoding an answer with it fails.
// docs/decisions/0064 says why jsontext does it.
func AsGson(manifest []byte) []byte { return new(gsonCopier).rewrite(manifest) }

// AsManifest is AsGson for the manifest of a view. It always has annotations, because
// Clouddriver adds them when it looks for a moniker in them.
func AsManifest(manifest []byte) []byte {
	g := gsonCopier{addAnnotations: true}
	return g.rewrite(manifest)
}

// WithoutNulls leaves out members that are null, as Clouddriver's typed objects do.
func WithoutNulls(raw []byte) []byte {
	g := gsonCopier{keepNumbers: true}
	return g.rewrite(raw)
}

func (g *gsonCopier) rewrite(manifest []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(manifest)+len(manifest)/16))
	g.in = jsontext.NewDecoder(bytes.NewBuffer(manifest), lenient...)
	g.out = jsontext.NewEncoder(out, append(lenient, jsontext.PreserveRawStrings(true))...)
	for {
		err := g.copyToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
		}
		if err != nil {
			return manifest
		}
	}
}

// lenient accepts what encoding/json accepts, because API servers are written with it.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

type gsonCopier struct {
	in      *jsontext.Decoder
	out     *jsontext.Encoder
	scratch []byte

	keepNumbers    bool
	addAnnotations bool // to metadata without them
	inMetadata     bool // of the whole object
	hasAnnotations bool
}

// copyToken copies the next token, or the next member if its value is null.
func (g *gsonCopier) copyToken() error {
	switch g.in.PeekKind() {
	case '0':
		return g.copyNumber()
	case '"':
		return g.copyString()
	case '}':
		if err := g.completeMetadata(); err != nil {
			return err
		}
	}
	token, err := g.in.ReadToken()
	if err != nil {
		return err
	}
	return g.out.WriteToken(token)
}

// copyString copies a string, unless it is the name of a member that is null.
func (g *gsonCopier) copyString() error {
	kind, length := g.in.StackIndex(g.in.StackDepth())
	text, err := g.in.ReadValue()
	if err != nil {
		return err
	}
	if isName := kind == '{' && length%2 == 0; isName {
		g.scratch = append(g.scratch[:0], text...) // peeking invalidates text
		text = g.scratch
		if g.in.PeekKind() == 'n' {
			return g.in.SkipValue()
		}
		g.noteName(text)
	}
	return g.out.WriteValue(text)
}

// noteName keeps track of where the metadata begin, and whether they have annotations.
func (g *gsonCopier) noteName(quoted []byte) {
	switch g.in.StackDepth() {
	case 1:
		g.inMetadata = string(quoted) == `"metadata"`
	case 2:
		g.hasAnnotations = g.hasAnnotations || g.inMetadata && string(quoted) == `"annotations"`
	}
}

// completeMetadata adds annotations at the end of metadata without them.
func (g *gsonCopier) completeMetadata() error {
	if !g.addAnnotations || g.in.StackDepth() != 2 || !g.inMetadata || g.hasAnnotations {
		return nil
	}
	for _, token := range []jsontext.Token{jsontext.String("annotations"), jsontext.BeginObject, jsontext.EndObject} {
		if err := g.out.WriteToken(token); err != nil {
			return err
		}
	}
	return nil
}

func (g *gsonCopier) copyNumber() error {
	text, err := g.in.ReadValue()
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || g.keepNumbers { // too large for a double
		return g.out.WriteValue(text)
	}
	g.scratch = appendDouble(g.scratch[:0], f)
	return g.out.WriteValue(g.scratch)
}

// appendDouble writes a number as Java does: always with a decimal point, and
// with an exponent from ten million up and below a thousandth.
func appendDouble(b []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		text := strconv.FormatFloat(f, 'f', -1, 64)
		b = append(b, text...)
		if !strings.Contains(text, ".") {
			b = append(b, ".0"...)
		}
		return b
	default:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		b = append(b, mantissa...)
		if !strings.Contains(mantissa, ".") {
			b = append(b, ".0"...)
		}
		n, _ := strconv.Atoi(exponent) // written by FormatFloat a line above
		return strconv.AppendInt(append(b, 'E'), int64(n), 10)
	}
}
