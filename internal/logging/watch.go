package logging

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// KeepFile keeps the file of a logger that New returned in place until ctx ends: each second it creates the file
// again if it was removed or renamed, also if no line is written, and at SIGHUP, which rotating programs send,
// it opens the file anew. It returns at once if lines do not go to a file; a SIGHUP then ends the program, as
// it does when a terminal is closed.
func KeepFile(ctx context.Context, log *slog.Logger) {
	h, ok := log.Handler().(contextHandler)
	if !ok {
		return
	}
	file, ok := h.secrets.next.(*fileWriter)
	if !ok {
		return
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	file.keep(ctx, hangups)
}

func (f *fileWriter) keep(ctx context.Context, hangups <-chan os.Signal) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			f.reopen(true)
		case <-ticker.C:
			f.reopen(false)
		}
	}
}
