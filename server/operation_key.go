package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// operationKeyFile is the name of the key of the digests in the history. It is a file, because whoever reads the
// database must not have it.
const operationKeyFile = "operations.key"

// operationKey returns the key, which it creates if there is none. If the directory keeps no files, the key
// ends with the process.
func (s *Server) operationKey() []byte {
	if s.cfg.DataDir == "" {
		return nil
	}
	path := filepath.Join(s.cfg.DataDir, operationKeyFile)
	key, err := readOperationKey(path)
	if err != nil {
		s.log.Info("operations with manifests that are sent again after a restart will be rejected: the server cannot keep its key in dataDir",
			"path", path, "error", err)
		return nil
	}
	return key
}

const operationKeyBytes = 26 // of rand.Text

func readOperationKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path) //nolint:gosec // the operator names the directory
	switch {
	case err == nil && len(key) >= operationKeyBytes:
		return key, nil
	case err == nil: // the server was killed while it wrote the file
		err = os.Remove(path)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	key = []byte(rand.Text())
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // as above
	if err != nil {
		return nil, fmt.Errorf("create the key: %w", err)
	}
	_, err = file.Write(key)
	return key, errors.Join(err, file.Close())
}
