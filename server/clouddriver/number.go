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
	g.value()
	return g.out
}

// gson copies valid JSON from in to out.
type gson struct {
	in  []byte
	at  int
	out []byte
}

func (g *gson) space() {
	for g.at < len(g.in) && (g.in[g.at] == ' ' || g.in[g.at] == '\t' || g.in[g.at] == '\n' || g.in[g.at] == '\r') {
		g.at++
	}
}

// next skips space and returns the byte that follows, 0 at the end.
func (g *gson) next() byte {
	g.space()
	if g.at < len(g.in) {
		return g.in[g.at]
	}
	return 0
}

func (g *gson) value() {
	switch c := g.next(); {
	case c == '{':
		g.members()
	case c == '[':
		g.elements()
	case c == '"':
		g.text()
	case c == '-' || c >= '0' && c <= '9':
		g.number()
	default:
		g.word()
	}
}

func (g *gson) members() {
	g.copy(1)
	first := true
	for {
		switch g.next() {
		case ',':
			g.at++
			continue
		case '"':
		default: // "}", or the end of what is no JSON
			g.copy(1)
			return
		}
		before := len(g.out)
		if !first {
			g.out = append(g.out, ',')
		}
		g.text()
		if g.next() == ':' {
			g.copy(1)
		}
		if g.next() == 'n' { // null
			g.out = g.out[:before]
			g.skipWord()
			continue
		}
		first = false
		g.value()
	}
}

func (g *gson) elements() {
	g.copy(1)
	for {
		switch g.next() {
		case ',':
			g.copy(1)
		case ']':
			g.copy(1)
			return
		case 0:
			return
		default:
			before := g.at
			g.value()
			if g.at == before {
				return // what is no JSON
			}
		}
	}
}

func (g *gson) copy(n int) {
	end := min(g.at+n, len(g.in))
	g.out = append(g.out, g.in[g.at:end]...)
	g.at = end
}

// text copies a string as it is written.
func (g *gson) text() {
	end := g.at + 1
	for end < len(g.in) && g.in[end] != '"' {
		if g.in[end] == '\\' {
			end++
		}
		end++
	}
	g.copy(end + 1 - g.at)
}

func (g *gson) word() {
	from := g.at
	g.skipWord()
	g.out = append(g.out, g.in[from:g.at]...)
}

func (g *gson) skipWord() {
	for g.at < len(g.in) && g.in[g.at] >= 'a' && g.in[g.at] <= 'z' {
		g.at++
	}
}

func (g *gson) number() {
	rest := g.in[g.at:]
	end := bytes.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("+-.eE0123456789", r) })
	if end < 0 {
		end = len(rest)
	}
	g.at += end
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
