package clouddriver

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/history"
)

type operationStore interface {
	Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error)
	Operations(ctx context.Context, q history.Query) ([]history.Operation, string, error)
}

// operationRecord is an operation in the format of the Scale Agent. All times are in
// milliseconds since 1970 by the clock of the server that accepted the operation. Times of
// events that have not happened are omitted.
type operationRecord struct {
	OperationID     vedette.OperationID  `json:"operationId"`
	OperationType   vedette.Verb         `json:"operationType"`
	Account         vedette.AccountName  `json:"account"`
	StartTime       int64                `json:"startTime"`
	EndTime         int64                `json:"endTime,omitempty"`
	TotalDurationMs *int64               `json:"totalDurationMs,omitempty"`
	FinalOutcome    vedette.OutcomeState `json:"finalOutcome,omitempty"` // done, failed or lost
	Received        serverStep           `json:"opReceivedByClouddriver"`
	Processed       *serverStep          `json:"opProcessedByClouddriver,omitempty"`
	Sent            *agentStep           `json:"opSentToAgent,omitempty"`
	Result          *resultStep          `json:"resultReceivedFromAgent,omitempty"`
	Answered        *serverStep          `json:"resultReceivedByClouddriver,omitempty"`
}

type serverStep struct {
	Server vedette.ServerID `json:"clouddriverId"`
	Time   int64            `json:"time"`
}

type agentStep struct {
	Agent vedette.AgentID `json:"agentId"`
	Time  int64           `json:"time"`
}

type resultStep struct {
	Agent  vedette.AgentID  `json:"agentId"`
	Server vedette.ServerID `json:"clouddriverId"`
	Time   int64            `json:"time"`
	Result resultView       `json:"result"`
}

type resultView struct {
	Status     int   `json:"status"` // HTTP status
	DurationMs int64 `json:"durationMs"`
}

func newOperationRecord(row history.Operation) operationRecord {
	rec := operationRecord{OperationID: row.ID, OperationType: row.Verb, Account: row.Account, StartTime: row.Accepted.UnixMilli(),
		Received: serverStep{row.Server, row.Accepted.UnixMilli()}}
	wasSent := row.Agent != "" && !row.Sent.IsZero()
	if wasSent {
		rec.Processed = &serverStep{row.Server, row.Sent.UnixMilli()}
		rec.Sent = &agentStep{row.Agent, row.Sent.UnixMilli()}
	}
	if row.State == history.Pending || row.Ended.IsZero() {
		return rec
	}
	rec.FinalOutcome, rec.EndTime = row.State, row.Ended.UnixMilli()
	rec.TotalDurationMs = durationMs(row.Accepted, row.Ended)
	rec.Answered = &serverStep{row.Server, row.Ended.UnixMilli()}
	if wasSent && row.State != vedette.Lost {
		rec.Result = &resultStep{row.Agent, row.Server, row.Ended.UnixMilli(), resultView{row.Status, *durationMs(row.Sent, row.Ended)}}
	}
	return rec
}

func durationMs(from, to time.Time) *int64 {
	ms := to.UnixMilli() - from.UnixMilli()
	return &ms
}

// getOperation mirrors the Scale Agent's GET /armory/agent/operations/{opId}.
func (a *api) getOperation(w http.ResponseWriter, r *http.Request, p web.Params) error {
	row, err := a.Store.Operation(r.Context(), vedette.OperationID(p["id"]))
	if err != nil {
		return err
	}
	err = a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), row.Account, authorize.Read)
	if vedette.KindOf(err) == vedette.Denied {
		return history.NoOperation(row.ID)
	}
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, newOperationRecord(row))
}

// listOperations mirrors the Scale Agent's GET /armory/agent/operations. The newest operation
// comes first, and pages count from 1. Operations that the caller may not read have no place in them, because a
// hole would tell when others change something.
func (a *api) listOperations(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	items, page, err := parsePage(r.URL.Query())
	if err != nil {
		return err
	}
	accounts, err := a.historyAccounts(r)
	if err != nil {
		return err
	}
	rows, err := a.readOperationPage(r.Context(), history.Query{Accounts: accounts, Limit: items}, page)
	if err != nil {
		return err
	}
	records := []operationRecord{}
	for _, row := range rows {
		records = append(records, newOperationRecord(row))
	}
	return rest.WriteJSON(w, r, records)
}

// historyAccounts returns the accounts that the caller may read, or nil for all.
func (a *api) historyAccounts(r *http.Request) ([]vedette.AccountName, error) {
	readable, err := a.Authorizer.Readable(r.Context(), authorize.CallerOf(r))
	if err != nil || readable == nil {
		return nil, err
	}
	settings, err := a.views.Settings(r.Context())
	if err != nil {
		return nil, err
	}
	accounts := []vedette.AccountName{} // nil would mean all
	for _, name := range settings.Accounts() {
		if readable(name) {
			accounts = append(accounts, name)
		}
	}
	return accounts, nil
}

// readOperationPage reads all pages up to the requested one, because each page starts at the
// cursor of the previous one.
func (a *api) readOperationPage(ctx context.Context, q history.Query, page int) ([]history.Operation, error) {
	for n := 1; ; n++ {
		rows, next, err := a.Store.Operations(ctx, q)
		if err != nil || n == page {
			return rows, err
		}
		if next == "" {
			return nil, nil
		}
		q.After = next
	}
}

// Limits of paging: operations per page, and operations up to the end of the page.
const (
	defaultItems  = 50
	maxItems      = 1000
	maxPagedItems = 100_000
)

func parsePage(query url.Values) (items, page int, err error) {
	items, page = defaultItems, 1
	fields := map[string]*int{"items": &items, "page": &page}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // the same error each time
		value := web.SingleParam(query, name)
		if value == "" {
			continue
		}
		*fields[name], err = strconv.Atoi(value)
		if err != nil || *fields[name] < 1 {
			return 0, 0, vedette.Errorf(vedette.Invalid, "invalid %s %.40q: must be a number greater than 0", name, value)
		}
	}
	if items > maxItems || page > maxPagedItems/items {
		return 0, 0, vedette.Errorf(vedette.Invalid,
			"page %d with %d operations per page is out of range: a page has at most %d, and paging ends after %d; use the cursors of GET /vedette/v1/operations instead",
			page, items, maxItems, maxPagedItems)
	}
	return items, page, nil
}
