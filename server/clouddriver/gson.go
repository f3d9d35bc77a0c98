package clouddriver

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// asGson rewrites a manifest as Clouddriver shows it, which has read it with
// Gson into a map and writes it with Jackson: every number has become a double
// ("3.0"), and members that are null are left out. Orca casts numbers below
// status to Double and fails on "3". The manifest must be valid JSON.
func asGson(manifest []byte) []byte {
	g := gson{in: manifest, out: make([]byte, 0, len(manifest)+len(manifest)/16)}
	g.copyValue()
	return g.out
}

// gson copies valid JSON from in to out.
type gson struct {
	in  []byte
	pos int
	out []byte
}

func (g *gson) skipSpace() {
	for g.pos < len(g.in) && (g.in[g.pos] == ' ' || g.in[g.pos] == '\t' || g.in[g.pos] == '\n' || g.in[g.pos] == '\r') {
		g.pos++
	}
}

// peek skips space and returns the byte that follows, 0 at the end.
func (g *gson) peek() byte {
	g.skipSpace()
	if g.pos < len(g.in) {
		return g.in[g.pos]
	}
	return 0
}

func (g *gson) copyValue() {
	switch c := g.peek(); {
	case c == '{':
		g.copyObject()
	case c == '[':
		g.copyArray()
	case c == '"':
		g.copyString()
	case c == '-' || c >= '0' && c <= '9':
		g.copyNumber()
	default:
		g.copyLiteral()
	}
}

func (g *gson) copyObject() {
	g.copyBytes(1)
	first := true
	for {
		switch g.peek() {
		case ',':
			g.pos++
			continue
		case '"':
		default: // "}", or the end of what is no JSON
			g.copyBytes(1)
			return
		}
		before := len(g.out)
		if !first {
			g.out = append(g.out, ',')
		}
		g.copyString()
		if g.peek() == ':' {
			g.copyBytes(1)
		}
		if g.peek() == 'n' { // null
			g.out = g.out[:before]
			g.skipLiteral()
			continue
		}
		first = false
		g.copyValue()
	}
}

func (g *gson) copyArray() {
	g.copyBytes(1)
	for {
		switch g.peek() {
		case ',':
			g.copyBytes(1)
		case ']':
			g.copyBytes(1)
			return
		case 0:
			return
		default:
			before := g.pos
			g.copyValue()
			if g.pos == before {
				return // what is no JSON
			}
		}
	}
}

func (g *gson) copyBytes(n int) {
	end := min(g.pos+n, len(g.in))
	g.out = append(g.out, g.in[g.pos:end]...)
	g.pos = end
}

// copyString copies a string as it is written.
func (g *gson) copyString() {
	end := g.pos + 1
	for end < len(g.in) && g.in[end] != '"' {
		if g.in[end] == '\\' {
			end++
		}
		end++
	}
	g.copyBytes(end + 1 - g.pos)
}

func (g *gson) copyLiteral() {
	from := g.pos
	g.skipLiteral()
	g.out = append(g.out, g.in[from:g.pos]...)
}

func (g *gson) skipLiteral() {
	for g.pos < len(g.in) && g.in[g.pos] >= 'a' && g.in[g.pos] <= 'z' {
		g.pos++
	}
}

func (g *gson) copyNumber() {
	rest := g.in[g.pos:]
	end := bytes.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("+-.eE0123456789", r) })
	if end < 0 {
		end = len(rest)
	}
	g.pos += end
	f, err := strconv.ParseFloat(string(rest[:end]), 64)
	if err != nil { // too big for a double, or no JSON
		g.out = append(g.out, rest[:end]...)
		return
	}
	g.out = appendDouble(g.out, f)
}

// appendDouble writes a number as Java does: with a decimal point always, and
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
