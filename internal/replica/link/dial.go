package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// dial makes one link: connect, prove, and have it proved. The link is added,
// and not yet run.
func (d *dialer) dial(ctx context.Context) (*conn, error) {
	nc, err := d.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	raw := innermost(nc)
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	raw.SetDeadline(time.Now().Add(d.t.cfg.Timeout))
	c, err := d.introduce(ctx, nc, raw)
	if err != nil {
		raw.Close()
		nc.Close()
		return nil, err
	}
	if err = d.t.add(c); err == nil && !stop() { // closed by ctx, whatever add found
		d.t.remove(c)
		d.t.running.Done()
		err = errStopping
	}
	if err != nil {
		c.refuse(err)
		return nil, err
	}
	return c, nil
}

// connect makes the connection, with TLS where the peer's address says so.
func (d *dialer) connect(ctx context.Context) (net.Conn, error) {
	short, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := d.t.cfg.Dial(short, d.addr.dial)
	if err != nil {
		return nil, err
	}
	tune(nc)
	if !d.addr.secure {
		return nc, nil
	}
	cfg := &tls.Config{}
	if d.t.cfg.TLS != nil {
		cfg = d.t.cfg.TLS().Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = d.addr.host
	}
	cfg.NextProtos = []string{"http/1.1"} // there is no upgrade in HTTP/2
	long, cancel := context.WithTimeout(ctx, d.t.cfg.Timeout)
	defer cancel()
	secure := tls.Client(nc, cfg)
	if err := secure.HandshakeContext(long); err != nil {
		nc.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// introduce is the dialler's part of the handshake.
func (d *dialer) introduce(ctx context.Context, nc, raw net.Conn) (*conn, error) {
	t := d.t
	secrets := t.cfg.Secrets()
	if len(secrets) == 0 {
		return nil, errNoSecret
	}
	q := request{raw: appendRequest(nil, secrets[0], t.cfg.Wall().UnixMilli(), t.name, d.name)}
	ws, resp, err := websocket.Dial(ctx, d.addr.url, &websocket.DialOptions{
		HTTPClient: clientOn(nc),
		HTTPHeader: http.Header{header: {encoding.EncodeToString(q.raw)}, "User-Agent": {"holdfast"}},
		// An upgrade of anything but this protocol's kind is not wanted.
		CompressionMode: websocket.CompressionDisabled, OnPingReceived: ignorePing,
	})
	if err != nil {
		return nil, upgradeError(resp, err)
	}
	c := t.newConn(ws, raw, d.name, d.rank, true)
	if err := d.verify(c, resp, q, secrets); err != nil {
		c.refuse(err)
		return nil, err
	}
	return c, raw.SetDeadline(time.Time{})
}

// verify exchanges the second proofs.
func (d *dialer) verify(c *conn, resp *http.Response, q request, secrets []string) error {
	b, err := decodeHeader(resp.Header.Values(header), maxAnswerBytes)
	if err != nil {
		return &refusal{text: err.Error()}
	}
	a, err := decodeAnswer(b)
	if err != nil {
		return &refusal{text: fmt.Sprintf("header %s: the handshake %v", header, err)}
	}
	if a.name != d.name && a.name != d.t.name {
		return &refusal{text: wrongNode(a.name, d.name, d.t.name)}
	}
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, prove(secrets[0], diallerLabel, q.raw, a.raw)); err != nil {
		return fmt.Errorf("write the second proof: %w", err)
	}
	if err := c.readProof(secrets, acceptorLabel, q.raw, a.raw); err != nil {
		return err
	}
	c.name, c.rank = a.name, d.t.rankOf(a.name)
	return nil
}

// clientOn makes a client that has one connection and asks one thing of it. It
// follows no redirect and knows no proxy: it must not carry the proof elsewhere.
func clientOn(nc net.Conn) *http.Client {
	take := func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: take, DialTLSContext: take,
			DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
		},
	}
}

// upgradeError says what an answer other than 101 means.
func upgradeError(resp *http.Response, err error) error {
	if resp == nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	const most = 512
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	text := fmt.Sprintf("answered %d: %q", resp.StatusCode, strings.TrimSpace(string(body)))
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &refusal{byPeer: true, text: text}
	}
	return fmt.Errorf("upgrade: %s", text)
}

// dialTCP connects to host:port. Names are resolved anew, and each of their
// addresses gets its share of the time. It is refused only if all are: an
// address of the wrong family says nothing about the process.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips, err := lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, ip := range ips {
		nc, err := dialOne(ctx, net.JoinHostPort(ip.String(), port), len(ips)-i)
		if err == nil {
			return nc, nil
		}
		if failed == nil || errors.Is(failed, syscall.ECONNREFUSED) {
			failed = err
		}
	}
	return nil, failed
}

func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("%s has no address", host)
	}
	return ips, err
}

// dialOne connects within a share of what is left of the context's time.
func dialOne(ctx context.Context, addr string, shares int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(shares))
		defer cancel()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
