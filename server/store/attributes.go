package store

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
)

// AttributesRow is an object as list views show it.
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
