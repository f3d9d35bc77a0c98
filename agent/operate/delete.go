package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vedette-io/vedette"
)

// delete deletes one object or all that a selector fits, and waits until they
// are gone.
func (o *Operator) delete(ctx context.Context, a vedette.DeleteArgs) result {
	if _, err := propagation(a.Propagation); err != nil {
		return failed(err)
	}
	if a.Name != "" && (a.LabelSelector != "" || a.FieldSelector != "" || a.All || a.AllNamespaces) {
		return failed(vedette.Errorf(vedette.Invalid, "the delete names %s and chooses others: leave one out", a.Name))
	}
	if a.Name != "" {
		p, err := o.find(ctx, a.Target)
		if err != nil {
			return failed(err)
		}
		return o.deleteOne(ctx, p, a)
	}
	if err := choosing(a); err != nil {
		return failed(err)
	}
	p, err := o.findAll(ctx, a.Target)
	if err != nil {
		return failed(err)
	}
	switch {
	case a.AllNamespaces:
		p.namespace = ""
	case p.Namespaced && p.namespace == "":
		p.namespace = "default"
	}
	return o.deleteFitting(ctx, p, a)
}

// choosing refuses a delete that would choose more than its caller can have meant.
func choosing(a vedette.DeleteArgs) error {
	labels, fields := a.LabelSelector != "", a.FieldSelector != ""
	switch {
	case labels && !selects(a.LabelSelector), fields && !selectsFields(a.FieldSelector), !labels && !fields && !a.All:
		return vedette.Errorf(vedette.Invalid, "the delete names neither an object nor labels: it would delete every %s", a.Kind)
	case a.All && (labels || fields):
		return vedette.Errorf(vedette.Invalid, "the delete means all objects, and some by a selector: leave one out")
	}
	return nil
}

// selectsFields is selects for fields.
func selectsFields(selector string) bool {
	if strings.ContainsRune(selector, 0) {
		return false
	}
	parsed, err := fields.ParseSelector(selector)
	return err != nil || !parsed.Empty()
}

// selects reports whether a selector asks for anything at all. One of white space
// fits every object, and a zero byte ends a selector for its parser, so that what
// stands behind it would not count. What is broken otherwise the cluster refuses.
func selects(selector string) bool {
	if strings.ContainsRune(selector, 0) {
		return false
	}
	parsed, err := labels.Parse(selector)
	return err != nil || !parsed.Empty()
}

func (o *Operator) deleteFitting(ctx context.Context, p place, a vedette.DeleteArgs) result {
	items, err := o.all(ctx, p.list(), a.LabelSelector, a.FieldSelector)
	if err != nil {
		return failed(err)
	}
	a.MissingOK, a.OnlyKnown = true, true // one that went by itself is gone, and what took its name since was not chosen
	var r result
	var errs []error
	var doomed []victim
	for _, item := range items {
		meta, err := metaOf(item)
		if err != nil {
			return failed(err)
		}
		p.namespace, p.name, a.KnownUID = meta.Namespace, meta.Name, string(meta.UID)
		v, err := o.condemn(ctx, p, a)
		switch {
		case conflicting(err): // with another one of that name
			doomed = append(doomed, victim{place: p, uid: a.KnownUID, gone: true})
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", p.key(), err))
		case v.uid != "":
			doomed = append(doomed, v)
		}
	}
	for _, v := range doomed {
		r.Keys, r.UIDs = append(r.Keys, v.key()), append(r.UIDs, v.uid)
		if err := o.await(ctx, v, a); err != nil {
			errs = append(errs, err)
		}
	}
	r.err = errors.Join(errs...)
	return r
}

func (o *Operator) deleteOne(ctx context.Context, p place, a vedette.DeleteArgs) result {
	v, err := o.condemn(ctx, p, a)
	if err != nil {
		return failed(err)
	}
	if v.uid == "" {
		return result{}
	}
	r := result{Outcome: vedette.Outcome{Keys: []vedette.Key{p.key()}, UIDs: []string{v.uid}}}
	r.err = o.await(ctx, v, a)
	return r
}

// victim is an object that is being deleted.
type victim struct {
	place
	uid  string // empty where nothing was there
	gone bool   // it is known to be
}

