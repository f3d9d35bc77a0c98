package logging

import (
	"context"
	"log/slog"
	"slices"
)

// attrsKey is the key of the attributes of a context.
type attrsKey struct{}

// WithAttrs returns a context whose log lines contain attributes, such as the id of a request.
// Lines contain them only if they are logged with the context: by InfoContext, not by Info.
func WithAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, attrsKey{}, slices.Concat(attrsOf(ctx), attrs))
}

func attrsOf(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}
