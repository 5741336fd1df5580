package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// listenAddr is where to listen.
type listenAddr string

func (a *listenAddr) Decode(text string) error {
	if _, _, err := splitAddr(text); err != nil {
		return err
	}
	*a = listenAddr(text)
	return nil
}

// wildcard says whether the address stands for every address of the machine.
func (a listenAddr) wildcard() bool {
	host, _, _ := splitAddr(string(a))
	return host == "" || isUnspecified(host)
}

func splitAddr(text string) (host string, port uint16, err error) {
	host, p, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, errors.New("is not HOST:PORT (an IPv6 address needs brackets)")
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, errors.New("has no port from 0 to 65535")
	}
	if host != "" && !validHost(host) {
		return "", 0, errors.New("has a host that is neither an IP address nor a name")
	}
	return host, uint16(n), nil
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsUnspecified()
}

func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && len(host) <= 253 && onlyHas(host, ".-_")
}

// onlyHas says whether text consists of ASCII letters, digits and those others.
func onlyHas(text, others string) bool {
	for _, r := range text {
		isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		isDigit := '0' <= r && r <= '9'
		if !isLetter && !isDigit && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return true
}

// reachAddr is an address that clients can be sent to.
type reachAddr string

func (a *reachAddr) Decode(text string) error {
	host, port, err := splitAddr(text)
	if err != nil {
		return err
	}
	if host == "" || isUnspecified(host) || port == 0 {
		return errors.New("is no address that a client can go to")
	}
	*a = reachAddr(text)
	return nil
}

// reachURL is an HTTP address that clients can be sent to.
type reachURL string

func (u *reachURL) Decode(text string) error {
	text = strings.TrimSpace(text)
	host, err := bareURL(text)
	if err != nil {
		return err
	}
	if isUnspecified(host) {
		return fmt.Errorf("names %q, to which no client can go", text)
	}
	*u = reachURL(strings.TrimSuffix(text, "/"))
	return nil
}

// origin is a scheme and a host, as browsers send them in the Origin header.
type origin string

func (o *origin) Decode(text string) error {
	text = strings.TrimSpace(text)
	if _, err := bareURL(text); err != nil {
		return err
	}
	*o = origin(strings.ToLower(strings.TrimSuffix(text, "/")))
	return nil
}

// bareURL returns the host of a URL that has nothing but a scheme, a host and perhaps a port.
func bareURL(text string) (host string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()) {
		return "", fmt.Errorf("has %q, which is not http://HOST or https://HOST with perhaps a port", text)
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("has %q, with more than scheme, host and port", text)
	}
	return u.Hostname(), nil
}

// nodeName names this node.
type nodeName string

func (n *nodeName) Decode(text string) error {
	if len(text) > 63 || !onlyHas(text, ".-_") {
		return errors.New("is no name for a node")
	}
	*n = nodeName(text)
	return nil
}

// hostName is a host name, without a port, or * for any.
type hostName string

func (h *hostName) Decode(text string) error {
	text = strings.TrimSpace(text)
	if text != "*" && !validHost(text) {
		return fmt.Errorf("has %q, which is no host name", text)
	}
	*h = hostName(text)
	return nil
}

// network is a range of IP addresses.
type network netip.Prefix

func (n *network) Decode(text string) error {
	text = strings.TrimSpace(text)
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		*n = network(netip.PrefixFrom(ip, ip.BitLen()))
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("has %q, which is neither an IP address nor a CIDR range", text)
	}
	*n = network(prefix.Masked())
	return nil
}

func (n network) String() string { return netip.Prefix(n).String() }
