package operate

import (
	"context"
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
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// delete deletes one object, or those that match a selector, and waits until they are gone.
func (r *run) delete(ctx context.Context, a vedette.DeleteArgs) result {
	if _, err := parsePropagation(a.Propagation); err != nil {
		return errorResult(err)
	}
	if a.Name != "" && (a.LabelSelector != "" || a.FieldSelector != "" || a.All || a.AllNamespaces) {
		return errorResult(vedette.Errorf(vedette.Invalid, "the delete has both the name %s and a selection: remove one of them", a.Name))
	}
	if a.Name != "" {
		p, err := r.ResolveObject(ctx, a.Target)
		if err != nil {
			return errorResult(err)
		}
		return r.deleteNamed(ctx, p, a)
	}
	if err := checkSelection(a); err != nil {
		return errorResult(err)
	}
	p, err := r.ResolveTarget(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	switch {
	case a.AllNamespaces:
		p.Namespace = ""
	case p.Namespaced && p.Namespace == "":
		p.Namespace = r.DefaultNamespace()
	}
	return r.deleteSelected(ctx, p, a)
}

// checkSelection rejects a selection that matches more than the caller can have meant.
func checkSelection(a vedette.DeleteArgs) error {
	hasLabels, hasFields := a.LabelSelector != "", a.FieldSelector != ""
	switch {
	case hasLabels && !hasLabelRequirements(a.LabelSelector), hasFields && !hasFieldRequirements(a.FieldSelector),
		!hasLabels && !hasFields && !a.All:
		return vedette.Errorf(vedette.Invalid, "the delete has neither a name nor a selector: it would delete every %s", a.Kind)
	case a.All && (hasLabels || hasFields):
		return vedette.Errorf(vedette.Invalid, "the delete has both a selector and all: remove one of them")
	}
	return nil
}

// hasFieldRequirements is hasLabelRequirements for fields.
func hasFieldRequirements(selector string) bool {
	if strings.ContainsRune(selector, 0) {
		return false
	}
	parsed, err := fields.ParseSelector(selector)
	return err != nil || !parsed.Empty()
}

// hasLabelRequirements reports whether a selector restricts anything. A selector of white space
// matches every object, and a zero byte ends a selector for its parser, so that the text after it
// would be ignored. Other invalid selectors are rejected by the cluster.
func hasLabelRequirements(selector string) bool {
	if strings.ContainsRune(selector, 0) {
		return false
	}
	parsed, err := labels.Parse(selector)
	return err != nil || !parsed.Empty()
}

func (r *run) deleteSelected(ctx context.Context, p request.Path, a vedette.DeleteArgs) result {
	items, err := r.listMeta(ctx, p.Collection(), a.LabelSelector, a.FieldSelector)
	if err != nil {
		return errorResult(err)
	}
	a.MissingOK, a.OnlyKnown = true, true // an object that is gone is no error, and a new one of its name was not selected
	var res result
	var errs []error
	var pending []deletion
	for _, item := range items {
		p.Namespace = item.namespace
		p.Name = item.name
		a.KnownUID = item.uid
		release := r.TemporaryMemory()
		v, err := r.requestDelete(ctx, p, a)
		switch {
		case request.IsConflict(err): // its name belongs to a new object
			pending = append(pending, deletion{Path: p, uid: a.KnownUID, gone: true})
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", p.Key(), err))
			continue // what is kept of the error counts
		case v.uid != "":
			pending = append(pending, v)
		}
		release()
	}
	r.Wait(ctx, func(ctx context.Context) {
		for _, v := range pending {
			res.Keys, res.UIDs = append(res.Keys, v.Key()), append(res.UIDs, v.uid)
			if err := r.awaitDeletion(ctx, v, a); err != nil {
				errs = append(errs, err)
			}
		}
	})
	res.err = errors.Join(errs...)
	return res
}

// waitHere waits in the middle of an operation, which continues with changes.
func waitHere(ctx context.Context, wait func(context.Context)) { wait(ctx) }

// waitFunc calls a function that waits.
type waitFunc = func(context.Context, func(context.Context))

// deleteNamed deletes the object that the operation names. The outcome says since when there is none, unless it is only a preview.
func (r *run) deleteNamed(ctx context.Context, p request.Path, a vedette.DeleteArgs) result {
	v, err := r.requestDelete(ctx, p, a)
	for tries := 0; v.missing && !r.IsDryRun() && tries < maxRecreations; tries++ {
		var created listedMeta
		v.version, created = r.proveAbsence(ctx, p)
		if created.uid == "" || a.OnlyKnown || r.HasLostAnswer() { // we may have deleted the one that was meant, and this one came after it
			break
		}
		v, err = r.deleteByUID(ctx, deletion{Path: p, uid: created.uid, version: created.version}, a)
	}
	res := r.awaitOne(ctx, v, err, a, r.Wait)
	if isGone := v.missing || v.gone || res.err == nil && !a.NoWait; isGone && v.version != "" {
		res.Absent = &vedette.Absence{Key: p.Key(), Version: v.version}
	}
	return res
}

// maxRecreations is how often a deletion begins again because somebody has created the object while it was found missing.
const maxRecreations = 3

// absenceTimeout is how long an operation that has found nothing may take to find out since when that is so.
const absenceTimeout = 2 * time.Second

// proveAbsence lists the objects with the name of p. If there is none, it returns the resourceVersion of the list; it is empty if
// the list does not show that. If there is one, it was created since, and proveAbsence returns that. A list has the resourceVersion of
// the state that it shows, and the 404 of an object has none (docs/decisions/0199-a-deletion-says-what-is-gone.md).
func (r *run) proveAbsence(ctx context.Context, p request.Path) (version string, created listedMeta) {
	ctx, cancel := context.WithTimeout(ctx, absenceTimeout)
	defer cancel()
	release := r.TemporaryMemory()
	defer release()
	list := p.ListMetaRequest("", fields.OneTermEqualSelector("metadata.name", p.Name).String())
	meta, err := r.ForEachOfPage(ctx, p.Collection(), list, func() error { created = listedMeta{}; return nil }, func(raw []byte) error {
		listed, err := parseListedMeta(raw)
		if err == nil && listed.name == p.Name {
			created = listed
		}
		return err
	})
	switch {
	case err != nil || !strings.HasSuffix(meta.Kind, "List"): // for example because the agent may not list the kind
		return "", listedMeta{}
	case created.name != "" || meta.Continue != "": // the rest of the list may have it
		return "", created
	}
	return meta.Version, listedMeta{}
}

// absence returns up to which resourceVersion the object is gone; nil if it exists, or if the list does not show that.
func (r *run) absence(ctx context.Context, p request.Path) *vedette.Absence {
	version, _ := r.proveAbsence(ctx, p)
	if version == "" {
		return nil
	}
	return &vedette.Absence{Key: p.Key(), Version: version}
}

// deleteOne deletes an object, and waits by wait.
func (r *run) deleteOne(ctx context.Context, p request.Path, a vedette.DeleteArgs, wait waitFunc) result {
	v, err := r.requestDelete(ctx, p, a)
	return r.awaitOne(ctx, v, err, a, wait)
}

// awaitOne waits by wait until an object is gone whose deletion was requested.
func (r *run) awaitOne(ctx context.Context, v deletion, err error, a vedette.DeleteArgs, wait waitFunc) result {
	if err != nil {
		return errorResult(err)
	}
	if v.uid == "" {
		return result{}
	}
	res := result{Outcome: vedette.Outcome{Keys: []vedette.Key{v.Key()}, UIDs: []string{v.uid}}}
	wait(ctx, func(ctx context.Context) { res.err = r.awaitDeletion(ctx, v, a) })
	return res
}

// deletion is an object that is being deleted.
type deletion struct {
	request.Path
	uid     string // empty if there was no object
	version string // the last one at which it is known to have existed, or at which there is none; empty if that is not known
	gone    bool   // no need to wait
	missing bool   // there was no object, which may be an error
}

// requestDelete requests the deletion of an object by its uid, which is known or read. So a new
// object with the same name is neither deleted nor waited for.
func (r *run) requestDelete(ctx context.Context, p request.Path, a vedette.DeleteArgs) (deletion, error) {
	if a.KnownUID != "" {
		v, err := r.deleteByUID(ctx, deletion{Path: p, uid: a.KnownUID}, a)
		if !r.isStaleUID(err, a) {
			return v, err
		}
	}
	meta, err := r.getIdentity(ctx, p)
	if (request.IsNotFound(err) || request.IsKindNotServed(err)) && a.MissingOK {
		return deletion{missing: isObjectMissing(err)}, nil
	}
	if err != nil {
		return deletion{missing: isObjectMissing(err)}, err
	}
	r.NoteVersion(p.Key(), meta.ResourceVersion)
	v, err := r.deleteByUID(ctx, deletion{Path: p, uid: string(meta.UID), version: meta.ResourceVersion}, a)
	if request.IsNotFound(err) || request.IsKindNotServed(err) { // it was deleted between the two requests
		v.gone, err = true, nil
	}
	return v, err
}

// isObjectMissing reports whether an error says that the API server has the kind, and not the object.
func isObjectMissing(err error) bool {
	return request.IsNotFound(err) && !request.IsKindNotFound(err)
}

// isStaleUID reports whether a deletion failed because its uid is out of date. After a lost answer
// that is not certain: we may have deleted the object of the uid ourselves, and the one that
// conflicts may be new.
func (r *run) isStaleUID(err error, a vedette.DeleteArgs) bool {
	return request.IsConflict(err) && !a.OnlyKnown && !r.HasLostAnswer() || request.IsKindNotFound(err) || request.IsKindNotServed(err)
}

// deleteByUID requests the deletion of the object with a uid. That it does not exist is not an error
// if the caller allows it, or if a request whose answer was lost may have deleted it.
func (r *run) deleteByUID(ctx context.Context, v deletion, a vedette.DeleteArgs) (deletion, error) {
	policy, err := parsePropagation(a.Propagation)
	if err != nil {
		return deletion{}, err
	}
	uid := types.UID(v.uid)
	raw, _, err := r.Do(ctx, v.Path, request.Request{Method: http.MethodDelete, DeleteOptions: metav1.DeleteOptions{
		GracePeriodSeconds: a.GraceSeconds, PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}}})
	v.missing = isObjectMissing(err)
	if v.missing && (a.MissingOK || r.HasLostAnswer()) {
		v.gone = true
		return v, nil
	}
	v.gone = err == nil && confirmsDeletion(raw, v.uid)
	return v, err
}

// confirmsDeletion reports whether the response to a deletion says that the object is gone: then it
// is a Status with the uid, and not the object.
func confirmsDeletion(response []byte, uid string) bool {
	var s metav1.Status
	return manifest.Decode(response, &s) == nil && s.Kind == "Status" && s.Status == metav1.StatusSuccess &&
		s.Details != nil && string(s.Details.UID) == uid
}

func (r *run) getMeta(ctx context.Context, p request.Path) (*metav1.PartialObjectMetadata, error) {
	raw, _, err := r.Do(ctx, p, request.Request{Accept: p.MetadataAcceptHeader()})
	if err != nil {
		return nil, err
	}
	return parseMeta(raw)
}

// getIdentity is getMeta for a deletion. An object has a name and a uid: another document, which a proxy may send, says nothing of whether
// the object is there.
func (r *run) getIdentity(ctx context.Context, p request.Path) (*metav1.PartialObjectMetadata, error) {
	meta, err := r.getMeta(ctx, p)
	if err == nil && (meta.Name != p.Name || meta.UID == "") {
		return nil, vedette.Errorf(vedette.Unavailable, "%s answered with a document that is not the object %s, so it is unknown whether that exists: "+
			"check the address of the API server and what is before it", r.Host(), p.Key())
	}
	return meta, err
}

// awaitDeletion waits until an object is gone, or its name belongs to a new object.
func (r *run) awaitDeletion(ctx context.Context, v deletion, a vedette.DeleteArgs) error {
	if a.NoWait || v.gone {
		return nil
	}
	backoff, release := 20*time.Millisecond, r.TemporaryMemory()
	for {
		release()
		meta, err := r.getIdentity(ctx, v.Path)
		if request.IsNotFound(err) || request.IsKindNotServed(err) || err == nil && string(meta.UID) != v.uid {
			release()
			r.NoteGone(v.Key())
			return nil
		}
		if err != nil && ctx.Err() == nil && !request.IsKindNotFound(err) { // a kind that is being removed is gone soon
			return fmt.Errorf("%s is being deleted, but reading whether it is gone failed: %w", v.Key(), err)
		}
		if ctx.Err() != nil || !request.Sleep(ctx, backoff) {
			return deletionTimeout(ctx, v, meta)
		}
		backoff = min(2*backoff, time.Second)
	}
}

// deletionTimeout returns an error with the reason why an object is not gone yet.
func deletionTimeout(ctx context.Context, v deletion, meta *metav1.PartialObjectMetadata) error {
	reason := "the reason is unknown"
	switch {
	case meta == nil:
	case len(meta.Finalizers) > 0:
		reason = "it waits for its finalizers: " + strings.Join(meta.Finalizers, ", ")
	case meta.DeletionGracePeriodSeconds != nil:
		reason = fmt.Sprintf("its grace period is %d s", *meta.DeletionGracePeriodSeconds)
	}
	end := "operation's deadline"
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		end = fmt.Sprintf("operation ended (%v)", cause)
	}
	return &request.StatusError{Status: http.StatusGatewayTimeout, Reason: "Timeout",
		Message: fmt.Sprintf("%s is being deleted, but was not gone before the %s: %s", v.Key(), end, reason)}
}

// parsePropagation reads a policy, ignoring case.
func parsePropagation(s string) (metav1.DeletionPropagation, error) {
	switch strings.ToLower(s) {
	case "", "background", "true":
		return metav1.DeletePropagationBackground, nil
	case "foreground":
		return metav1.DeletePropagationForeground, nil
	case "orphan", "false":
		return metav1.DeletePropagationOrphan, nil
	}
	return "", vedette.Errorf(vedette.Invalid, "%q is not a propagation policy: write foreground, background or orphan", s)
}
