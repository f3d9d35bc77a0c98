// Package catalog caches the small tables to which rows refer by id: kinds, accounts, and the dictionaries with which columns
// are compressed. It has the keys of rows, in which such ids stand for names.
package catalog
