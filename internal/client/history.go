package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HistoryEntry is an operation in the history.
type HistoryEntry struct {
	ID, Account, Verb, Target, Origin, Server, Agent string
	User, Claimed, Proven, Service, Address          string // see vedette.Requester
	State, Reason, Message                           string
	DryRun                                           bool
	Status                                           int
	Undoes                                           string
	Accepted                                         time.Time
	Sent, Ended                                      *time.Time
	Changes                                          []Change // only of HistoryOperation
}

// Change is what an operation changed of an object.
type Change struct {
	Kind, Namespace, Name string
	Before                string `json:"resourceVersionBefore"`
	After                 string `json:"resourceVersionAfter"`
	Patch                 []PatchStep
	Note                  string
}

// PatchStep is a step of a JSON patch.
type PatchStep struct {
	Op, Path string
	Value    json.RawMessage
}

// Pending is the state of an operation that has not ended.
const Pending = "pending"

// HistoryQuery selects operations. Empty fields select all. Times are as the server reads them: how long ago, or RFC 3339.
type HistoryQuery struct {
	Account, Agent, State, Verb, Origin, User string
	Since, Until, EndedSince                  string
	Object, Namespace                         string
	Limit                                     int
	Cursor                                    string // of the previous page
}

// Retention is how long the server keeps operations.
type Retention struct {
	KeepSeconds, MaxBytes, Entries, Bytes int64
	Oldest                                *time.Time
}

// History is a part of the history.
type History struct {
	Items     []Item[HistoryEntry]
	Cursor    string     // of the next page; empty if there are no more
	Retention *Retention // nil of an older server
}

// maxPageSize is the maximum number of operations in a page.
const maxPageSize = 5000

// Operations returns the newest operations, at most h.Limit.
func (c *Client) Operations(ctx context.Context, h HistoryQuery) (History, error) {
	v := nonEmpty(map[string]string{"account": h.Account, "agent": h.Agent, "state": h.State, "verb": h.Verb, "origin": h.Origin,
		"user": h.User, "since": h.Since, "until": h.Until, "endedSince": h.EndedSince, "object": h.Object, "namespace": h.Namespace,
		"cursor": h.Cursor})
	var all History
	for {
		v.Set("limit", strconv.Itoa(min(maxPageSize, h.Limit-len(all.Items))))
		var page History
		if err := c.get(ctx, "/operations", v, &page); err != nil {
			return all, err
		}
		all.Items = append(all.Items, page.Items...)
		all.Cursor = page.Cursor
		all.Retention = page.Retention
		if page.Cursor == "" || len(all.Items) >= h.Limit {
			return all, nil
		}
		if page.Cursor == v.Get("cursor") {
			return all, c.repeatedPage("/operations")
		}
		v.Set("cursor", page.Cursor)
	}
}

// HistoryOperation returns one operation of the history, decoded and as JSON.
func (c *Client) HistoryOperation(ctx context.Context, id string) (HistoryEntry, json.RawMessage, error) {
	var raw json.RawMessage
	var p HistoryEntry
	if err := c.get(ctx, "/operations/"+url.PathEscape(strings.TrimSpace(id)), nil, &raw); err != nil {
		return p, nil, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, nil, fmt.Errorf("read operation %s: %w", id, err)
	}
	return p, raw, nil
}
