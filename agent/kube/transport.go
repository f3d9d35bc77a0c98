package kube

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// How long a connection may be silent, and how much may wait in it unread.
//
// A window is what the API server may send ahead of us, and so the most that
// one feed buffers here while its sink is blocked. The windows of all watches
// of one connection fit into the connection's window, so that a blocked feed
// never holds up its neighbours.
const (
	dialTimeout     = 15 * time.Second
	headerTimeout   = 70 * time.Second // an API server cuts a request at 60 s itself
	pingInterval    = 12 * time.Second // then a ping
	pingTimeout     = 10 * time.Second
	idleConnTimeout = 30 * time.Second
	watchWindow     = 64 << 10
	requestWindow   = 1 << 20
	connWindow      = 4<<20 - 1
	defaultStreams  = 40
)

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// connConfig is what every transport of a cluster shares: how to dial, to trust
// and to prove who we are, as client-go finds it in a kubeconfig.
type connConfig struct {
	conf *transport.Config
	tls  *tls.Config
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	exec *execAuthenticator // nil where no program signs in
}

// newConnConfig reads certificates and keys. It is done anew after a failed
// handshake or a 401, because files may have been renewed. A program that signs in
// counts where nothing else does, as for client-go.
func newConnConfig(cfg *rest.Config, exec *execAuthenticator) (*connConfig, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ExecProvider = nil
	conf, err := cfg.TransportConfig()
	if err != nil {
		return nil, err
	}
	t, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d := &connConfig{conf: conf, tls: t, dial: keepAliveDialer().DialContext}
	if exec != nil && !conf.HasTokenAuth() && !conf.HasBasicAuth() && !conf.HasCertAuth() {
		d.exec = exec
		d.tls.GetClientCertificate = exec.certificate
	}
	return d, nil
}

// keepAliveDialer notices a half-open connection where there is no HTTP/2 to
// ping with.
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

// transport builds one pool of connections with a window per stream.
func (d *connConfig) transport(window int) *http.Transport {
	return &http.Transport{
		Proxy:                 d.proxy(),
		DialContext:           d.dial,
		TLSClientConfig:       d.tls.Clone(),
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // gzip costs more CPU on both sides than the network it saves
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       idleConnTimeout,
		ResponseHeaderTimeout: headerTimeout,
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       4 << 10,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     window,
			MaxReceiveBufferPerConnection: connWindow,
			SendPingTimeout:               pingInterval,
			PingTimeout:                   pingTimeout,
		},
	}
}

// withAuth adds what a request needs to be let in.
func (d *connConfig) withAuth(rt http.RoundTripper) (http.RoundTripper, error) {
	if d.exec != nil {
		rt = authRoundTripper{d.exec, rt}
	}
	return transport.HTTPWrappersForConfig(d.conf, rt)
}
