package web

import (
	_ "embed"
	"html/template"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// OpenAPI is the document that describes this port, as /v1/openapi.json serves
// it: OpenAPI 3.1 in JSON. Do not change it.
//
//go:embed openapi.json
var OpenAPI []byte

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) {
	if refusal := noInput(w, r); refusal != nil {
		s.send(w, r, refusal)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	write(w, http.StatusOK, OpenAPI)
}

// noInput refuses whatever comes with a request that takes nothing.
func noInput(w http.ResponseWriter, r *http.Request) *answer {
	_, refusal := readInput(w, r, nothing)
	return refusal
}

var problemTemplate = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Code}} · Holdfast</title></head>
<body>
<h1>{{.Title}}</h1>
<p><code>{{.Code}}</code>, HTTP status {{.Status}}</p>
<h2>What it means</h2>
<p>{{.Meaning}}</p>
<h2>What to do</h2>
<p>{{.Advice}}</p>
</body>
</html>
`))

// problemPage serves what the type of a problem points to.
func (s *Server) problemPage(w http.ResponseWriter, r *http.Request) {
	if refusal := noInput(w, r); refusal != nil {
		s.send(w, r, refusal)
		return
	}
	code := chi.URLParam(r, "code")
	kind, ok := problems[code]
	if !ok {
		s.send(w, r, fail(codeNotFound, "there is no problem of this code"))
		return
	}
	var page strings.Builder
	contentType := "text/plain; charset=utf-8"
	if wantsPlain(r) {
		page.WriteString(kind.title + ": " + kind.meaning + " " + kind.advice + "\n")
	} else {
		contentType = "text/html; charset=utf-8"
		// A Builder takes everything, and the template has no other way to fail.
		problemTemplate.Execute(&page, struct {
			Code, Title, Meaning, Advice string
			Status                       int
		}{code, kind.title, kind.meaning, kind.advice, kind.status})
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache")
	write(w, http.StatusOK, []byte(page.String()))
}
