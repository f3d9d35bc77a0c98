package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/test/databases"
)

// TestServerErrorClasses makes the servers themselves return each code that they can be made to
// return, while an object is written.
func TestServerErrorClasses(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		dbURL := databases.PostgreSQL(t)
		testServerErrors(t, dbURL, []string{"22001", "22021", "22P02", "23502", "23514", "54000", "54001"},
			[]string{"08006", "0A000", "23505", "25006", "25P03", "26000", "40001", "40P01", "42P01", "53100", "53200", "53300", "55P03", "57014", "57P03", "58030", "P0001", "XX000", "ZZ999"},
			func(code string) []string {
				return []string{`CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.name = '2' THEN RAISE EXCEPTION 'no' USING ERRCODE = '` + code + `'; END IF; RETURN new; END $$`,
					`DROP TRIGGER IF EXISTS failing ON objects`, `CREATE TRIGGER failing BEFORE INSERT ON objects FOR EACH ROW EXECUTE FUNCTION fail()`}
			}, `DROP TRIGGER failing ON objects`)
	})
	t.Run("MariaDB", func(t *testing.T) {
		dbURL := databases.MariaDB(t)
		testServerErrors(t, dbURL, []string{"1048", "1153", "1264", "1265", "1366", "1406"},
			[]string{"1020", "1021", "1030", "1040", "1047", "1053", "1062", "1105", "1114", "1146", "1180", "1205", "1213", "1290", "1317", "1792", "1836", "1927", "1969", "2013", "3100", "4025"},
			func(code string) []string {
				return []string{`DROP TRIGGER IF EXISTS failing`, `CREATE TRIGGER failing BEFORE INSERT ON objects FOR EACH ROW BEGIN IF new.name = '2' THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = ` + code + `; END IF; END`}
			}, `DROP TRIGGER failing`)
	})
}

func testServerErrors(t *testing.T, dbURL string, dataCodes, transientCodes []string, failWith func(code string) []string, cleanup string) {
	otherCodes := []string{"0A000", "42P01", "P0001", "ZZ999", "1020", "1146", "4025"} // retrying is useless, as far as is known
	s := storetest.Open(t, dbURL)
	term := registerAccount(t, s)
	for _, code := range slices.Concat(dataCodes, transientCodes) {
		for _, statement := range failWith(code) {
			if err := databases.Exec(dbURL, statement); err != nil {
				t.Fatal(err)
			}
		}
		err := commitOne(t, s, term, 2)
		if err == nil || errors.Is(err, sqldb.ErrData) != slices.Contains(dataCodes, code) {
			t.Errorf("%s: got %v, data error %v, want data error %v", code, err, errors.Is(err, sqldb.ErrData), slices.Contains(dataCodes, code))
		}
		if want := !slices.Contains(slices.Concat(dataCodes, otherCodes), code); (vedette.KindOf(err) == vedette.Unavailable) != want {
			t.Errorf("%s: got %v, unavailable %v, want %v", code, err, !want, want)
		}
		if err := commitOne(t, s, term, 3); err != nil {
			t.Errorf("after %s: got %v, want no error for another object", code, err)
		}
	}
	if err := databases.Exec(dbURL, cleanup); err != nil {
		t.Fatal(err)
	}
	if err := commitOne(t, s, term, 2); err != nil {
		t.Errorf("without the trigger: got %v, want no error", err)
	}
}
