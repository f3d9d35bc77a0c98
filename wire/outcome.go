package wire

import (
	"encoding/json"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vedette-io/vedette"
)

var outcomeStates = map[vedette.OutcomeState]Outcome_State{
	vedette.Done:   Outcome_STATE_DONE,
	vedette.Failed: Outcome_STATE_FAILED,
	vedette.Lost:   Outcome_STATE_LOST,
}

// FromOutcome encodes an outcome without its Stream, which is sent separately. The
// message shares the outcome's bytes.
func FromOutcome(out vedette.Outcome) *Outcome {
	o := &Outcome{Id: string(out.ID), State: outcomeStates[out.State], Status: uint32(out.Status), Reason: out.Reason, Message: out.Message,
		Uids: out.UIDs, Result: out.Result, Unchanged: out.Unchanged, Warnings: out.Warnings}
	for _, key := range out.Keys {
		o.Keys = append(o.Keys, fromKey(key))
	}
	if out.Absent != nil {
		o.Absent = &Absence{Key: fromKey(out.Absent.Key), Version: out.Absent.Version}
	}
	if out.Awaited != nil {
		o.Awaited = &ObjectVersion{Key: fromKey(out.Awaited.Key), Version: out.Awaited.Version}
	}
	for _, c := range out.Changes {
		o.Changes = append(o.Changes, &Change{Key: fromKey(c.Key), Before: c.Before, After: c.After,
			Patch: c.Patch, TemplateBefore: c.TemplateBefore, TemplateAfter: c.TemplateAfter, Note: c.Note})
	}
	if out.CacheObject != nil {
		o.FreshKind, o.Fresh = FromKind(out.CacheObject.Kind), FromObject(out.CacheObject)
		return o
	}
	for _, object := range out.Objects {
		o.Objects = append(o.Objects, object)
	}
	return o
}

// outcomeObjects is the number of the field Outcome.objects.
const outcomeObjects = 8

// WriteOutcomeObject writes one object of an encoded Outcome. The rest of the outcome follows behind the objects:
// concatenated encodings of a message are one message.
func WriteOutcomeObject(w io.Writer, object []byte) error {
	head := protowire.AppendTag(make([]byte, 0, 16), outcomeObjects, protowire.BytesType)
	if _, err := w.Write(protowire.AppendVarint(head, uint64(len(object)))); err != nil {
		return err
	}
	_, err := w.Write(object)
	return err
}

// ToOutcome decodes an outcome. An unknown state is decoded as Lost, because this
// program cannot tell what became of the operation.
func ToOutcome(o *Outcome) vedette.Outcome {
	out := vedette.Outcome{ID: vedette.OperationID(o.GetId()), State: vedette.Lost, Status: int(o.GetStatus()), Reason: o.GetReason(),
		Message: o.GetMessage(),
		UIDs:    o.GetUids(), Result: o.GetResult(), Unchanged: o.GetUnchanged(), Warnings: o.GetWarnings()}
	for state, wireState := range outcomeStates {
		if wireState == o.GetState() {
			out.State = state
		}
	}
	for _, key := range o.GetKeys() {
		out.Keys = append(out.Keys, toKey(key))
	}
	if a := o.GetAbsent(); a != nil {
		out.Absent = &vedette.Absence{Key: toKey(a.GetKey()), Version: a.GetVersion()}
	}
	if a := o.GetAwaited(); a != nil {
		out.Awaited = &vedette.ObjectVersion{Key: toKey(a.GetKey()), Version: a.GetVersion()}
	}
	for _, c := range o.GetChanges() {
		out.Changes = append(out.Changes, vedette.ObjectChange{
			Key:    toKey(c.GetKey()),
			Before: c.GetBefore(), After: c.GetAfter(), Patch: c.GetPatch(), TemplateBefore: c.GetTemplateBefore(),
			TemplateAfter: c.GetTemplateAfter(), Note: c.GetNote()})
	}
	for _, object := range o.GetObjects() {
		out.Objects = append(out.Objects, object)
	}
	if o.GetFresh() != nil {
		fresh := ToObject(ToKind(o.GetFreshKind()), o.GetFresh())
		out.CacheObject, out.Objects = &fresh, []json.RawMessage{fresh.Body}
	}
	return out
}

func fromKey(key vedette.Key) *Key {
	return &Key{Kind: FromKind(key.Kind), Namespace: key.Namespace, Name: key.Name}
}

func toKey(key *Key) vedette.Key {
	return vedette.Key{Kind: ToKind(key.GetKind()), Namespace: key.GetNamespace(), Name: key.GetName()}
}

// FromObject encodes an object and shares its bytes. Feeds use EncodeUpsert instead,
// which is faster.
func FromObject(o *vedette.Object) *Upsert {
	u := &Upsert{Namespace: o.Namespace, Name: o.Name, Uid: o.UID, ResourceVersion: o.ResourceVersion, ApiVersion: o.APIVersion,
		Created: o.Created, Labels: o.Labels, Annotations: o.Annotations, Summary: o.Summary, Body: o.Body}
	if o.Owner != (vedette.Owner{}) {
		u.Owner = &Owner{Kind: FromKind(o.Owner.Kind), Name: o.Owner.Name, Uid: o.Owner.UID}
	}
	return u
}

// ToObject decodes an object of a kind.
func ToObject(kind vedette.Kind, u *Upsert) vedette.Object {
	return vedette.Object{
		Key:             vedette.Key{Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName()},
		UID:             u.GetUid(),
		ResourceVersion: u.GetResourceVersion(),
		APIVersion:      u.GetApiVersion(),
		Created:         u.GetCreated(),
		Owner:           vedette.Owner{Kind: ToKind(u.GetOwner().GetKind()), Name: u.GetOwner().GetName(), UID: u.GetOwner().GetUid()},
		Labels:          u.GetLabels(),
		Annotations:     u.GetAnnotations(),
		Summary:         u.GetSummary(),
		Body:            u.GetBody(),
	}
}
