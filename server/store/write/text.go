package write

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// checkKey returns an error if the store cannot keep an object with that key.
func checkKey(key vedette.Key) error {
	if !sqldb.IsValidText(key.Name, sqldb.MaxName) || key.Name == "" || !sqldb.IsValidText(key.Namespace, sqldb.MaxNamespace) {
		return sqldb.DataErrorf("the name of %.600q cannot be stored: it must have 1 to %d bytes of UTF-8 and no NUL, and its namespace %d at most",
			key.String(), sqldb.MaxName, sqldb.MaxNamespace)
	}
	return nil
}

func checkObject(o *vedette.Object) error {
	if err := checkKey(o.Key); err != nil {
		return err
	}
	if !sqldb.IsValidText(o.ResourceVersion, sqldb.MaxVersion) || len(o.UID) > sqldb.MaxUID {
		return sqldb.DataErrorf("the uid or resourceVersion of %s is longer than %d bytes", o.Key, sqldb.MaxUID)
	}
	return nil
}

// checkMarks rejects marks that no API server sends. They would be kept in memory, and a database that
// rejects them would be asked again for ever.
func checkMarks(feeds []commit.FeedUpdate) error {
	for i := range feeds {
		u := &feeds[i]
		if u.Mark != nil && !sqldb.IsValidText(string(*u.Mark), sqldb.MaxVersion) || !sqldb.IsValidText(string(u.SnapshotMark),
			sqldb.MaxVersion) {
			return vedette.Errorf(vedette.Invalid, "the resourceVersion of the feed %.300s cannot be stored: it must have at most %d bytes of UTF-8 and no NUL",
				u.Feed.String(), sqldb.MaxVersion)
		}
	}
	return nil
}
