package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"

	"holdfast/internal/locks"
)

// pushes are the codes that only connections which stay get.
var pushes = []locks.Code{locks.Lost, locks.ContendedPush}

// Every code of the table is either a push or has its answer over HTTP: a
// success with a status, or a problem of that code.
func TestEveryCodeHasAnOutcome(t *testing.T) {
	s := newServer(t, Config{}, nil)
	for _, code := range locks.Codes() {
		o, found := outcomes[code]
		if found == slices.Contains(pushes, code) {
			t.Errorf("%v: found is %v", code, found)
			continue
		}
		if !found {
			continue
		}
		if (o.status == 0) == (o.code == "") || o.status >= 300 {
			t.Errorf("%v: outcome %+v is neither a success nor a problem", code, o)
		}
		if o.code == "" {
			continue
		}
		a := s.refuse(httptest.NewRequest("POST", "http://localhost/v1/acquire", nil), "a key", &locks.Reply{Code: code, Token: 8, Slots: 3})
		p := a.body.(*problem)
		if p.Code != o.code || p.Field != o.field || p.Limit != o.limit || p.Detail == "" || a.status != problems[o.code].status {
			t.Errorf("%v: answer %+v does not fit %+v", code, p, o)
		}
	}
	if len(outcomes)+len(pushes) != len(locks.Codes()) {
		t.Error("there are outcomes of codes that do not exist")
	}
}

// A code that nobody thought of is an internal error, not a success.
func TestUnknownCode(t *testing.T) {
	s := newServer(t, Config{}, nil)
	if a := s.refuse(nil, "k", &locks.Reply{Code: 255}); a.status != http.StatusInternalServerError {
		t.Errorf("status %d", a.status)
	}
}

func TestLimitsHaveTexts(t *testing.T) {
	for _, o := range outcomes {
		if o.limit != "" && limits[o.limit].what == "" {
			t.Errorf("limit %q has no text", o.limit)
		}
	}
}

// The document and the table of problems have the same codes, and each has its page.
func TestEveryProblemHasAPage(t *testing.T) {
	var documented []string
	for _, code := range contract.Document().Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		documented = append(documented, code.(string))
	}
	codes := slices.Sorted(maps.Keys(problems))
	if !slices.Equal(slices.Sorted(slices.Values(documented)), codes) {
		t.Errorf("the document has %v, the table %v", documented, codes)
	}
	h := contract.Handler(t, newServer(t, Config{}, nil).Handler())
	for _, code := range codes {
		kind := problems[code]
		if kind.status == 0 || kind.title == "" || kind.meaning == "" || kind.advice == "" {
			t.Errorf("%s: something is missing", code)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost/problems/"+code, nil))
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), kind.title) {
			t.Errorf("%s: page answers %d", code, rec.Code)
		}
	}
}

// The router and the document have the same paths and methods; HEAD goes with GET.
func TestRoutesAreDocumented(t *testing.T) {
	routed := map[string]bool{}
	err := chi.Walk(newServer(t, Config{}, nil).routes().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routed[method+" "+route] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for path, item := range contract.Document().Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
			if method == http.MethodGet {
				documented["HEAD "+path] = true
			}
		}
	}
	if !maps.Equal(routed, documented) {
		t.Errorf("router:\n%s\ndocument:\n%s", strings.Join(slices.Sorted(maps.Keys(routed)), "\n"), strings.Join(slices.Sorted(maps.Keys(documented)), "\n"))
	}
}

// input is what a schema says of one endpoint.
type input struct{ all, required []string }

func inputOf[T any](s schema[T]) input {
	in := input{all: s.names()}
	for _, f := range s {
		if f.required {
			in.required = append(in.required, f.name)
		}
	}
	return in
}

