// Package webtest holds the answers of Holdfast's HTTP port against its OpenAPI
// document: each that a test sees must be one that the document describes.
package webtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Contract is an OpenAPI document. It may be used by many goroutines at once.
type Contract struct{ doc *openapi3.T }

// Load reads a document, web.OpenAPI or what /v1/openapi.json serves, and checks
// that it is one.
func Load(document []byte) (*Contract, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("load the OpenAPI document: %w", err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		return nil, fmt.Errorf("validate the OpenAPI document: %w", err)
	}
	return &Contract{doc}, nil
}

// MustLoad is Load for tests.
func MustLoad(t testing.TB, document []byte) *Contract {
	t.Helper()
	c, err := Load(document)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Document returns the document, to be read only.
func (c *Contract) Document() *openapi3.T { return c.doc }

// Exchange is one request and its answer.
type Exchange struct {
	Method, Path, Query string
	RequestType         string // Content-Type
	RequestBody         []byte
	Status              int
	Header              http.Header
	Body                []byte
}

func (x *Exchange) String() string {
	return fmt.Sprintf("%s %s?%s %q: %d %q", x.Method, x.Path, x.Query, x.RequestBody, x.Status, x.Body)
}

// Check returns what of the exchange is not as the document has it.
func (c *Contract) Check(x *Exchange) error {
	op, response := c.find(x)
	if response == nil {
		return fmt.Errorf("%v: the document has no such answer", x)
	}
	errs := []error{checkHeaders(x, response)}
	if op != nil && x.Status < 300 {
		errs = append(errs, checkRequest(x, op))
	}
	if x.Method != http.MethodHead && x.Status != http.StatusSwitchingProtocols {
		errs = append(errs, checkBody(x, response))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%v: %w", x, err)
	}
	return nil
}

// anywhere are the answers that paths and methods outside the document get.
var anywhere = map[int]string{
	http.StatusForbidden: "NotAllowed", http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed",
	http.StatusMisdirectedRequest: "UnknownHost", http.StatusInternalServerError: "Internal",
}

// find returns the operation of an exchange, nil if there is none, and what the
// document says of an answer of that status.
func (c *Contract) find(x *Exchange) (*openapi3.Operation, *openapi3.Response) {
	method := x.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if item := c.pathItem(x.Path); item != nil {
		if op := item.GetOperation(method); op != nil {
			if r := op.Responses.Status(x.Status); r != nil {
				return op, r.Value
			}
			return op, nil
		}
	} else if x.Status == http.StatusMethodNotAllowed {
		return nil, nil
	}
	if r := c.doc.Components.Responses[anywhere[x.Status]]; r != nil {
		return nil, r.Value
	}
	return nil, nil
}

// pathItem finds a path; the last segment of a template stands for any text.
func (c *Contract) pathItem(path string) *openapi3.PathItem {
	if item := c.doc.Paths.Value(path); item != nil {
		return item
	}
	for template, item := range c.doc.Paths.Map() {
		prefix, _, isTemplate := strings.Cut(template, "{")
		if rest, ok := strings.CutPrefix(path, prefix); ok && isTemplate && rest != "" && !strings.Contains(rest, "/") {
			return item
		}
	}
	return nil
}

// always are the headers of every answer, from the section on security.
var always = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":  "nosniff",
	"Referrer-Policy":         "same-origin",
}

func checkHeaders(x *Exchange, response *openapi3.Response) error {
	for _, name := range slices.Sorted(maps.Keys(always)) {
		if got := x.Header.Get(name); got != always[name] {
			return fmt.Errorf("header %s is %q", name, got)
		}
	}
	for name, h := range response.Headers {
		if h.Value.Required && x.Header.Get(name) == "" {
			return fmt.Errorf("header %s is missing", name)
		}
	}
	return nil
}

// checkRequest holds the input of an accepted request against the document.
func checkRequest(x *Exchange, op *openapi3.Operation) error {
	query, err := url.ParseQuery(x.Query)
	if err != nil {
		return fmt.Errorf("the query was accepted: %w", err)
	}
	for name := range query {
		if op.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("parameter %q was accepted", name)
		}
	}
	kind, _, _ := strings.Cut(x.RequestType, ";")
	if len(x.RequestBody) == 0 || kind != "application/json" {
		return nil
	}
	if op.RequestBody == nil {
		return errors.New("a body was accepted")
	}
	return visit(op.RequestBody.Value.Content.Get(kind).Schema, x.RequestBody)
}

func checkBody(x *Exchange, response *openapi3.Response) error {
	full := x.Header.Get("Content-Type")
	kind, _, _ := strings.Cut(full, ";")
	media := response.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("the document has no %q here", full)
	}
	if !strings.HasSuffix(kind, "json") {
		return media.Schema.Value.VisitJSON(string(x.Body), openapi3.EnableJSONSchema2020())
	}
	if err := visit(media.Schema, x.Body); err != nil || kind != "application/problem+json" {
		return err
	}
	var problem struct {
		Status int
		Type   string
		Code   string
	}
	if err := json.Unmarshal(x.Body, &problem); err != nil {
		return err
	}
	if problem.Status != x.Status || problem.Type != "/problems/"+problem.Code {
		return errors.New("the problem contradicts its status or its type")
	}
	return nil
}

func visit(schema *openapi3.SchemaRef, text []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020())
}
