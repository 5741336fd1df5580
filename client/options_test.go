package client

import (
	"context"
	"crypto/tls"
	"math"
	"strings"
	"testing"
	"time"

	"holdfast/client/internal/fakeserver"
	"holdfast/wire"
)

func TestNewRefuses(t *testing.T) {
	ok := []string{"a:1"}
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		addrs []string
		opt   Option
		want  string
	}{
		{nil, nil, "addresses: 0; 1 to 64"},
		{make([]string, 65), nil, "addresses: 65; 1 to 64"},
		{[]string{"a:1", "a:1"}, nil, `address "a:1" is there twice`},
		{[]string{"a"}, nil, `address "a": write it as host:port, such as 127.0.0.1:7620`},
		{[]string{":1"}, nil, `address ":1": write it`},
		{[]string{"a:"}, nil, `address "a:": write it`},
		{ok, WithOwner(long), "WithOwner: owner: 256 bytes; at most 255"},
		{ok, WithOwner("a\nb"), "WithOwner: owner: "},
		{ok, WithOwner("a\xffb"), "WithOwner: owner: "},
		{ok, WithAuthToken(strings.Repeat("s", 4097)), "WithAuthToken: 4097 bytes; at most 4096"},
		{ok, WithDialer(nil), "WithDialer: nil"},
		{ok, WithLogger(nil), "WithLogger: nil"},
		{ok, WithFollow(7), "WithFollow: 7; FollowAny or FollowConfigured"},
		{ok, WithReconnect(0), "WithReconnect: 0s; 1ms to 24h0m0s"},
		{ok, WithReconnect(25 * time.Hour), "WithReconnect: 25h0m0s; 1ms to 24h0m0s"},
		{ok, WithReleaseRetry(0, time.Second), "WithReleaseRetry: total: 0s"},
		{ok, WithReleaseRetry(time.Second, -1), "WithReleaseRetry: every: -1ns"},
		{ok, WithPing(0, time.Second), "WithPing: every: 0s"},
		{ok, WithPing(time.Second, 0), "WithPing: timeout: 0s"},
	} {
		opts := []Option{}
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		cl, err := New(c.addrs, opts...)
		if err == nil {
			cl.Close()
			t.Errorf("accepted; want %q", c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %q, want %q", err, c.want)
		}
	}
}

func TestNewReportsEveryProblem(t *testing.T) {
	_, err := New([]string{"a", "b:1"}, WithReconnect(0), WithAuthToken(strings.Repeat("s", 5000)))
	for _, want := range []string{`"a"`, "WithReconnect", "WithAuthToken"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "ssss") {
		t.Error("the error shows the secret")
	}
}

func TestAcquireRefuses(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for _, c := range []struct {
			key  string
			opts []AcquireOption
			want string
		}{
			{"", nil, `acquire "": key: 0 bytes; 1 to 1024`},
			{strings.Repeat("k", 1025), nil, "key: 1025 bytes; 1 to 1024"},
			{"a\x00b", nil, "key: "},
			{"a\x7fb", nil, "key: "},
			{"\xff", nil, "key: "},
			{"k", []AcquireOption{WithLease(-1)}, "WithLease: -1ns; 0 to 1193h2m47.295s"},
			{"k", []AcquireOption{WithLease(longest + 1)}, "WithLease: 1193h2m47.295000001s"},
			{"k", []AcquireOption{WithWait(0)}, "WithWait: 0s; more than 0"},
			{"k", []AcquireOption{WithWait(-time.Second)}, "WithWait: -1s; more than 0"},
			{"k", []AcquireOption{WithWait(longest + 1)}, "WithWait: 1193h2m47.295000001s; 0 to"},
			{"k", []AcquireOption{WithSlots(0)}, "WithSlots: 0; 1 to 65535"},
			{"k", []AcquireOption{WithSlots(65536)}, "WithSlots: 65536; 1 to 65535"},
			{"k", []AcquireOption{WithSlots(2), Shared()}, "WithSlots: 2 together with Shared"},
			{"k", []AcquireOption{WithMaxHold(time.Hour)}, "WithMaxHold: needs WithAutoExtend"},
			{"k", []AcquireOption{WithAutoExtend(), WithMaxHold(0)}, "WithMaxHold: 0s; more than 0"},
			{"k", []AcquireOption{WithTicket([16]byte{})}, "WithTicket: all zero"},
		} {
			_, err := b.c.Acquire(b.Context(), c.key, c.opts...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				b.Errorf("error %v, want %q", err, c.want)
			}
		}
		if _, err := b.c.TryAcquire(b.Context(), "k", WithWait(1)); err == nil || !strings.Contains(err.Error(), "TryAcquire does not wait") {
			b.Errorf("error %v", err)
		}
		if sent := b.nodes[0].Requests(); len(sent) > 0 {
			b.Errorf("sent nevertheless: %v", sent)
		}
	})
}

