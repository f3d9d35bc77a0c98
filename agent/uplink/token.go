package uplink

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/mask"
)

// tokenSource supplies the bearer token for a proxy in front of the server.
type tokenSource interface {
	Token(ctx context.Context) (string, error)
	// Rejected tells that the last token was not accepted.
	Rejected()
}

// cachingTokenSource remembers the token that it has supplied last, because errors must not quote it.
type cachingTokenSource struct {
	tokenSource
	last atomic.Pointer[string]
}

func (s *cachingTokenSource) Token(ctx context.Context) (string, error) {
	token, err := s.tokenSource.Token(ctx)
	if err == nil {
		s.last.Store(&token)
	}
	return token, err
}

// withRememberedToken returns a Config of which explainError masks the token.
func (c Config) withRememberedToken() Config {
	if c.Token != nil {
		c.Token = &cachingTokenSource{tokenSource: c.Token}
	}
	return c
}

// withoutToken returns the error of a stream without the token. A proxy may quote the header with it.
func (c Config) withoutToken(s *status.Status) *status.Status {
	source, ok := c.Token.(*cachingTokenSource)
	if !ok || source.last.Load() == nil {
		return s
	}
	return status.New(s.Code(), mask.TextValues([]string{*source.last.Load()}).Mask(s.Message()))
}

// perRPCToken sends the token with each stream.
type perRPCToken struct {
	source tokenSource
	secure bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t perRPCToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := t.source.Token(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. A token for a connection
// with TLS is never sent without TLS.
func (t perRPCToken) RequireTransportSecurity() bool { return t.secure }

// dialOptions returns DialOptions with the token, if there is one.
func (c Config) dialOptions() []grpc.DialOption {
	if c.Token == nil {
		return c.DialOptions
	}
	return append([]grpc.DialOption{grpc.WithPerRPCCredentials(perRPCToken{c.Token, c.TLS})}, c.DialOptions...)
}

// noteRejection tells the source of the token if err means that it was not accepted.
func (c Config) noteRejection(err error) {
	if s, ok := status.FromError(err); ok && err != nil && c.Token != nil && isTokenRejection(s) {
		c.Token.Rejected()
	}
}

// isTokenRejection reports whether a proxy does not accept the token. Proxies answer 401 or 403.
// gRPC makes codes of these, but a server uses PermissionDenied for other reasons too.
func isTokenRejection(s *status.Status) bool {
	return s.Code() == codes.Unauthenticated || s.Code() == codes.PermissionDenied && strings.Contains(s.Message(), "HTTP status code")
}

// explainToken explains errors about the bearer token. It returns nil for others.
func explainToken(s *status.Status, cfg Config) error {
	const noToken = "per-RPC creds failed due to error: " // gRPC's words
	_, reason, found := strings.Cut(s.Message(), noToken)
	switch {
	case cfg.Token == nil:
		return nil
	case found:
		return vedette.Errorf(vedette.Denied, "no bearer token for the server at %s: %w", cfg.Target, errors.New(reason))
	case isTokenRejection(s):
		return vedette.Errorf(vedette.Denied, "%s: a proxy in front of the server does not accept the bearer token: check clouddriver.auth: %w",
			cfg.Target, s.Err())
	}
	return nil
}
