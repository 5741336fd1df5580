package link

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	handshakeVersion = 1

	nonceBytes   = 32
	macBytes     = sha256.Size
	maxNameBytes = 255

	maxRequestBytes = 1 + 8 + nonceBytes + 2*(1+maxNameBytes) + macBytes
	maxAnswerBytes  = 1 + nonceBytes + 1 + maxNameBytes
)

// What a mac is for is part of what it covers, so none can stand for another.
const (
	requestLabel  = "holdfast peer 1 request\n"
	diallerLabel  = "holdfast peer 1 dialler\n"
	acceptorLabel = "holdfast peer 1 acceptor\n"
)

var (
	errCutOff   = errors.New("is cut off")
	errTrailing = errors.New("is longer than it says")
	errName     = errors.New("has an empty name")
)

// request is the dialler's first proof.
type request struct {
	at       int64 // its wall clock, milliseconds since 1970
	from, to string
	raw      []byte // all of it
}

// appendRequest appends the encoding of a request with a fresh nonce.
func appendRequest(dst []byte, secret string, at int64, from, to string) []byte {
	start := len(dst)
	dst = append(dst, handshakeVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	dst = appendNonce(dst)
	dst = appendName(appendName(dst, from), to)
	return append(dst, prove(secret, requestLabel, dst[start:])...)
}

// decodeRequest reads a request, whoever made it. It points into b.
func decodeRequest(b []byte) (request, error) {
	r := open(b)
	at := binary.BigEndian.Uint64(r.take(8))
	r.take(nonceBytes)
	q := request{at: int64(at), from: r.name(), to: r.name(), raw: b}
	r.take(macBytes)
	return q, r.end()
}

// fits says whether the request was made with one of the secrets.
func (q *request) fits(secrets []string) bool {
	n := len(q.raw) - macBytes
	return fits(secrets, q.raw[n:], requestLabel, q.raw[:n])
}

// answer is the acceptor's word before the second proofs: nothing vouches for it until they came.
type answer struct {
	name string
	raw  []byte // all of it
}

func appendAnswer(dst []byte, name string) []byte {
	return appendName(appendNonce(append(dst, handshakeVersion)), name)
}

// decodeAnswer reads an answer. It points into b.
func decodeAnswer(b []byte) (answer, error) {
	r := open(b)
	r.take(nonceBytes)
	a := answer{name: r.name(), raw: b}
	return a, r.end()
}

func appendNonce(dst []byte) []byte {
	var nonce [nonceBytes]byte
	rand.Read(nonce[:])
	return append(dst, nonce[:]...)
}

func appendName(dst []byte, name string) []byte {
	return append(append(dst, byte(len(name))), name...)
}

// reader takes fields off a message. From the first fault on it yields zeros.
type reader struct {
	left []byte
	err  error
}

// open begins to read a message that starts with its version.
func open(b []byte) *reader {
	r := &reader{left: b}
	if v := r.take(1)[0]; r.err == nil && v != handshakeVersion {
		r.fail(fmt.Errorf("is of version %d; this node speaks version %d", v, handshakeVersion))
	}
	return r
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.left, r.err = nil, err
	}
}

func (r *reader) take(n int) []byte {
	if len(r.left) < n {
		r.fail(errCutOff)
		return make([]byte, n)
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) name() string {
	n := r.take(1)[0]
	if n == 0 {
		r.fail(errName)
	}
	return string(r.take(int(n)))
}

func (r *reader) end() error {
	if len(r.left) > 0 {
		r.fail(errTrailing)
	}
	return r.err
}

// prove returns the mac of parts under secret.
func prove(secret, label string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	io.WriteString(h, label)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// fits says whether mac is that of parts under any of the secrets. It takes the
// same time whichever it is, and for any wrong mac.
func fits(secrets []string, mac []byte, label string, parts ...[]byte) bool {
	ok := 0
	for _, s := range secrets {
		ok |= subtle.ConstantTimeCompare(mac, prove(s, label, parts...))
	}
	return ok == 1
}

var encoding = base64.RawURLEncoding.Strict()

// decodeHeader reads the one value of the handshake's header, of at most max bytes.
func decodeHeader(values []string, max int) ([]byte, error) {
	if len(values) != 1 {
		return nil, fmt.Errorf("header %s stands %d times; it must once", header, len(values))
	}
	if len(values[0]) > encoding.EncodedLen(max) {
		return nil, fmt.Errorf("header %s has %d bytes; at most %d", header, len(values[0]), encoding.EncodedLen(max))
	}
	b, err := encoding.DecodeString(values[0])
	if err != nil {
		return nil, fmt.Errorf("header %s: %w", header, err)
	}
	return b, nil
}
