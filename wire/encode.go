package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vedette-io/vedette"
)

// The field numbers of vedette.proto that this file encodes by hand.
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

// Step is a case of the oneof in Record.
type Step = isRecord_Step

// EncodeStep encodes a record that has only a step. AppendHeader adds the account, the
// term and the feed when the record is sent.
func EncodeStep(step Step) ([]byte, error) {
	return Marshal(&Record{Step: step})
}

// AppendHeader encodes the fields of a record besides its step. They are encoded
// separately because the term may change between the encoding of the step and its
// sending.
func AppendHeader(b []byte, account vedette.AccountName, term vedette.Term, feed vedette.Feed) []byte {
	feed.Kind.Group = toValidUTF8(feed.Kind.Group)
	feed.Kind.Name = toValidUTF8(feed.Kind.Name)
	feed.Namespace = toValidUTF8(feed.Namespace)
	b = appendBytes(b, recordAccount, toValidUTF8(string(account)))
	b = appendVarint(b, recordTerm, uint64(term))
	if feed == (vedette.Feed{}) {
		return b
	}
	kindSize := sizeBytes(kindGroup, feed.Kind.Group) + sizeBytes(kindName, feed.Kind.Name)
	b = protowire.AppendTag(b, recordFeed, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(feedKind)+protowire.SizeBytes(kindSize)+sizeBytes(feedNamespace, feed.Namespace)))
	b = protowire.AppendTag(b, feedKind, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(kindSize))
	b = appendBytes(b, kindGroup, feed.Kind.Group)
	b = appendBytes(b, kindName, feed.Kind.Name)
	return appendBytes(b, feedNamespace, feed.Namespace)
}

// EncodeUpsert is EncodeStep for an object, which is by far the most frequent step. It
// is written by hand because protobuf encodes maps by reflection, which costs as much
// as redaction, and because this way the body, the largest part, is copied only once.
func EncodeUpsert(o vedette.Object, live bool) []byte {
	repairObject(&o)
	size := sizeUpsert(&o, live)
	b := make([]byte, 0, protowire.SizeTag(recordUpsert)+protowire.SizeBytes(size))
	b = protowire.AppendTag(b, recordUpsert, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = appendBytes(b, upsertNamespace, o.Namespace)
	b = appendBytes(b, upsertName, o.Name)
	b = appendBytes(b, upsertUID, o.UID)
	b = appendBytes(b, upsertResourceVersion, o.ResourceVersion)
	b = appendBytes(b, upsertAPIVersion, o.APIVersion)
	b = appendVarint(b, upsertCreated, uint64(o.Created))
	b = appendOwner(b, &o.Owner)
	b = appendMap(b, upsertLabels, o.Labels)
	b = appendMap(b, upsertAnnotations, o.Annotations)
	b = appendBytes(b, upsertSummary, o.Summary)
	b = appendBytes(b, upsertBody, o.Body)
	return appendVarint(b, upsertLive, protowire.EncodeBool(live))
}

// repairObject makes the strings of an object's header valid UTF-8, as Marshal does.
// The body and the summary are bytes.
func repairObject(o *vedette.Object) {
	for _, s := range []*string{&o.Namespace, &o.Name, &o.UID, &o.ResourceVersion, &o.APIVersion,
		&o.Owner.Kind.Group, &o.Owner.Kind.Name, &o.Owner.Name, &o.Owner.UID} {
		*s = toValidUTF8(*s)
	}
	o.Labels, o.Annotations = toValidUTF8Map(o.Labels), toValidUTF8Map(o.Annotations)
}

// toValidUTF8Map returns the map, or a copy with valid UTF-8 if it has invalid strings.
func toValidUTF8Map(m map[string]string) map[string]string {
	valid := true
	for k, v := range m {
		valid = valid && utf8.ValidString(k) && utf8.ValidString(v)
	}
	if valid {
		return m
	}
	repaired := make(map[string]string, len(m))
	for k, v := range m {
		repaired[toValidUTF8(k)] = toValidUTF8(v)
	}
	return repaired
}

func sizeUpsert(o *vedette.Object, live bool) int {
	return sizeBytes(upsertNamespace, o.Namespace) + sizeBytes(upsertName, o.Name) + sizeBytes(upsertUID, o.UID) +
		sizeBytes(upsertResourceVersion, o.ResourceVersion) + sizeBytes(upsertAPIVersion, o.APIVersion) +
		sizeVarint(upsertCreated, uint64(o.Created)) + sizeOwner(&o.Owner) +
		sizeMap(upsertLabels, o.Labels) + sizeMap(upsertAnnotations, o.Annotations) +
		sizeBytes(upsertSummary, o.Summary) + sizeBytes(upsertBody, o.Body) + sizeVarint(upsertLive, protowire.EncodeBool(live))
}

func appendOwner(b []byte, o *vedette.Owner) []byte {
	if *o == (vedette.Owner{}) {
		return b
	}
	kindSize := sizeBytes(kindGroup, o.Kind.Group) + sizeBytes(kindName, o.Kind.Name)
	b = protowire.AppendTag(b, upsertOwner, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(sizeOwnerFields(o)))
	b = protowire.AppendTag(b, ownerKind, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(kindSize))
	b = appendBytes(b, kindGroup, o.Kind.Group)
	b = appendBytes(b, kindName, o.Kind.Name)
	b = appendBytes(b, ownerName, o.Name)
	return appendBytes(b, ownerUID, o.UID)
}

func sizeOwner(o *vedette.Owner) int {
	if *o == (vedette.Owner{}) {
		return 0
	}
	return protowire.SizeTag(upsertOwner) + protowire.SizeBytes(sizeOwnerFields(o))
}

func sizeOwnerFields(o *vedette.Owner) int {
	kindSize := sizeBytes(kindGroup, o.Kind.Group) + sizeBytes(kindName, o.Kind.Name)
	return protowire.SizeTag(ownerKind) + protowire.SizeBytes(kindSize) + sizeBytes(ownerName, o.Name) + sizeBytes(ownerUID, o.UID)
}
