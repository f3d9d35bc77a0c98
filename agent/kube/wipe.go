package kube

import (
	"bytes"
	"crypto/tls"
	"errors"
	"reflect"
	"unsafe"
)

// ErrCannotWipe reports that Options.WipeTLSBuffers is set and that this build's
// crypto/tls has other fields than tlsWiper knows.
var ErrCannotWipe = errors.New("this build cannot wipe the buffers of crypto/tls, so Secrets are not read: build with Go 1.26, set kubernetes.wipeTLSBuffers to false, or leave Secrets out of the kinds")

// tlsWiper zeroes the buffers of TLS connections. crypto/tls offers no API for that, so
// it reaches into fields that crypto/tls does not export. Any Go release may change
// them, which is why Options.WipeTLSBuffers is off by default. A nil tlsWiper wipes
// nothing.
type tlsWiper struct {
	// The offsets of tls.Conn.rawInput, tls.Conn.input, bytes.Buffer.buf and bytes.Buffer.off.
	rawInput, input, buf, off uintptr
	// supported reports whether crypto/tls has these fields with these types.
	supported bool
}

// newTLSWiper looks the fields up by name and type, so that a Go release with other
// fields is noticed.
func newTLSWiper() *tlsWiper {
	conn, buffer := reflect.TypeFor[tls.Conn](), reflect.TypeFor[bytes.Buffer]()
	rawInput, a := conn.FieldByName("rawInput")
	input, b := conn.FieldByName("input")
	buf, c := buffer.FieldByName("buf")
	off, d := buffer.FieldByName("off")
	return &tlsWiper{
		rawInput: rawInput.Offset, input: input.Offset, buf: buf.Offset, off: off.Offset,
		supported: a && b && c && d && rawInput.Type == buffer && input.Type == reflect.TypeFor[bytes.Reader]() &&
			buf.Type == reflect.TypeFor[[]byte]() && off.Type == reflect.TypeFor[int](),
	}
}

// check fails with ErrCannotWipe if wipe would. Callers check before they read
// anything, because a Secret that was read cannot be unread.
func (w *tlsWiper) check() error {
	if w != nil && !w.supported {
		return ErrCannotWipe
	}
	return nil
}

// wipe zeroes what a connection has decrypted and handed out. crypto/tls decrypts
// records in place in rawInput, and input reads them from there. Once input is empty, all
// of rawInput is done with except its unread part, which is still encrypted. Before
// that, wipe does nothing, because the next read takes the rest and is followed by
// another wipe. It must not be called during a Read.
func (w *tlsWiper) wipe(c *tls.Conn) {
	if w == nil || !w.supported {
		return
	}
	input := (*bytes.Reader)(unsafe.Add(unsafe.Pointer(c), w.input))
	if input.Len() == 0 {
		w.clear(c)
	}
}

// wipeClosed zeroes everything that a connection has decrypted. The connection must
// not be read again.
func (w *tlsWiper) wipeClosed(c *tls.Conn) {
	if w != nil && w.supported {
		w.clear(c)
	}
}

func (w *tlsWiper) clear(c *tls.Conn) {
	raw := unsafe.Add(unsafe.Pointer(c), w.rawInput)
	buf := *(*[]byte)(unsafe.Add(raw, w.buf))
	off := *(*int)(unsafe.Add(raw, w.off))
	clear(buf[:off])
	clear(buf[len(buf):cap(buf)])
}
