package webtest

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// Each kind of departure from the document is found.
func TestCheckFinds(t *testing.T) {
	document, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	c := MustLoad(t, document)
	const problem = `{"type":"/problems/not-found","title":"Not found","status":404,"detail":"x","code":"not-found"}`
	tests := []struct {
		name   string
		change func(*Exchange)
		want   string // part of the error; "" = none
	}{
		{"as it should be", func(*Exchange) {}, ""},
		{"HEAD", func(x *Exchange) { x.Method, x.Path, x.Query, x.Body = "HEAD", "/v1/version", "", nil }, ""},
		{"a status of no operation", func(x *Exchange) { x.Status = 204 }, "no such answer"},
		{"a missing field", func(x *Exchange) { x.Body = []byte(`{"status":"released"}`) }, "key"},
		{"a field too many", func(x *Exchange) { x.Body = []byte(`{"status":"released","key":"k","more":1}`) }, "more"},
		{"a wrong type", func(x *Exchange) { x.Body = []byte(`{"status":"released","key":7}`) }, "key"},
		{"two JSON values", func(x *Exchange) { x.Body = append(x.Body, x.Body...) }, "follows"},
		{"no JSON", func(x *Exchange) { x.Body = []byte("released") }, "invalid character"},
		{"another content type", func(x *Exchange) { x.Header.Set("Content-Type", "text/html") }, "text/html"},
		{"text of two lines", func(x *Exchange) { x.Header.Set("Content-Type", "text/plain"); x.Body = []byte("a\nb\n") }, ""},
		{"no security header", func(x *Exchange) { x.Header.Del("X-Content-Type-Options") }, "X-Content-Type-Options"},
		{"an undocumented parameter", func(x *Exchange) { x.Query = "key=k&token=1&more=2" }, "more"},
		{"an undocumented field in a body", func(x *Exchange) {
			x.Query, x.RequestType, x.RequestBody = "", "application/json", []byte(`{"key":"k","token":1,"more":2}`)
		}, "more"},
		{"a path of no operation", func(x *Exchange) { x.Path = "/nope" }, "no such answer"},
		{"not found", func(x *Exchange) { x.Path, x.Status = "/nope", 404; problemBody(x, problem) }, ""},
		{"not found with the wrong code", func(x *Exchange) {
			x.Path, x.Status = "/nope", 404
			problemBody(x, strings.Replace(problem, `"code":"not-found"`, `"code":"limit"`, 1))
		}, "code"},
		{"a problem of another status", func(x *Exchange) {
			x.Path, x.Status = "/nope", 404
			problemBody(x, strings.Replace(problem, "404", "409", 1))
		}, "contradicts"},
		{"405 without Allow", func(x *Exchange) {
			x.Method, x.Status = "PUT", 405
			problemBody(x, strings.NewReplacer("404", "405", "not-found", "method-not-allowed").Replace(problem))
		}, "Allow"},
	}
	for _, test := range tests {
		x := &Exchange{
			Method: "POST", Path: "/v1/release", Query: "key=k&token=1", Status: 200,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"status":"released","key":"k"}`),
		}
		for name, text := range always {
			x.Header.Set(name, text)
		}
		test.change(x)
		err := c.Check(x)
		switch {
		case test.name == "text of two lines":
			if err == nil {
				t.Errorf("%s: not found", test.name)
			}
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func problemBody(x *Exchange, body string) {
	x.Header.Set("Content-Type", "application/problem+json")
	x.Body = []byte(body)
}

func TestLoadRefuses(t *testing.T) {
	for _, document := range []string{"", "[]", `{"openapi":"3.1.0"}`, `{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{"/x":{"get":{"responses":{"200":{"$ref":"#/components/responses/None"}}}}}}`} {
		if _, err := Load([]byte(document)); err == nil {
			t.Errorf("%s was accepted", document)
		}
	}
}
