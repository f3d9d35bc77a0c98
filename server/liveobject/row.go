// Package liveobject converts objects that agents have read from clusters to rows of the store. Both can then be shown by
// the same code.
package liveobject

import (
	"fmt"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// Row returns the row that the store would have of an object, without its summary and its owner. The function decodes
// within the limits of its caller.
func Row(account vedette.AccountName, raw []byte, decode func(document []byte, v any) error) (read.Row, error) {
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name              string            `json:"name"`
			Namespace         string            `json:"namespace"`
			UID               string            `json:"uid"`
			ResourceVersion   string            `json:"resourceVersion"`
			CreationTimestamp *time.Time        `json:"creationTimestamp"`
			Labels            map[string]string `json:"labels"`
			Annotations       map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := decode(raw, &m); err != nil {
		return read.Row{}, fmt.Errorf("read an object of account %s: %w", account, err)
	}
	group, _, ok := strings.Cut(m.APIVersion, "/")
	if !ok {
		group = ""
	}
	row := read.Row{Account: account, Object: vedette.Object{
		Key: vedette.Key{Kind: vedette.Kind{Group: group, Name: m.Kind}, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name},
		UID: m.Metadata.UID, ResourceVersion: m.Metadata.ResourceVersion, APIVersion: m.APIVersion,
		Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations, Body: raw,
	}}
	if m.Metadata.CreationTimestamp != nil {
		row.Created = m.Metadata.CreationTimestamp.Unix()
	}
	row.Moniker = vedette.MonikerOf(row.Key, row.Annotations)
	return row, nil
}
