package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"tiptoe/internal/job"
	"tiptoe/internal/ledger"
)

// Problem describes an answer with an error in the document; huma's own type
// is what is sent.
type Problem struct {
	Type   string  `json:"type" example:"about:blank"`
	Title  string  `json:"title" doc:"The status in words." example:"Not Found"`
	Status int     `json:"status" example:"404"`
	Detail string  `json:"detail" doc:"What is wrong, and what to do." example:"there is no such job: GET /v1/jobs lists yours"`
	Errors []Fault `json:"errors,omitempty" nullable:"false" doc:"What is wrong in particular."`
}

// Fault is one thing that is wrong with a request.
type Fault struct {
	Location string `json:"location,omitempty" doc:"Where: body, query, path or header, and the field." example:"body.pages"`
	Message  string `json:"message,omitempty"`
}

// problem is an answer with an error. The detail says what to do.
func problem(status int, detail string, errs ...*huma.ErrorDetail) *huma.ErrorModel {
	return &huma.ErrorModel{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Errors: errs}
}

// invalid is the problem of one wrong field.
func invalid(location, text string) *huma.ErrorModel {
	return problem(http.StatusUnprocessableEntity, location+": "+text, &huma.ErrorDetail{Location: location, Message: text})
}

func unavailable(what string) *huma.ErrorModel {
	return problem(http.StatusNotFound, what+" is not available in this service")
}

// writeProblem answers without huma: for what happens before a route.
func writeProblem(w http.ResponseWriter, p *huma.ErrorModel) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that left needs no answer
}

// finishProblem completes the problems that huma itself finds: nothing of the
// request is echoed, and the detail names the fault.
func finishProblem(_ huma.Context, _ string, v any) (any, error) {
	p, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p = problem(p.Status, p.Detail, p.Errors...)
	said := make([]string, 0, len(p.Errors))
	for i, e := range p.Errors {
		if i == maxFaults {
			said = append(said, fmt.Sprintf("and %d more", len(p.Errors)-maxFaults))
			p.Errors = p.Errors[:maxFaults]
			break
		}
		p.Errors[i] = &huma.ErrorDetail{Location: e.Location, Message: e.Message}
		said = append(said, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	switch {
	case p.Status == http.StatusUnsupportedMediaType:
		p.Detail = "the body must be JSON with the header Content-Type: application/json (with curl, --json sets it)"
	case p.Status == http.StatusBadRequest && p.Detail == "request body is required":
		p.Detail = "this request needs a body of JSON; the document at /v1/openapi.yaml says which"
	case len(said) > 0 && p.Detail == "validation failed":
		p.Detail = strings.Join(said, "; ")
	}
	return p, nil
}

// maxFaults bounds what is said about one request.
const maxFaults = 20

// missing are the ends of a search. Each is one constant answer, whether the
// thing is somebody else's or never was.
var missing = []struct {
	err    error
	answer *huma.ErrorModel
}{
	{ledger.ErrNoJob, problem(http.StatusNotFound, "there is no such job: GET /v1/jobs lists yours")},
	{ledger.ErrNoSchedule, problem(http.StatusNotFound, "there is no such schedule: GET /v1/schedules lists yours")},
	{ledger.ErrNoKey, problem(http.StatusNotFound, "there is no such key: GET /v1/keys lists yours")},
	{ledger.ErrNoTenant, problem(http.StatusNotFound, "there is no such tenant: GET /v1/tenants lists them")},
}

// toProblem turns an error of a handler into its answer. What nobody foresaw
// is logged with its cause and answered without it.
func (a *API) toProblem(ctx context.Context, err error) error {
	var (
		model   *huma.ErrorModel
		bad     *job.BadRequest
		refused *job.Refused
		illegal *job.Illegal
		busy    *job.Unavailable
	)
	switch {
	case errors.As(err, &model):
		return err // as it is, with its headers
	case errors.As(err, &bad):
		return invalid("body."+bad.Field, bad.Text)
	case errors.As(err, &refused):
		return problem(http.StatusTooManyRequests, refused.Text)
	case errors.As(err, &illegal):
		return problem(http.StatusConflict, illegal.Error())
	case errors.Is(err, job.ErrOtherOrder):
		return problem(http.StatusConflict, "this Idempotency-Key was used for another order: use a new one, or send the same body")
	case errors.Is(err, ledger.ErrNotEnded), errors.Is(err, job.ErrNotEnded):
		return problem(http.StatusConflict, "the job has not ended: cancel it, or wait for its end")
	case errors.Is(err, ledger.ErrEnded):
		return problem(http.StatusConflict, "the job has ended, which cannot be undone: order it anew")
	case errors.Is(err, ledger.ErrExists):
		return problem(http.StatusConflict, "it exists already: choose another id")
	case errors.Is(err, ledger.ErrFull):
		return problem(http.StatusConflict, "there are as many as the plan allows: delete one, or ask for a larger plan")
	case errors.As(err, &busy):
		return huma.ErrorWithHeaders(problem(http.StatusServiceUnavailable, busy.Text), http.Header{"Retry-After": {fmt.Sprint(math.Ceil(busy.After.Seconds()))}})
	}
	for _, m := range missing {
		if errors.Is(err, m.err) {
			return m.answer
		}
	}
	if ctx.Err() != nil {
		return problem(http.StatusServiceUnavailable, "it took too long: try again, or ask for less at a time")
	}
	a.log.Error("api: request failed", "error", err)
	return problem(http.StatusInternalServerError, "this failed for a reason that is in the server's log: try again later")
}