func TestAcquireOptionsOnTheWire(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for _, c := range []struct {
			opts []AcquireOption
			want wire.Request
		}{
			{nil, wire.Request{}},
			{[]AcquireOption{{}}, wire.Request{}},
			{[]AcquireOption{WithLease(0)}, wire.Request{}},
			{[]AcquireOption{WithLease(1)}, wire.Request{LeaseMS: 1}},
			{[]AcquireOption{WithLease(longest)}, wire.Request{LeaseMS: math.MaxUint32}},
			{[]AcquireOption{WithWait(1500 * time.Microsecond)}, wire.Request{WaitMS: 2}},
			{[]AcquireOption{WithWait(longest)}, wire.Request{WaitMS: math.MaxUint32}},
			{[]AcquireOption{Shared()}, wire.Request{Flags: wire.FlagShared}},
			{[]AcquireOption{WithSlots(65535)}, wire.Request{Slots: 65535}},
			{[]AcquireOption{BoundToConnection()}, wire.Request{Flags: wire.FlagBound}},
			{[]AcquireOption{WithAutoExtend(), WithMaxHold(time.Minute)}, wire.Request{}},
			{[]AcquireOption{WithTicket([16]byte{1})}, wire.Request{Flags: wire.FlagRetry, Ticket: wire.Ticket{1}}},
		} {
			l := b.acquire("k", c.opts...)
			all := b.nodes[0].Requests(wire.OpAcquire)
			got := all[len(all)-1].Request
			if got.Flags != c.want.Flags || got.LeaseMS != c.want.LeaseMS || got.WaitMS != c.want.WaitMS || got.Slots != c.want.Slots {
				b.Errorf("sent %v, want %v", got, c.want)
			}
			if c.want.Ticket.IsZero() == (got.Ticket == c.want.Ticket) {
				b.Errorf("ticket %x", got.Ticket)
			}
			b.release(l)
		}
		l, err := b.c.TryAcquire(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		b.release(l)
		all := b.nodes[0].Requests(wire.OpAcquire)
		if last := all[len(all)-1]; last.Flags != wire.FlagTry || last.WaitMS != 0 {
			b.Errorf("TryAcquire sent %v", last)
		}
	})
}

// A deadline that the wire cannot say is left to the context.
func TestAcquireFarDeadline(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		for _, d := range []time.Duration{time.Hour, longest + time.Hour, 200 * 365 * 24 * time.Hour} {
			ctx, cancel := context.WithTimeout(b.Context(), d)
			l, err := b.c.Acquire(ctx, "k")
			if err != nil {
				b.Fatal(err)
			}
			b.release(l)
			cancel()
		}
		sent := b.nodes[0].Requests(wire.OpAcquire)
		if sent[0].WaitMS != 3_600_000 || sent[1].WaitMS != 0 || sent[2].WaitMS != 0 {
			b.Errorf("%v", sent)
		}
	})
}

