package cloud

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/mask"
)

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 20 * time.Second
	// maxAnswerBytes is more than any token service answers. Libraries read answers as a whole, however large they are.
	maxAnswerBytes = 1 << 20
	maxCodeBytes   = 100
	maxReasonBytes = 300
)

// services are the connections to all token services. Each is needed once in some minutes.
var services http.RoundTripper = &http.Transport{
	Proxy:                  proxyOf,
	DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
	TLSHandshakeTimeout:    dialTimeout,
	ForceAttemptHTTP2:      true,
	MaxIdleConnsPerHost:    1,
	IdleConnTimeout:        30 * time.Second,
	ResponseHeaderTimeout:  headerTimeout,
	MaxResponseHeaderBytes: 64 << 10,
}

// proxyOf returns the proxy of the environment, except for services of this machine: what these issue must reach nobody else, and a
// proxy would ask its own machine.
func proxyOf(r *http.Request) (*url.URL, error) {
	if isLocal(r.URL.Hostname()) {
		return nil, nil //nolint:nilnil // no proxy, as net/http has it
	}
	return http.ProxyFromEnvironment(r) //nolint:wrapcheck // it names the variable
}

// podIdentityIPv6 is where EKS Pod Identity is on nodes with IPv6, and imdsIPv6 the metadata service of EC2.
var (
	podIdentityIPv6 = netip.MustParseAddr("fd00:ec2::23")
	imdsIPv6        = netip.MustParseAddr("fd00:ec2::254")
)

// hostName returns a host as it is usually written: in lower case, and without the dot that ends a whole name.
func hostName(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// isLocal reports whether a host is this machine, or a metadata service, which all have link-local addresses.
func isLocal(host string) bool {
	host = hostName(host)
	if host == "localhost" || host == "metadata.google.internal" || host == "metadata" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr == podIdentityIPv6 || addr == imdsIPv6)
}

// isMetadataService reports whether a host, perhaps with a port, is that of a metadata service of EC2, Google or Azure.
func isMetadataService(host string) bool {
	name := hostName((&url.URL{Host: host}).Hostname())
	return name == "169.254.169.254" || name == imdsIPv6.String() || name == "metadata.google.internal"
}

// exchange sends the requests for one token. It turns answers without a token into errors before a library reads them,
// so that all clouds have the same errors, limits and masks.
type exchange struct {
	ctx  context.Context //nolint:containedctx // ends all requests, because libraries send some without a context
	next http.RoundTripper

	mu      sync.Mutex
	host    string   // that was asked last
	failure error    // why it did not answer with a token, because libraries lose it; nil if it did
	secrets []string // that were sent or answered
}

func (x *exchange) client() *http.Client {
	return &http.Client{Transport: x, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// last returns the host that was asked last, and why it has not answered with a token; nil if it has.
func (x *exchange) last() (host string, failure error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.host, x.failure
}

// RoundTrip implements http.RoundTripper. The body of the answer is in memory.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := x.roundTrip(r)
	x.mu.Lock()
	x.failure = err
	x.mu.Unlock()
	return resp, err
}

func (x *exchange) roundTrip(r *http.Request) (*http.Response, error) {
	r, err := x.noteRequest(r)
	if err != nil {
		return nil, err
	}
	resp, err := x.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	resp.Body.Close()
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	if problem := x.problemOf(resp, body); problem != nil {
		return nil, problem
	}
	x.noteSecret(string(body))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

// secretHeaders have credentials of AWS, Azure and Google.
var secretHeaders = []string{"Authorization", "X-Aws-Ec2-Metadata-Token", "X-Amz-Security-Token", "X-Identity-Header", "Secret"}

// noteRequest notes which service is asked, and what must not be shown of the request. It returns the request to send.
func (x *exchange) noteRequest(r *http.Request) (*http.Request, error) {
	x.mu.Lock()
	x.host = r.URL.Host
	x.mu.Unlock()
	for _, name := range secretHeaders {
		for _, value := range r.Header.Values(name) {
			x.noteSecret(value[strings.LastIndexByte(value, ' ')+1:]) // without "Bearer"
		}
	}
	sent := r.Clone(x.ctx)
	if r.Body == nil {
		return sent, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	form, _ := url.ParseQuery(string(body)) // a body that is not a form has none of these names
	for name, values := range form {
		if isSecretName(name) {
			for _, value := range values {
				x.noteSecret(value)
			}
		}
	}
	sent.Body = io.NopCloser(bytes.NewReader(body))
	return sent, nil
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	isPart := func(part string) bool { return strings.Contains(name, part) }
	return slices.ContainsFunc([]string{"token", "secret", "assertion", "password"}, isPart) && !strings.HasSuffix(name, "_type")
}

func (x *exchange) noteSecret(text string) {
	if text == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.secrets = append(x.secrets, text)
}

// answerError is an answer that has no token.
type answerError struct {
	status int
	text   string        // what was answered
	skew   time.Duration // how far this machine's clock is ahead of the service's, if the difference matters
}

func (e *answerError) Error() string { return e.text }

// problemOf returns why an answer cannot be used; nil if the library may read it.
func (x *exchange) problemOf(resp *http.Response, body []byte) error {
	e := &answerError{status: resp.StatusCode}
	trimmed := bytes.TrimSpace(body)
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.text = fmt.Sprintf("redirects elsewhere (%s), as sign-in pages do and token services don't", resp.Status)
	case len(body) > maxAnswerBytes:
		e.text = fmt.Sprintf("answered with more than %d MiB", maxAnswerBytes>>20)
	case isHTML(trimmed):
		e.text = "answered " + resp.Status + " with an HTML page, as proxies and sign-in pages send it"
	case resp.StatusCode >= 400:
		e.text = "answered " + resp.Status + x.reasonOf(trimmed)
		if resp.StatusCode < 500 {
			e.skew = clockSkew(resp.Header.Get("Date"), time.Now())
		}
	case bytes.HasPrefix(trimmed, []byte("{")) && exactjson.Check(trimmed) != nil:
		e.text = fmt.Sprintf("answered with %d bytes that are not valid JSON", len(body))
	case bytes.HasPrefix(trimmed, []byte("<")) && !isWholeXML(trimmed):
		e.text = fmt.Sprintf("answered with %d bytes that are not valid XML", len(body))
	default:
		return nil
	}
	return e
}

// isWholeXML reports whether a text is one element, to its end. The library of AWS takes what it needs from the beginning.
func isWholeXML(text []byte) bool {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	depth, elements := 0, 0
	for {
		token, err := decoder.Token() // fails if the text ends within an element
		if err != nil {
			return errors.Is(err, io.EOF) && elements == 1
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				elements++
			}
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(token)) > 0 {
				return false
			}
		}
	}
}

