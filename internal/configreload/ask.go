package configreload

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/admin"
)

// Endpoint is where a program on this machine serves operators.
type Endpoint struct {
	Host string // address on which it listens; empty for all
	Port int
	TLS  bool
	// NeedsCertificate says that the port accepts only clients with a certificate, which check does not have.
	NeedsCertificate bool
	Guard            admin.Guard // has the token for operators; sent only if the program does not listen on the loopback address
}

const (
	askTimeout = 5 * time.Second
	// maxAnswerBytes bounds an answer. The settings of an agent with 1,000 accounts have some 5 MB.
	maxAnswerBytes = 64 << 20
)

// Ask asks the program that runs on this machine what is in effect.
func Ask(ctx context.Context, e Endpoint) (Effective, error) {
	if e.Port == 0 {
		return Effective{}, vedette.Errorf(vedette.Invalid, "the port is 0, so the system chose one that is not known here")
	}
	if e.NeedsCertificate {
		return Effective{}, vedette.Errorf(vedette.Invalid, "its port %d requires client certificates: set management.server.port, which check can ask then", e.Port)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url(), nil)
	if err != nil {
		return Effective{}, fmt.Errorf("ask %s: %w", e.url(), err)
	}
	if err := e.authorize(request); err != nil {
		return Effective{}, err
	}
	client := newClient()
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return Effective{}, err //nolint:wrapcheck // it names the URL
	}
	defer response.Body.Close()
	return decode(response)
}

// authorize adds the token, unless requests from this machine are trusted without one.
func (e Endpoint) authorize(request *http.Request) error {
	if e.isLoopback() {
		return nil
	}
	token, err := e.Guard.ReadToken()
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "server.adminTokenFile, %s: %w", e.Guard.TokenFile, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// newClient returns a client for requests to this machine. It does not verify certificates, because they are
// issued for the name that other machines use, and requests to this machine contain no secrets.
func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // see above
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (e Endpoint) url() string {
	scheme := "http"
	if e.TLS {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(e.host(), strconv.Itoa(e.Port)), Path: Path}).String()
}

// host returns the address to connect to.
func (e Endpoint) host() string {
	address, err := netip.ParseAddr(e.Host)
	if e.Host == "" || err == nil && address.IsUnspecified() {
		return "127.0.0.1"
	}
	return e.Host
}

func (e Endpoint) isLoopback() bool {
	address, err := netip.ParseAddr(e.host())
	return e.host() == "localhost" || err == nil && address.IsLoopback()
}

func decode(response *http.Response) (Effective, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Effective{}, fmt.Errorf("read the answer of %s: %w", response.Request.URL, err)
	}
	if response.StatusCode != http.StatusOK {
		return Effective{}, vedette.Errorf(vedette.Unavailable, "%s answered %s: %s", response.Request.URL, response.Status,
			vedette.CleanText(cmp.Or(string(body), "nothing"), 300))
	}
	var e Effective
	if err := json.Unmarshal(body, &e); err != nil || e.Since.IsZero() {
		return Effective{}, vedette.Errorf(vedette.Unavailable, "%s answered something else than a configuration: is it another program, or an earlier version?",
			response.Request.URL)
	}
	return e, nil
}
