package credentials

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// End is when credentials end that say so themselves.
type End struct {
	What  string    // "the client certificate" or "the token"; empty if nothing says when it ends
	Begin time.Time // when they were issued; zero if unknown
	End   time.Time
}

// FirstEnd returns what ends first of a client certificate in PEM and a token; either may be empty.
func FirstEnd(certificate []byte, token string) End {
	first := certificateEnd(certificate)
	if end := tokenEnd(token); end.What != "" && (first.What == "" || end.End.Before(first.End)) {
		first = end
	}
	return first
}

func certificateEnd(text []byte) End {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes) // the first is the client's own
		if err != nil {
			return End{}
		}
		return End{"the client certificate", cert.NotBefore, cert.NotAfter}
	}
	return End{}
}

// maxTokenBytes is more than any JSON Web Token has that an API server accepts in a header.
const maxTokenBytes = 1 << 20

// tokenEnd reads the claims of a JSON Web Token, such as those of service accounts. They are not verified,
// because they only tell users when to renew the token.
func tokenEnd(token string) End {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 || len(token) > maxTokenBytes {
		return End{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 || claims.Expires > maxUnix {
		return End{}
	}
	end := End{What: "the token", End: time.Unix(int64(claims.Expires), 0)}
	if claims.Issued > 0 && claims.Issued < claims.Expires {
		end.Begin = time.Unix(int64(claims.Issued), 0)
	}
	return end
}

// maxUnix is the last second of the year 9999.
const maxUnix = 253402300799

// longestNotice is how long before their end credentials of a long life count as ending.
const longestNotice = 7 * 24 * time.Hour

// IsNear reports whether the end is near, or has passed: a tenth of the lifetime is left, and no more than a week.
func (e End) IsNear(now time.Time) bool {
	if e.What == "" {
		return false
	}
	notice := longestNotice
	if !e.Begin.IsZero() {
		notice = min(notice, e.End.Sub(e.Begin)/10)
	}
	return now.After(e.End.Add(-notice))
}
