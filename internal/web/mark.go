package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net/http"
	"time"
)

// A mark is what a node puts on a request that it forwards, in the header
// Holdfast-Forwarded: base64 (for URLs, unpadded) of
//
//	version u8 = 1 | time i64, milliseconds since 1970 | nonce, 16 bytes |
//	the client's address, to the end but for | mac, 32 bytes
//	mac = HMAC-SHA256(secret, "holdfast forward 1\n" | method "\n" | path and query "\n" | what stands before the mac)
//
// It says that a node of the cluster has checked Host and Origin, from where the
// request came, and that it has made its one hop. It gives no right: who asks is
// judged by the client's own auth token. So one that is seen and sent again
// gains nothing but a false address, for that path and query, within markBound.
const (
	markHeader  = "Holdfast-Forwarded"
	markVersion = 1
	markLabel   = "holdfast forward 1\n"

	markNonce  = 16
	markFixed  = 1 + 8 + markNonce
	maxAddress = 128 // bytes of an address

	// markBound is how old or how far ahead a mark may be: clocks of peers may
	// differ by an hour, and it has to get here.
	markBound = time.Hour + 5*time.Minute
)

var markEncoding = base64.RawURLEncoding.Strict()

func newMark(secret string, now time.Time, r *http.Request, remote string) string {
	b := binary.BigEndian.AppendUint64([]byte{markVersion}, uint64(now.UnixMilli()))
	var nonce [markNonce]byte
	rand.Read(nonce[:]) // never fails
	b = append(append(b, nonce[:]...), remote[:min(len(remote), maxAddress)]...)
	return markEncoding.EncodeToString(append(b, markMAC(secret, r, b)...))
}

func markMAC(secret string, r *http.Request, b []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	io.WriteString(h, markLabel+r.Method+"\n"+r.URL.RequestURI()+"\n")
	h.Write(b)
	return h.Sum(nil)
}

// readMark returns the client's address from a mark, and whether a node made it
// for r with one of the secrets, lately.
func readMark(secrets []string, now time.Time, r *http.Request, text string) (remote string, ok bool) {
	const longest = markFixed + maxAddress + sha256.Size
	if len(text) > markEncoding.EncodedLen(longest) {
		return "", false
	}
	b, err := markEncoding.DecodeString(text)
	if err != nil || len(b) < markFixed+sha256.Size || b[0] != markVersion {
		return "", false
	}
	b, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	fits := 0
	for _, secret := range secrets {
		fits |= subtle.ConstantTimeCompare(mac, markMAC(secret, r, b))
	}
	made := time.UnixMilli(int64(binary.BigEndian.Uint64(b[1:9])))
	return string(b[markFixed:]), fits == 1 && now.Sub(made).Abs() <= markBound
}

type forwardedKey struct{}

// forwardedFrom returns the client's address of a request that another node forwarded.
func forwardedFrom(r *http.Request) (remote string, forwarded bool) {
	remote, forwarded = r.Context().Value(forwardedKey{}).(string)
	return remote, forwarded
}

// checkMark believes the mark of a forwarded request, or refuses it.
func (s *Server) checkMark(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		marks := r.Header.Values(markHeader)
		if len(marks) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		remote, ok := readMark(s.secrets(), time.Now(), r, marks[0])
		if !ok || len(marks) > 1 {
			s.logDenied(r)
			s.send(w, r, fail(codeUnauthenticated, "the header "+markHeader+" does not prove this node's cluster secret for this request, or the clocks are too far apart: only nodes of the cluster send it").
				with("WWW-Authenticate", markHeader))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardedKey{}, remote)))
	})
}
