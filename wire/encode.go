package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vedette-io/vedette"
)

// Field numbers of vedette.proto that are written by hand.
const (
	recordAccount = protowire.Number(1)
	recordTerm    = protowire.Number(2)
	recordFeed    = protowire.Number(3)
	recordUpsert  = protowire.Number(6)

	feedKind      = protowire.Number(1)
	feedNamespace = protowire.Number(2)

	upsertNamespace       = protowire.Number(1)
	upsertName            = protowire.Number(2)
	upsertUID             = protowire.Number(3)
	upsertResourceVersion = protowire.Number(4)
	upsertAPIVersion      = protowire.Number(5)
	upsertCreated         = protowire.Number(6)
	upsertOwner           = protowire.Number(7)
	upsertLabels          = protowire.Number(8)
	upsertAnnotations     = protowire.Number(9)
	upsertSummary         = protowire.Number(10)
	upsertBody            = protowire.Number(11)
	upsertLive            = protowire.Number(12)

	ownerKind = protowire.Number(1)
	ownerName = protowire.Number(2)
	ownerUID  = protowire.Number(3)

	kindGroup = protowire.Number(1)
	kindName  = protowire.Number(2)
)

// Step is any of the cases of a record.
type Step = isRecord_Step

// EncodeStep encodes a record that holds a step and nothing else: the account,
// term and feed are written before it when it is sent.
func EncodeStep(step Step) ([]byte, error) {
	return Marshal(&Record{Step: step})
}

// AppendHeader encodes what a record says besides its step: the step was encoded
// when it came up, and the term may have changed by the time that it is sent.
func AppendHeader(b []byte, account vedette.AccountName, term vedette.Term, feed vedette.Feed) []byte {
	feed.Kind.Group, feed.Kind.Name, feed.Namespace = validText(feed.Kind.Group), validText(feed.Kind.Name), validText(feed.Namespace)
	b = appendText(b, recordAccount, validText(string(account)))
	b = appendNumber(b, recordTerm, uint64(term))
	if feed == (vedette.Feed{}) {
		return b
	}
	kind := sizeText(kindGroup, feed.Kind.Group) + sizeText(kindName, feed.Kind.Name)
	b = protowire.AppendTag(b, recordFeed, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(feedKind)+protowire.SizeBytes(kind)+sizeText(feedNamespace, feed.Namespace)))
	b = protowire.AppendTag(b, feedKind, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(kind))
	b = appendText(b, kindGroup, feed.Kind.Group)
	b = appendText(b, kindName, feed.Kind.Name)
	return appendText(b, feedNamespace, feed.Namespace)
}

// EncodeUpsert is EncodeStep for an object, by far the most frequent step. It
// is written by hand because protobuf goes through maps by reflection, which
// cost as much as redaction did, and because the body, by far the largest part,
// is copied once then, from where redaction left it.
func EncodeUpsert(o vedette.Object, live bool) []byte {
	repairObject(&o)
	inner := sizeUpsert(&o, live)
	b := make([]byte, 0, protowire.SizeTag(recordUpsert)+protowire.SizeBytes(inner))
	b = protowire.AppendTag(b, recordUpsert, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(inner))
	b = appendText(b, upsertNamespace, o.Namespace)
	b = appendText(b, upsertName, o.Name)
	b = appendText(b, upsertUID, o.UID)
	b = appendText(b, upsertResourceVersion, o.ResourceVersion)
	b = appendText(b, upsertAPIVersion, o.APIVersion)
	b = appendNumber(b, upsertCreated, uint64(o.Created))
	b = appendOwner(b, &o.Owner)
	b = appendMap(b, upsertLabels, o.Labels)
	b = appendMap(b, upsertAnnotations, o.Annotations)
	b = appendText(b, upsertSummary, o.Summary)
	b = appendText(b, upsertBody, o.Body)
	return appendNumber(b, upsertLive, protowire.EncodeBool(live))
}

// repairObject makes the texts of an object's header valid UTF-8, as Marshal does. The
// body and the summary are bytes.
func repairObject(o *vedette.Object) {
	for _, s := range []*string{&o.Namespace, &o.Name, &o.UID, &o.ResourceVersion, &o.APIVersion,
		&o.Owner.Kind.Group, &o.Owner.Kind.Name, &o.Owner.Name, &o.Owner.UID} {
		*s = validText(*s)
	}
	o.Labels, o.Annotations = validMap(o.Labels), validMap(o.Annotations)
}

// validMap returns the map where it is valid UTF-8, or else a copy that is.
func validMap(m map[string]string) map[string]string {
	valid := true
	for k, v := range m {
		valid = valid && utf8.ValidString(k) && utf8.ValidString(v)
	}
	if valid {
		return m
	}
	repaired := make(map[string]string, len(m))
	for k, v := range m {
		repaired[validText(k)] = validText(v)
	}
	return repaired
}

func sizeUpsert(o *vedette.Object, live bool) int {
	return sizeText(upsertNamespace, o.Namespace) + sizeText(upsertName, o.Name) + sizeText(upsertUID, o.UID) +
		sizeText(upsertResourceVersion, o.ResourceVersion) + sizeText(upsertAPIVersion, o.APIVersion) +
		sizeNumber(upsertCreated, uint64(o.Created)) + sizeOwner(&o.Owner) +
		sizeMap(upsertLabels, o.Labels) + sizeMap(upsertAnnotations, o.Annotations) +
		sizeText(upsertSummary, o.Summary) + sizeText(upsertBody, o.Body) + sizeNumber(upsertLive, protowire.EncodeBool(live))
}

func appendOwner(b []byte, o *vedette.Owner) []byte {
	if *o == (vedette.Owner{}) {
		return b
	}
	kind := sizeText(kindGroup, o.Kind.Group) + sizeText(kindName, o.Kind.Name)
	b = protowire.AppendTag(b, upsertOwner, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(sizeOwnerInside(o)))
	b = protowire.AppendTag(b, ownerKind, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(kind))
	b = appendText(b, kindGroup, o.Kind.Group)
	b = appendText(b, kindName, o.Kind.Name)
	b = appendText(b, ownerName, o.Name)
	return appendText(b, ownerUID, o.UID)
}

func sizeOwner(o *vedette.Owner) int {
	if *o == (vedette.Owner{}) {
		return 0
	}
	return protowire.SizeTag(upsertOwner) + protowire.SizeBytes(sizeOwnerInside(o))
}

func sizeOwnerInside(o *vedette.Owner) int {
	kind := sizeText(kindGroup, o.Kind.Group) + sizeText(kindName, o.Kind.Name)
	return protowire.SizeTag(ownerKind) + protowire.SizeBytes(kind) + sizeText(ownerName, o.Name) + sizeText(ownerUID, o.UID)
}
