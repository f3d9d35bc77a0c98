package keypair

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// LoadCertPool reads authorities from a PEM file. Text around the blocks is a comment. Whatever else is not a certificate is an error:
// x509.CertPool.AppendCertsFromPEM skips it, so that half a file would pass for a whole one.
func LoadCertPool(path string) (*x509.CertPool, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	blocks, err := pemBlocks(path, data)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, block := range blocks {
		authority, err := block.authority(path)
		if err != nil {
			return nil, err
		}
		pool.AddCert(authority)
	}
	if len(blocks) == 0 {
		return nil, errNoCertificate(path)
	}
	return pool, nil
}

func errNoCertificate(path string) error {
	return fmt.Errorf("the file %s contains no certificate in PEM format", path)
}

const certificateType = "CERTIFICATE"

// pemBlock is a PEM block and the line in which it begins.
type pemBlock struct {
	*pem.Block
	line int
}

// authority parses a block of a file that must contain certificates only.
func (b pemBlock) authority(path string) (*x509.Certificate, error) {
	switch {
	case b.Type != certificateType:
		return nil, fmt.Errorf("line %d of the file %s begins a block of type %.60q, and only blocks of type %s may be in a file of authorities: remove it",
			b.line, path, b.Type, certificateType)
	case len(b.Headers) > 0:
		return nil, fmt.Errorf("the certificate that begins in line %d of the file %s has headers, which certificates do not have: remove them",
			b.line, path)
	}
	return b.certificate(path)
}

func (b pemBlock) certificate(path string) (*x509.Certificate, error) {
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that begins in line %d of the file %s: %w: replace or remove it", b.line, path, err)
	}
	return c, nil
}

const (
	beginMarker = "-----BEGIN "
	endMarker   = "-----END "
	markerEnd   = "-----"
)

// pemBlocks returns the blocks of a PEM file. It fails if a part of the file looks like a block and is none; pem.Decode skips
// that. Errors do not quote the file, because it may contain a key.
func pemBlocks(path string, data []byte) ([]pemBlock, error) {
	var blocks []pemBlock
	begin := 0 // the line in which the current block begins; 0 outside of blocks
	number := 0
	offset := 0
	start := 0
	for line := range bytes.Lines(data) {
		number++
		next := offset + len(line)
		switch marker := markerOf(line); {
		case marker == noMarker:
		case marker == beginMarker && begin == 0:
			begin, start = number, offset
		case marker == endMarker && begin != 0:
			block, rest := pem.Decode(data[start:next])
			if block == nil || len(rest) > 0 {
				return nil, fmt.Errorf("the block in lines %d to %d of the file %s is not valid PEM: replace or remove it", begin, number, path)
			}
			blocks = append(blocks, pemBlock{block, begin})
			begin = 0
		case marker == endMarker:
			return nil, fmt.Errorf("line %d of the file %s ends a block that does not begin: a part of the file is missing", number, path)
		case marker == beginMarker:
			return nil, errNoEnd(path, begin)
		default:
			return nil, fmt.Errorf("line %d of the file %s must be only -----BEGIN TYPE----- or -----END TYPE-----: "+
				"a part of it or a line break is missing, or it is indented", number, path)
		}
		offset = next
	}
	if begin != 0 {
		return nil, errNoEnd(path, begin)
	}
	return blocks, nil
}

func errNoEnd(path string, line int) error {
	return fmt.Errorf("the block that begins in line %d of the file %s does not end: a part of the file is missing", line, path)
}

// What a line is, besides beginMarker and endMarker.
const (
	noMarker     = ""
	brokenMarker = "broken"
)

func markerOf(line []byte) string {
	text := strings.TrimRight(string(line), " \t\r\n")
	for _, marker := range []string{beginMarker, endMarker} {
		switch {
		case !strings.HasPrefix(strings.TrimLeft(text, " \t"), marker):
		case strings.HasPrefix(text, marker) && strings.Count(text, markerEnd) == 2 && strings.HasSuffix(text, markerEnd):
			return marker
		default:
			return brokenMarker
		}
	}
	isUnfinished := !bytes.HasSuffix(line, []byte("\n")) && text != "" // the last line of a file that was cut
	if isUnfinished && strings.HasPrefix(beginMarker+certificateType+markerEnd, text) {
		return brokenMarker
	}
	return noMarker
}
