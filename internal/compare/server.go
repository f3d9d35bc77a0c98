package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxBodyBytes bounds the memory for one answer. The largest real ones are lists of all
	// applications, with some 20 MB for 20,000 of them.
	maxBodyBytes = 64 << 20
	// maxValues bounds the memory of a decoded answer: small values take a hundred times more of it
	// than bytes. The largest real answers have one in 30 bytes.
	maxValues = 2 << 20
	// requestTimeout is longer than the minute that Gate waits.
	requestTimeout = 2 * time.Minute
)

// Server is a source that asks a server. It only sends GET requests.
type Server struct {
	Name   string      // how errors call it
	Header http.Header // sent with each request

	base   string
	client *http.Client
}

// NewServer returns a source for a server at an address.
func NewServer(name, address string, header http.Header) (*Server, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the address of %s is not a URL such as http://localhost:7002", name) // it may contain a password
	}
	client := &http.Client{Timeout: requestTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect is an answer to compare.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Server{Name: name, Header: header, base: strings.TrimRight(address, "/"), client: client}, nil
}

// SetTransport sets how requests are sent, for example with a client certificate.
func (s *Server) SetTransport(transport http.RoundTripper) { s.client.Transport = transport }

// Answer asks the server.
func (s *Server) Answer(ctx context.Context, path string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: GET %s: %w", s.Name, path, cause(err))
	}
	maps.Copy(request.Header, s.Header)
	response, err := s.client.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: GET %s: %w", s.Name, path, cause(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes+1))
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: read the answer of GET %s: %w", s.Name, path, err)
	}
	if n := bytes.Count(body, []byte(",")); n > maxValues {
		return Answer{}, fmt.Errorf("ask %s: the answer of GET %s has %d values, more than the limit of %d", s.Name, path, n, maxValues)
	}
	if len(body) > maxBodyBytes {
		return Answer{}, fmt.Errorf("ask %s: the answer of GET %s is larger than %d MiB", s.Name, path, maxBodyBytes>>20)
	}
	return Answer{Path: path, Status: response.StatusCode, Body: bodyOf(body)}, nil
}

// cause returns the error without the method and the URL, which may contain a password.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
