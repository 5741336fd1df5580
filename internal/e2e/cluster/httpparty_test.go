//go:build linux

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// httpParty is a script's way: net/http, redirects followed, long polls with a ticket, and the next node where one
// does not answer or does not serve.
type httpParty struct {
	h    *history
	s    *set
	name string
	http *http.Client
	turn atomic.Int32 // the node that is asked
}

const (
	poll      = time.Second // how long a request waits for its turn before it is repeated
	pollLimit = time.Second // how much longer a node may be silent before it counts as gone
)

func newHTTP(h *history, s *set, name string) *httpParty {
	p := &httpParty{h: h, s: s, name: name}
	p.http = &http.Client{Timeout: poll + pollLimit, Transport: &http.Transport{DialContext: s.dial, MaxIdleConnsPerHost: 16}}
	return p
}

func (p *httpParty) close() { p.http.CloseIdleConnections() }

// said is any answer of the lock API.
type said struct {
	status int
	Status any    `json:"status"`
	Token  uint64 `json:"token"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// post asks node after node until one that serves has answered.
func (p *httpParty) post(ctx context.Context, path string, form url.Values) (got said, node string, repeated bool, err error) {
	for end := time.Now().Add(patience); ctx.Err() == nil; pause(ctx, redialPause) {
		if time.Now().After(end) {
			return got, "", repeated, fmt.Errorf("%w: last %d %s %v", errGaveUp, got.status, got.Detail, err)
		}
		at := p.turn.Load()
		got, node, err = p.once(ctx, p.s.nodes[int(at)%len(p.s.nodes)].url()+path, form)
		if err == nil && got.status < 500 {
			return got, node, repeated, nil
		}
		repeated = repeated || err != nil && !errors.Is(err, syscall.ECONNREFUSED)
		p.turn.CompareAndSwap(at, at+1)
	}
	return got, "", repeated, context.Cause(ctx)
}

func (p *httpParty) once(ctx context.Context, to string, form url.Values) (got said, node string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return got, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := p.http.Do(r)
	if err != nil {
		return got, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return got, "", err
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return got, "", fmt.Errorf("%d %.100q: %w", answer.StatusCode, body, err)
	}
	got.status = answer.StatusCode
	return got, answer.Request.URL.Hostname(), nil
}

func (p *httpParty) acquire(ctx context.Context, key string, lease time.Duration) (*attempt, hold, error) {
	var ticket [16]byte
	rand.Read(ticket[:])
	form := url.Values{
		"key": {key}, "lease": {lease.String()}, "poll": {poll.String()},
		"ticket": {hex.EncodeToString(ticket[:])}, "owner": {p.name},
	}
	a := &attempt{client: p.name, key: key, lease: lease, ticket: true, asked: p.h.now()}
	for {
		got, node, _, err := p.post(ctx, "/v1/acquire", form)
		switch {
		case err != nil:
			return nil, nil, err
		case got.status == http.StatusAccepted:
			if a.read == 0 {
				a.read = p.h.now()
			}
		case got.status != http.StatusOK:
			return nil, nil, fmt.Errorf("acquire %q was answered %d %s %s", key, got.status, got.Code, got.Detail)
		default:
			a.granted, a.token, a.node = p.h.now(), got.Token, node
			return a, &httpHold{p, key, got.Token}, nil
		}
	}
}

type httpHold struct {
	p     *httpParty
	key   string
	token uint64
}

func (l *httpHold) release(ctx context.Context) (holds, repeated bool, err error) {
	return l.ask(ctx, "/v1/release", url.Values{})
}

func (l *httpHold) extend(ctx context.Context, lease time.Duration) (holds, repeated bool, err error) {
	return l.ask(ctx, "/v1/extend", url.Values{"lease": {lease.String()}})
}

func (l *httpHold) ask(ctx context.Context, path string, form url.Values) (holds, repeated bool, err error) {
	form.Set("key", l.key)
	form.Set("token", fmt.Sprint(l.token))
	got, _, repeated, err := l.p.post(ctx, path, form)
	switch {
	case err != nil:
		return false, repeated, err
	case got.status == http.StatusOK:
		return true, repeated, nil
	case got.Code == "not-holder":
		return false, repeated, nil
	}
	return false, repeated, fmt.Errorf("%s of %q was answered %d %s %s", path, l.key, got.status, got.Code, got.Detail)
}