// What the code takes is what the document says, in query and body.
func TestInputsAreDocumented(t *testing.T) {
	inputs := map[string]input{
		"acquire": inputOf(acquireSchema), "release": inputOf(releaseSchema), "extend": inputOf(extendSchema),
		"cancel": inputOf(cancelSchema), "lock": inputOf(lockSchema), "locks": inputOf(listSchema),
		"livez": inputOf(healthSchema), "readyz": inputOf(healthSchema), "healthz": inputOf(healthSchema),
		"active": inputOf(healthSchema), "standby": inputOf(healthSchema),
		"handoff": inputOf(handoffSchema), "cluster": {}, "webSocket": {},
		"forceRelease": inputOf(forceSchema), "removeWaiter": inputOf(removeSchema),
		"node": {}, "version": {}, "openapi": {}, "problem": {},
	}
	for _, item := range contract.Document().Paths.Map() {
		for _, op := range item.Operations() {
			want, found := inputs[op.OperationID]
			if !found {
				t.Errorf("%s: this test does not know it", op.OperationID)
			}
			var query []string
			for _, p := range op.Parameters {
				if p.Value.In == "query" {
					query = append(query, p.Value.Name)
				}
			}
			sameSet(t, op.OperationID+" query", query, want.all)
			if op.RequestBody == nil {
				continue
			}
			for kind, media := range op.RequestBody.Value.Content {
				body := media.Schema.Value
				sameSet(t, op.OperationID+" "+kind, slices.Collect(maps.Keys(body.Properties)), want.all)
				sameSet(t, op.OperationID+" "+kind+" required", body.Required, want.required)
				if body.AdditionalProperties.Has == nil || *body.AdditionalProperties.Has {
					t.Errorf("%s %s: other properties are allowed", op.OperationID, kind)
				}
			}
		}
	}
}

func sameSet(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%s: the document has %v, the code %v", what, got, want)
	}
}

// The document says for each endpoint whether it needs authentication; the
// router agrees.
func TestAuthenticationIsDocumented(t *testing.T) {
	s := newServer(t, Config{Authenticate: func(string) (Identity, bool) { return Identity{}, false }}, nil)
	h := contract.Handler(t, s.Handler())
	for path, item := range contract.Document().Paths.Map() {
		for method, op := range item.Operations() {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(method, "http://localhost"+strings.Replace(path, "{code}", "limit", 1), nil))
			open := op.Security != nil && len(*op.Security) == 0
			if (rec.Code == http.StatusUnauthorized) == open {
				t.Errorf("%s %s: %d", method, path, rec.Code)
			}
		}
	}
}

// The document is served as it is embedded, and is valid JSON that says 3.1.
func TestDocumentIsServed(t *testing.T) {
	rec := httptest.NewRecorder()
	h := contract.Handler(t, newServer(t, Config{}, nil).Handler())
	h.ServeHTTP(rec, httptest.NewRequest("GET", "http://localhost/v1/openapi.json", nil))
	var doc openapi3.T
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || doc.OpenAPI != "3.1.0" || rec.Code != http.StatusOK {
		t.Errorf("%d, %q, %v", rec.Code, doc.OpenAPI, err)
	}
}

// The page for users has every code, every field, and examples that are answers.
func TestPageForUsers(t *testing.T) {
	text, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	words := slices.Concat(acquireSchema.names(), releaseSchema.names(), extendSchema.names(), cancelSchema.names(),
		lockSchema.names(), listSchema.names(), handoffSchema.names(), forceSchema.names(), removeSchema.names(), healthSchema.names(), columnNames(), slices.Collect(maps.Keys(problems)))
	for _, word := range words {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("%q is missing", word)
		}
	}
	examples := 0
	for i, block := range strings.Split(page, "```json\n") {
		if i == 0 {
			continue
		}
		block, _, _ = strings.Cut(block, "```")
		var example any
		if err := json.Unmarshal([]byte(block), &example); err != nil {
			t.Errorf("%s: %v", block, err)
		}
		fits := false
		for _, name := range []string{"Granted", "Problem", "Lock"} {
			schema := contract.Document().Components.Schemas[name].Value
			fits = fits || schema.VisitJSON(example, openapi3.EnableJSONSchema2020()) == nil
		}
		if !fits {
			t.Errorf("no answer looks like this: %s", block)
		}
		examples++
	}
	if examples < 3 {
		t.Errorf("only %d examples were found", examples)
	}
}
