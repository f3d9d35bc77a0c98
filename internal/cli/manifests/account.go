package manifests

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vedette-io/vedette"
)

// takeAccount moves the account from the annotation, which output has added, to the document. The
// annotation is not part of the object.
func (d *Document) takeAccount() error {
	account, annotated := d.Metadata.Annotations[vedette.AccountAnnotation]
	label, labelled := d.Metadata.Labels[vedette.AccountAnnotation]
	if !annotated && !labelled {
		return nil
	}
	if d.Account = account; account == "" {
		d.Account = label
	}
	return d.change(func(metadata map[string]any) {
		for _, name := range []string{"annotations", "labels"} {
			values, _ := metadata[name].(map[string]any)
			delete(values, vedette.AccountAnnotation)
			if values != nil && len(values) == 0 {
				delete(metadata, name)
			}
		}
	})
}

// ForAccount returns the document as it is applied in an account. What identifies the object in
// another cluster says nothing about this one.
func (d Document) ForAccount(account string) (Document, error) {
	if d.Account == "" || d.Account == account || account == "" {
		return d, nil
	}
	err := d.change(func(metadata map[string]any) {
		delete(metadata, "uid")
		delete(metadata, "resourceVersion")
	})
	return d, err
}

// CheckElsewhere returns an error if the document was printed in another account without what redaction took. Its own account's agent
// recognizes it by what identifies the object, which ForAccount removes, and an apply of it would remove the data of the object.
func (d Document) CheckElsewhere(account string) error {
	if d.Account == "" || d.Account == account || account == "" {
		return nil
	}
	tree, err := Decode(d.Raw)
	switch {
	case err != nil:
		return fmt.Errorf("read the %s: %w", d.Kind, err)
	case d.Kind == "Secret" && d.APIVersion == "v1" && tree["data"] == nil && tree["stringData"] == nil:
		return vedette.Errorf(vedette.Invalid, "%s: %s was printed by the account %s without its data, which never leaves a cluster, so it cannot be "+
			"sent to another account: write data or stringData into the manifest", d.Source, d.DisplayName(), d.Account)
	case hasRedacted(tree):
		return vedette.Errorf(vedette.Invalid, "%s: %s was printed by the account %s with the text %s in place of a value, so it cannot be sent to another "+
			"account: write the value", d.Source, d.DisplayName(), d.Account, vedette.Redacted)
	}
	return nil
}

// hasRedacted reports whether a value in a tree was replaced by redaction.
func hasRedacted(tree any) bool {
	switch v := tree.(type) {
	case map[string]any:
		for _, member := range v {
			if hasRedacted(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasRedacted)
	case string:
		return v == vedette.Redacted || v == vedette.RedactedBinary
	}
	return false
}

func (d *Document) change(f func(metadata map[string]any)) error {
	tree, err := Decode(d.Raw)
	if err != nil {
		return fmt.Errorf("read the %s: %w", d.Kind, err)
	}
	f(EnsureMap(tree, "metadata"))
	raw, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("write the %s: %w", d.Kind, err)
	}
	d.Raw = raw
	return nil
}
