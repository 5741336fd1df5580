// Package static holds what the dashboard's pages load: nothing comes from
// elsewhere. Files are compressed once, when the program starts.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.css *.js *.svg
var files embed.FS

// file is one file, ready to be sent.
type file struct {
	kind   string // its media type
	tag    string // changes with the content
	plain  []byte
	zipped []byte
}

var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

var load = sync.OnceValue(func() map[string]*file {
	all := map[string]*file{}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = newFile(kinds[path.Ext(e.Name())], text)
	}
	return all
})

func newFile(kind string, text []byte) *file {
	sum := sha256.Sum256(text)
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // a level that there is
	_, _ = z.Write(text)                                       // a Buffer takes everything
	_ = z.Close()
	return &file{kind, `"` + hex.EncodeToString(sum[:8]) + `"`, text, zipped.Bytes()}
}

// CompressedBytes is how much a browser loads for its first page.
func CompressedBytes() int {
	n := 0
	for _, f := range load() {
		n += len(f.zipped)
	}
	return n
}

// Serve answers a request for the named file, and reports false where there is
// none. A browser asks each time whether its copy is still good: the modules
// name each other without a version.
func Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	f := load()[name]
	if f == nil {
		return false
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // an error is the client's
	return true
}
