package artifacts

import (
	"context"
	"fmt"
	"io"
)

// archivePipe is what is read of an archive that is being written.
type archivePipe struct {
	*io.PipeReader
	release func() bool
	done    chan struct{} // closed when nothing uses the clone any more
}

// startArchive writes an archive in the background. A reader that is slow holds the clone and a place
// among those that fetch, so that its time is limited, too.
func startArchive(ctx context.Context, write func(io.Writer) error) io.ReadCloser {
	reader, writer := io.Pipe()
	p := &archivePipe{PipeReader: reader, done: make(chan struct{})}
	p.release = context.AfterFunc(ctx, func() { writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer close(p.done)
		writer.CloseWithError(recovered(func() error { return write(writer) }))
	}()
	return p
}

// recovered returns a panic as an error. The code that reads objects is not ours, the objects are
// those of strangers, and a panic in the background would end the server.
func recovered(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the repository cannot be read: %v", v)
		}
	}()
	return do()
}

// Close ends the archive and waits until nothing is read any more.
func (p *archivePipe) Close() error {
	p.release()
	err := p.PipeReader.Close()
	<-p.done
	return err
}
