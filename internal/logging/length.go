package logging

import (
	"fmt"
	"log/slog"
	"strings"
)

// maxTextBytes bounds each text in a line. A client's header, a cluster's message or a name can have megabytes.
const maxTextBytes = 4 << 10

// shorten shortens long values of attributes; messages are constants. It masks secrets first, because a part of one would not be found.
func (w *secretWriter) shorten(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.MessageKey {
		return a
	}
	text := ""
	switch a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		text = fmt.Sprintf("%+v", a.Value.Any()) // as slog writes it as text
	}
	if len(text) <= maxTextBytes {
		return a
	}
	masked := text
	if index := w.index.Load(); index != nil {
		masked = string(index.mask([]byte(text)))
	}
	masked = strings.ToValidUTF8(masked[:min(len(masked), maxTextBytes)], "")
	a.Value = slog.StringValue(fmt.Sprintf("%s... (%d bytes)", masked, len(text)))
	return a
}
