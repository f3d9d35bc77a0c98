package kube

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/vedette-io/vedette/agent/kube/credentials"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Timeouts and flow-control windows of connections.
//
// A window is how much the API server may send before it is read, which is the most that
// one feed buffers while its sink is blocked. The windows of all watches of a connection
// fit into the window of the connection, so that a blocked feed never blocks others.
const (
	dialTimeout     = 15 * time.Second
	headerTimeout   = 70 * time.Second // an API server itself ends requests after 60 s
	pingInterval    = 12 * time.Second // of silence before a ping
	pingTimeout     = 10 * time.Second
	idleConnTimeout = 30 * time.Second
	requestWindow   = 1 << 20
	connWindow      = 4<<20 - 1
	defaultStreams  = 40
	// maxFrame is the smallest limit that HTTP/2 allows. A connection keeps a buffer for the largest
	// frame that it ever received. Without a limit, net/http allows 1 MiB, which API servers use up
	// for lists.
	maxFrame = 16 << 10
)

// WatchWindow is how many bytes of a watch an API server sends before the first of them are read.
const WatchWindow = 64 << 10

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// connConfig is what all transports of a cluster share: the dialer, the TLS
// configuration and the credentials, as client-go reads them from a kubeconfig.
type connConfig struct {
	conf *transport.Config
	tls  *tls.Config
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	exec *credentials.Cache // nil if there is no exec plugin

	onResponse func(verb string, status int, took time.Duration) // may be nil
}

// newConnConfig parses certificates and keys. It is called again after a failed handshake
// or a 401, because the token file may have been renewed. As in client-go, the exec plugin is used
// only if the kubeconfig has no other credentials.
func newConnConfig(cfg *rest.Config, exec *credentials.Cache) (*connConfig, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ExecProvider = nil
	conf, err := cfg.TransportConfig()
	if err != nil {
		return nil, err //nolint:wrapcheck // Connect names the cluster
	}
	t, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, err //nolint:wrapcheck // Connect names the cluster
	}
	if t == nil {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d := &connConfig{conf: conf, tls: t, dial: keepAliveDialer().DialContext}
	if exec != nil && !conf.HasTokenAuth() && !conf.HasBasicAuth() && !conf.HasCertAuth() {
		d.exec = exec
		d.tls.GetClientCertificate = exec.Certificate
	}
	return d, nil
}

// keepAliveDialer uses TCP keepalives to notice half-open connections, because only
// HTTP/2 has pings.
func keepAliveDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pingInterval, Interval: 4 * time.Second, Count: 3},
	}
}

func (d *connConfig) proxy() func(*http.Request) (*url.URL, error) {
	if d.conf.Proxy != nil {
		return d.conf.Proxy
	}
	return http.ProxyFromEnvironment
}

// transport returns a pool of connections whose streams have the given window.
func (d *connConfig) transport(window int) *http.Transport {
	return &http.Transport{
		Proxy:                 d.proxy(),
		DialContext:           d.dial,
		TLSClientConfig:       d.tls.Clone(),
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // gzip costs more CPU on both sides than it saves on the network
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       idleConnTimeout,
		ResponseHeaderTimeout: headerTimeout,
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       4 << 10,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     window,
			MaxReceiveBufferPerConnection: connWindow,
			MaxReadFrameSize:              maxFrame,
			SendPingTimeout:               pingInterval,
			PingTimeout:                   pingTimeout,
		},
	}
}

// withAuth returns a RoundTripper that adds the credentials to requests, and measures them.
func (d *connConfig) withAuth(rt http.RoundTripper) (http.RoundTripper, error) {
	rt = maskingTransport{rt}
	if d.onResponse != nil {
		rt = measuredTransport{rt, d.onResponse}
	}
	if d.exec != nil {
		rt = authRoundTripper{d.exec, rt}
	}
	return transport.HTTPWrappersForConfig(d.conf, rt) //nolint:wrapcheck // Connect names the cluster
}
