package vault

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/vault/api"

	"github.com/vedette-io/vedette"
)

// style is a version of the KV engine: 1 keeps a secret at its path, 2 keeps its versions below
// data/.
type style int

const (
	version2 style = 2
	version1 style = 1
)

func (v style) path(mount, path string) string {
	if v == version2 {
		return mount + "/data/" + path
	}
	return mount + "/" + path
}

// data returns the keys and values of a secret; false if the answer has not the form of the version.
func (v style) data(answer *api.Secret) (map[string]any, bool) {
	if answer == nil {
		return nil, false
	}
	if v == version1 {
		return answer.Data, answer.Data != nil
	}
	if _, ok := answer.Data["metadata"].(map[string]any); !ok {
		return nil, false
	}
	data, ok := answer.Data["data"].(map[string]any) // nil if the newest version was deleted
	return data, ok
}

// read reads a secret in the style of the engine, or in both until one of them has succeeded. It does
// not ask for the version of the engine, because policies need not allow that.
func (e *Engine) read(ctx context.Context, s *session, mount, path string) ([]byte, error) {
	var denied error
	missing := "" // a path that may be read, and at which there is nothing
	for _, v := range e.stylesOf(mount) {
		answer, err := e.get(ctx, s, v.path(mount, path))
		if data, ok := v.data(answer); err == nil && ok {
			e.setStyle(mount, v)
			return json.Marshal(data)
		}
		if v.isDeleted(answer) {
			return nil, vedette.Errorf(vedette.NotFound, "the newest version of %s in the engine %s was deleted", path, mount)
		}
		switch vedette.KindOf(err) {
		case "", vedette.NotFound:
			missing = v.path(mount, path)
		case vedette.Denied:
			denied = fmt.Errorf("read %s: %w", v.path(mount, path), err)
		default:
			return nil, err
		}
	}
	if denied != nil && missing != "" { // policies allow the paths of one version only
		return nil, vedette.Errorf(vedette.NotFound, "%s has no secret %s in the engine %s: there is nothing at %s (%w)", e.cfg.URL, path, mount, missing, denied)
	}
	if denied != nil {
		return nil, vedette.Errorf(vedette.Denied, "%w: allow it in the policy of the role or the token", denied)
	}
	e.setStyle(mount, 0) // the engine may have been replaced by one of the other version
	return nil, vedette.Errorf(vedette.NotFound, "%s has no secret %s in the engine %s", e.cfg.URL, path, mount)
}

// get reads a path. Vault's 404 has a document if there was a secret, so that both results may be set.
func (e *Engine) get(ctx context.Context, s *session, path string) (*api.Secret, error) {
	response, err := s.client.Logical().ReadRawWithContext(ctx, path)
	answer, parseErr := s.client.Logical().ParseRawResponseAndCloseBody(response, err)
	if err == nil { // the error of the status says more than that of the body
		err = parseErr
	}
	return answer, e.explain(ctx, s.client, err)
}

// isDeleted reports whether an answer says that there are older versions of the secret only.
func (v style) isDeleted(answer *api.Secret) bool {
	if v != version2 || answer == nil || answer.Data["data"] != nil {
		return false
	}
	metadata, _ := answer.Data["metadata"].(map[string]any)
	return metadata["deletion_time"] != nil
}

// stylesOf returns the versions to try, in this order.
func (e *Engine) stylesOf(mount string) []style {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.styles[mount]; known != 0 {
		return []style{known}
	}
	return []style{version2, version1}
}

func (e *Engine) setStyle(mount string, v style) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.styles[mount] = v
}
