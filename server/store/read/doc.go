// Package read answers queries from the database: objects in pages, searches, what list views show, the clusters of applications,
// feeds and their counts. It writes nothing.
package read
