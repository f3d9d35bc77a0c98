package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
)

// Field numbers of vedette.proto that EncodeUpsert writes by hand.
const (
	recordUpsert = protowire.Number(6)
	upsertBody   = protowire.Number(11)
)

// Step is any of the cases of a record.
type Step = isRecord_Step

// EncodeStep encodes a record that holds a step and nothing else: the account,
// term and feed are written before it when it is sent.
func EncodeStep(step Step) ([]byte, error) {
	b, err := proto.Marshal(&Record{Step: step})
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", step, err)
	}
	return b, nil
}

// EncodeUpsert is EncodeStep for an object. The body, by far the largest part,
// is copied once, from where redaction left it.
func EncodeUpsert(o vedette.Object, live bool) ([]byte, error) {
	u := &Upsert{
		Namespace: o.Namespace, Name: o.Name, Uid: o.UID, ResourceVersion: o.ResourceVersion, ApiVersion: o.APIVersion,
		Created: o.Created, Labels: o.Labels, Annotations: o.Annotations, Summary: o.Summary, Live: live,
	}
	if o.Owner != (vedette.Owner{}) {
		u.Owner = &Owner{Kind: FromKind(o.Owner.Kind), Name: o.Owner.Name, Uid: o.Owner.UID}
	}
	options := proto.MarshalOptions{}
	inner := options.Size(u) + protowire.SizeTag(upsertBody) + protowire.SizeBytes(len(o.Body))
	b := make([]byte, 0, protowire.SizeTag(recordUpsert)+protowire.SizeBytes(inner))
	b = protowire.AppendTag(b, recordUpsert, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(inner))
	b, err := options.MarshalAppend(b, u)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Key, err)
	}
	b = protowire.AppendTag(b, upsertBody, protowire.BytesType)
	return protowire.AppendBytes(b, o.Body), nil
}
