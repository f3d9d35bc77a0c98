package read

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
)

// AttributesRow is an object as list views show it. If the object's agent has not reported it since
// this version of the program was installed, only the fields that are columns are set: the key, the
// account, the uid, and the moniker's application.
type AttributesRow struct {
	vedette.Key
	attributes.Attributes
	Account vedette.AccountName
	UID     string
	Moniker vedette.Moniker
}

// OwnerRef names an object that owns others.
type OwnerRef struct {
	Account vedette.AccountName
	UID     string
}

// AttributesQuery selects objects. A field that is empty selects everything; all other fields must
// match.
type AttributesQuery struct {
	Accounts  []vedette.AccountName
	Kinds     []vedette.Kind
	Namespace string
	Name      string
}
