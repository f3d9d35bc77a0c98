package keypair

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAuthoritiesAreWhole checks that a file of authorities counts as a whole or not at all, at the start and at a reload.
func TestAuthoritiesAreWhole(t *testing.T) {
	one, two, dir := newAuthority(t, "one"), newAuthority(t, "two"), t.TempDir()
	first, second := certPEM(one.cert), certPEM(two.cert)
	join := func(parts ...any) (out []byte) {
		for _, part := range parts {
			switch p := part.(type) {
			case []byte:
				out = append(out, p...)
			case string:
				out = append(out, p...)
			}
		}
		return out
	}
	block := func(kind string, data []byte, headers map[string]string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Headers: headers, Bytes: data})
	}
	lineAfterFirst := fmt.Sprintf("line %d ", bytes.Count(first, []byte("\n"))+1)
	server := ServerTLS{KeyPair: one.writePair(t, dir, "server"), ClientAuth: tls.RequireAndVerifyClientCert}
	for name, tt := range map[string]struct {
		file []byte
		want string // in the error, besides the path; "" if the file contains both authorities
	}{
		"both":                        {join(first, second), ""},
		"comments":                    {join("# Root \xff\n=====\n", first, "\n-----\nsubject=/CN=two\n  issuer: -----BEGIN\n", second, "end"), ""},
		"Windows' line ends":          {bytes.ReplaceAll(join(first, "\n", second), []byte("\n"), []byte("\r\n")), ""},
		"no line end at the end":      {bytes.TrimSpace(join(first, second)), ""},
		"cut in the last block":       {join(first, second[:len(second)/2]), lineAfterFirst},
		"cut in its last line":        {join(first, second[:len(second)-8]), "must be only -----BEGIN"},
		"cut in its first line":       {join(first, second[:15]), lineAfterFirst},
		"cut in its first dashes":     {join(first, second[:3]), lineAfterFirst},
		"cut at the start":            {join(first[40:], second), "ends a block that does not begin"},
		"a block is cut in between":   {join(first[:len(first)/2], "\n", second, first), "line 1 "},
		"no line break between two":   {join(bytes.TrimSpace(first), second), "line break is missing"},
		"an indented block":           {join(first, " ", second), lineAfterFirst},
		"not base64":                  {join(first, strings.Replace(string(second), "M", "!", 1)), "is not valid PEM"},
		"a certificate with a hole":   {join(first, block("CERTIFICATE", two.cert.Raw[:100], nil)), lineAfterFirst},
		"two certificates in a block": {join(first, block("CERTIFICATE", join(two.cert.Raw, one.cert.Raw), nil)), lineAfterFirst},
		"an empty certificate":        {join(first, block("CERTIFICATE", nil, nil)), lineAfterFirst},
		"a key":                       {join(first, keyPEM(t, two.key), second), `type "PRIVATE KEY"`},
		"a revocation list":           {join(first, block("X509 CRL", two.cert.Raw, nil)), `type "X509 CRL"`},
		"OpenSSL's own type":          {join(first, block("TRUSTED CERTIFICATE", two.cert.Raw, nil)), `type "TRUSTED CERTIFICATE"`},
		"headers":                     {join(first, block("CERTIFICATE", two.cert.Raw, map[string]string{"A": "b"})), "has headers"},
		"text":                        {[]byte("ca.crt\n"), "contains no certificate"},
		"nothing":                     {nil, "contains no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "ca.crt"), tt.file)
			pool, err := LoadCertPool(path)
			if tt.want == "" {
				want := x509.NewCertPool()
				want.AddCert(one.cert)
				want.AddCert(two.cert)
				if err != nil || !pool.Equal(want) {
					t.Fatalf("got error %v, want both authorities", err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want an error about %s with %q", err, path, tt.want)
			}
			if _, err := (ClientTLS{CAFile: path}).TLSConfig(); (err == nil) != (tt.want == "") {
				t.Errorf("a client: got %v", err)
			}
			s := server
			s.CAFile = path
			if _, err := s.TLSConfig(); (err == nil) != (tt.want == "") {
				t.Errorf("a server: got %v", err)
			}
			if tt.want != "" {
				checkKeptAuthorities(t, s, first, tt.file)
			}
		})
	}
}

// checkKeptAuthorities replaces good authorities by bad ones.
func checkKeptAuthorities(t *testing.T, s ServerTLS, good, bad []byte) {
	t.Helper()
	write(t, s.CAFile, good)
	config, err := s.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.CAFile, bad)
	touch(t, time.Minute, s.CAFile)
	current, err := config.GetConfigForClient(nil)
	if err != nil || !current.ClientCAs.Equal(config.ClientCAs) {
		t.Errorf("got error %v or other authorities after a reload, want those from before", err)
	}
	state := Use{Name: "server.ssl", CAFile: s.CAFile}.State()
	if got := state.Describe(); !strings.Contains(got, "stay in use") || !strings.Contains(got, s.CAFile) {
		t.Errorf("got %q, want that the authorities from before stay in use", got)
	}
}

// TestChainsAreWhole checks that a certificate is not used without an intermediate that the file has in part, and that errors
// do not quote keys.
func TestChainsAreWhole(t *testing.T) {
	ca, dir := newAuthority(t, "ca"), t.TempDir()
	files := ca.writePair(t, dir, "x")
	data, err := read(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := read(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	parameters := pem.EncodeToMemory(&pem.Block{Type: "DH PARAMETERS", Bytes: []byte("x")})
	intermediate := certPEM(ca.cert)
	for name, tt := range map[string]struct {
		file []byte
		want bool
	}{
		"with the key and others": {slices.Concat([]byte("Bag Attributes\n"), data, key, parameters, intermediate), true},
		"cut in the intermediate": {slices.Concat(data, intermediate[:len(intermediate)/2]), false},
		"cut in the key":          {slices.Concat(data, key[:len(key)-30]), false},
		"a key on one line":       {slices.Concat(data, bytes.ReplaceAll(key, []byte("\n"), nil), intermediate), false},
	} {
		path := write(t, filepath.Join(dir, "chain"), tt.file)
		pair, err := Open(Files{Cert: path, Key: files.Key})
		if (err == nil) != tt.want {
			t.Errorf("%s: got error %v", name, err)
		}
		if err == nil && len(pair.Certificate().Certificate) != 2 {
			t.Errorf("%s: got %d certificates, want 2", name, len(pair.Certificate().Certificate))
		}
		if err != nil && strings.Contains(err.Error(), string(key[28:36])) { // the beginning of its base64
			t.Errorf("%s: the error quotes the key: %v", name, err)
		}
	}
}