// condemn asks for the deletion of an object. Its uid, known or read, keeps another
// one under the same name from being deleted, or waited for.
func (o *Operator) condemn(ctx context.Context, p place, a vedette.DeleteArgs) (victim, error) {
	if a.KnownUID != "" {
		v, err := o.strike(ctx, victim{place: p, uid: a.KnownUID}, a)
		if !misled(ctx, err, a) {
			return v, err
		}
	}
	meta, err := o.meta(ctx, p)
	if missing(err) && a.MissingOK {
		return victim{}, nil
	}
	if err != nil {
		return victim{}, err
	}
	v, err := o.strike(ctx, victim{place: p, uid: string(meta.UID)}, a)
	if missing(err) { // it went between the two
		v.gone, err = true, nil
	}
	return v, err
}

// misled reports whether a deletion failed of a uid that is out of date. Where an
// answer was lost before, what conflicts with the uid may have come after an object
// that we deleted ourselves.
func misled(ctx context.Context, err error, a vedette.DeleteArgs) bool {
	return conflicting(err) && !a.OnlyKnown && !lostBefore(ctx) || missing(err) && kindless(err)
}

// strike asks for the deletion of the object of a uid. One that is not there is gone,
// which is no failure where it may be, or where a request of ours whose answer was
// lost may have deleted it.
func (o *Operator) strike(ctx context.Context, v victim, a vedette.DeleteArgs) (victim, error) {
	policy, err := propagation(a.Propagation)
	if err != nil {
		return victim{}, err
	}
	uid := types.UID(v.uid)
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:           metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		GracePeriodSeconds: a.GraceSeconds, PropagationPolicy: &policy,
		Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		return victim{}, err
	}
	raw, _, err := o.do(ctx, v.place, call{method: http.MethodDelete, contentType: typeJSON, body: body})
	if missing(err) && !kindless(err) && (a.MissingOK || lostBefore(ctx)) {
		v.gone, err = true, nil
		return v, nil
	}
	v.gone = err == nil && goneBy(raw, v.uid)
	return v, err
}

// goneBy reports whether the answer to a deletion says that it is complete: instead
// of the object it names the uid of what was.
func goneBy(answer []byte, uid string) bool {
	var s metav1.Status
	return json.Unmarshal(answer, &s) == nil && s.Kind == "Status" && s.Status == metav1.StatusSuccess &&
		s.Details != nil && string(s.Details.UID) == uid
}

func (o *Operator) meta(ctx context.Context, p place) (*metav1.PartialObjectMetadata, error) {
	raw, _, err := o.do(ctx, p, call{accept: metadataOnly + "," + typeJSON})
	if err != nil {
		return nil, err
	}
	return metaOf(raw)
}

// await waits until an object is gone, or another one stands under its name.
func (o *Operator) await(ctx context.Context, v victim, a vedette.DeleteArgs) error {
	if a.NoWait || v.gone {
		return nil
	}
	pause := 20 * time.Millisecond
	for {
		meta, err := o.meta(ctx, v.place)
		if missing(err) || err == nil && string(meta.UID) != v.uid {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s is being deleted, and whether it is gone can't be read: %w", v.key(), err)
		}
		if ctx.Err() != nil || !sleep(ctx, pause) {
			return unfinished(v, meta)
		}
		pause = min(2*pause, time.Second)
	}
}

// unfinished says what an object that is being deleted waits for.
func unfinished(v victim, meta *metav1.PartialObjectMetadata) error {
	why := "the cluster did not say what for"
	switch {
	case meta == nil:
	case len(meta.Finalizers) > 0:
		why = "it waits for its finalizers: " + strings.Join(meta.Finalizers, ", ")
	case meta.DeletionGracePeriodSeconds != nil:
		why = fmt.Sprintf("it has %d s to end", *meta.DeletionGracePeriodSeconds)
	}
	return &refusal{Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("%s is being deleted, but was not gone before the operation's deadline: %s", v.key(), why)}
}

// propagation reads a policy in any case.
func propagation(s string) (metav1.DeletionPropagation, error) {
	switch strings.ToLower(s) {
	case "", "background", "true":
		return metav1.DeletePropagationBackground, nil
	case "foreground":
		return metav1.DeletePropagationForeground, nil
	case "orphan", "false":
		return metav1.DeletePropagationOrphan, nil
	}
	return "", vedette.Errorf(vedette.Invalid, "%q is no propagation policy: write foreground, background or orphan", s)
}