func isHTML(body []byte) bool {
	start := strings.ToLower(string(body[:min(len(body), 20)]))
	isStart := func(tag string) bool { return strings.HasPrefix(start, tag) }
	return slices.ContainsFunc([]string{"<!doctype html", "<html", "<head", "<body"}, isStart)
}

// reasonOf returns the code and the message of an error, without what the request had. It shows nothing of answers that are not an error
// of a token service.
func (x *exchange) reasonOf(body []byte) string {
	code, message := errorInXML(body)
	if code == "" {
		code, message = errorInJSON(body)
	}
	if code == "" {
		return ""
	}
	x.mu.Lock()
	sent := mask.TextValues(x.secrets)
	x.mu.Unlock()
	texts := sent.MaskAll([]mask.Text{{Value: cut(code, maxCodeBytes)}, {Value: cut(message, maxReasonBytes), Truncated: true}})
	if texts[1] == "" {
		return ", " + texts[0]
	}
	return ", " + texts[0] + ": " + strings.TrimRight(texts[1], ". ")
}

// errorInXML reads an error of STS.
func errorInXML(body []byte) (code, message string) {
	var answer struct {
		Error struct {
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	if len(body) == 0 || body[0] != '<' || xml.Unmarshal(body, &answer) != nil {
		return "", ""
	}
	return answer.Error.Code, answer.Error.Message
}

// errorInJSON reads an error of OAuth (Google, Entra ID and the metadata service of Azure), of Google's other services, and of
// EKS Pod Identity.
func errorInJSON(body []byte) (code, message string) {
	var oauth struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if exactjson.Unmarshal(body, &oauth, exactjson.Limits{}) == nil && oauth.Error != "" {
		return oauth.Error, oauth.Description
	}
	var google struct {
		Error struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if exactjson.Unmarshal(body, &google, exactjson.Limits{}) == nil && google.Error.Status != "" {
		return google.Error.Status, google.Error.Message
	}
	var aws struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if exactjson.Unmarshal(body, &aws, exactjson.Limits{}) == nil {
		return aws.Code, aws.Message
	}
	return "", ""
}

// maxClockSkew is how far clocks may differ: services accept signatures and assertions of five minutes before and after their own time.
const maxClockSkew = 5 * time.Minute

// clockSkew returns how far now is ahead of the date of an answer, if it is too far.
func clockSkew(date string, now time.Time) time.Duration {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	if skew := now.Sub(theirs); skew.Abs() > maxClockSkew {
		return skew
	}
	return 0
}

func describeSkew(skew time.Duration) string {
	if skew < 0 {
		return skew.Abs().Round(time.Minute).String() + " behind"
	}
	return skew.Round(time.Minute).String() + " ahead of"
}
