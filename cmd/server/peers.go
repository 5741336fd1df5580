package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"holdfast/internal/replica"
)

// peer is a node of the cluster: its name, and where the others reach its HTTP port.
type peer struct {
	name nodeName
	url  reachURL
}

func (p peer) String() string { return string(p.name) + "=" + string(p.url) }

// host is the host of the peer's address, without the brackets of an IPv6 address.
func (p peer) host() string { return hostOf(p.url) }

// peerList is every node of the cluster by priority.
type peerList []peer

func (l *peerList) Decode(text string) error {
	var list peerList
	for entry := range strings.SplitSeq(text, ",") {
		p, err := parsePeer(strings.TrimSpace(entry))
		if err != nil {
			return err
		}
		if err := list.clash(p); err != nil {
			return err
		}
		list = append(list, p)
	}
	if len(list) > replica.MaxNodes {
		return fmt.Errorf("has %d entries", len(list))
	}
	*l = list
	return nil
}

func parsePeer(entry string) (p peer, err error) {
	name, address, found := strings.Cut(entry, "=")
	if !found {
		return p, fmt.Errorf("has %q, which is not NAME=http://HOST:PORT", entry)
	}
	if name == "" || p.name.Decode(name) != nil {
		return p, fmt.Errorf("has %q, whose name is none for a node", entry)
	}
	if err := p.url.Decode(address); err != nil {
		return p, err
	}
	// A port left out is far more often forgotten than meant to be 80.
	u, err := url.Parse(string(p.url))
	if err != nil {
		return p, err
	}
	if _, port, err := splitAddr(u.Host); err != nil || port == 0 {
		return p, fmt.Errorf("has %q, without a port from 1 to 65535", entry)
	}
	return p, nil
}

// clash says whether p has the name or the address of another.
func (l peerList) clash(p peer) error {
	for _, other := range l {
		switch {
		case other.name == p.name:
			return fmt.Errorf("names %s twice", p.name)
		case strings.EqualFold(string(other.url), string(p.url)):
			return fmt.Errorf("gives %s and %s the same address", other.name, p.name)
		}
	}
	return nil
}

// rank is the index of the node of that name; -1 if it is not in the list.
func (l peerList) rank(name nodeName) int {
	return slices.IndexFunc(l, func(p peer) bool { return p.name == name })
}

func (l peerList) names() []string {
	names := make([]string, len(l))
	for i, p := range l {
		names[i] = string(p.name)
	}
	return names
}

// onLoopback says whether all nodes are on one machine, as in a trial: then its own addresses lead to each of them.
func (l peerList) onLoopback() bool {
	return !slices.ContainsFunc(l, func(p peer) bool { return !isLoopbackHost(p.host()) })
}

func hostOf(u reachURL) string {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

func isLoopbackHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.Unmap().IsLoopback()
}

// onPort is the host of a peer's address with another port.
func (p peer) onPort(port uint16) reachAddr {
	return reachAddr(net.JoinHostPort(p.host(), fmt.Sprint(port)))
}

// secrets are one secret or two, while one is being changed for the other.
type secrets []secret

func (s *secrets) Decode(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) > 2 {
		return fmt.Errorf("holds %d secrets", len(parts))
	}
	var list secrets
	for i, part := range parts {
		var one secret
		err := one.Decode(part)
		switch {
		case err != nil && len(parts) == 1:
			return err
		case err != nil:
			return fmt.Errorf("has a mistake in secret %d of 2: it %w", i+1, err)
		}
		list = append(list, one)
	}
	if len(list) == 2 && list[0] == list[1] {
		return errors.New("holds the same secret twice")
	}
	*s = list
	return nil
}

func (s secrets) plain() []string { return texts(s) }