func TestSharedAndSlots(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		r1, r2 := b.acquire("doc", Shared()), b.acquire("doc", Shared())
		_, err := b.c.TryAcquire(b.Context(), "doc")
		b.is(err, ErrNotAcquired)
		b.release(r1)
		b.release(r2)
		s1, s2 := b.acquire("pool", WithSlots(2)), b.acquire("pool", WithSlots(2))
		_, err = b.c.TryAcquire(b.Context(), "pool", WithSlots(2))
		b.is(err, ErrNotAcquired)
		b.release(s1)
		b.release(s2)
		b.free("doc", "pool")
	})
}

func TestHello(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Auth = "s3cret"
		b.dial(WithAuthToken("s3cret"), WithOwner("host/worker"))
		hello := b.nodes[0].Requests(wire.OpHello)[0]
		if string(hello.Owner) != "host/worker" || hello.Version != 1 || !strings.HasPrefix(string(hello.Software), "holdfast-go/") {
			b.Errorf("%v", hello)
		}
		b.release(b.acquire("jobs"))
	})
}

func TestDefaultOwner(t *testing.T) {
	owner := defaultOwner()
	if !strings.Contains(owner, "/client.test:") || len(owner) > wire.MaxOwnerBytes {
		t.Errorf("%q", owner)
	}
}

// A wrong token is not taken for an outage.
func TestUnauthorized(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.nodes[0].Auth = "s3cret"
		b.dial(WithAuthToken("wrong"), WithPatience())
		began := time.Now()
		_, err := b.c.Acquire(b.Context(), "jobs")
		b.is(err, ErrNoActive, ErrUnauthorized)
		b.is(b.c.Ready(b.Context()), ErrNoActive, ErrUnauthorized)
		b.took(began, 0, 0)
		if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "wrong;") {
			b.Errorf("%q shows a secret", err)
		}
	})
}

func TestServerErrors(t *testing.T) {
	for code, want := range map[wire.Code][]error{
		wire.CodeNotAllowed:  {ErrUnauthorized},
		wire.CodeBadArgument: nil,
		wire.CodeLimit:       nil,
		wire.CodeMismatch:    {ErrMismatch},
		wire.CodeInternal:    nil,
	} {
		inBubble(t, 1, func(b *bed) {
			b.dial()
			b.nodes[0].SetHook(refuse(code, 1))
			_, err := b.c.Acquire(b.Context(), "jobs")
			b.is(err, want...)
			if err == nil || !strings.HasPrefix(err.Error(), `acquire "jobs": server error `) || !strings.HasSuffix(err.Error(), ": no") {
				b.Errorf("error %v", err)
			}
			b.release(b.acquire("jobs"))
		})
	}
}

func TestReasonTexts(t *testing.T) {
	for r := LostExpired; r <= LostClosed; r++ {
		if strings.HasPrefix(r.String(), "reason ") {
			t.Errorf("%d has no text", r)
		}
	}
	if got := Reason(99).String(); got != "reason 99" {
		t.Error(got)
	}
	for k := EventConnected; k <= EventLost; k++ {
		if strings.HasPrefix(k.String(), "event ") {
			t.Errorf("%d has no name", k)
		}
	}
	if got := EventKind(99).String(); got != "event 99" {
		t.Error(got)
	}
}

// The server withdraws a waiter by itself, as an operator may have it do.
func TestWithdrawnByTheServer(t *testing.T) {
	inBubble(t, 1, func(b *bed) {
		b.dial()
		b.nodes[0].SetHook(once(wire.OpAcquire, func(c *fakeserver.Conn, r *wire.Request) {
			c.Reply(r, wire.Reply{Status: wire.StatusCancelled})
		}))
		_, err := b.c.Acquire(b.Context(), "jobs")
		b.is(err, ErrNotAcquired)
		if !strings.Contains(err.Error(), "withdrew") {
			b.Error(err)
		}
	})
}

func TestWithTLSNeedsNoServerName(t *testing.T) {
	cfg := config{tls: &tls.Config{}}
	if cfg.tls.ServerName != "" {
		t.Fatal("worthless")
	}
	server := newTLSServer(t, "localhost")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := dialReal(t, server.addr(), WithTLS(server.clientConfig))
	l, err := c.Acquire(ctx, "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
}
