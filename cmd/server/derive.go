package main

import "os"

// derive fills in the defaults that depend on the machine or on other settings, so that --check-config shows them.
func (s *settings) derive() {
	if s.Node == "" {
		s.deriveNode()
	}
	if len(s.Peers) > 0 {
		s.deriveAdvertised()
		return
	}
	if s.AdvertiseNative == "" && reachable(s.NativeAddr) {
		s.AdvertiseNative = reachAddr(s.NativeAddr)
	}
	if len(s.AdvertiseHTTP) == 0 && reachable(s.HTTPAddr) {
		s.AdvertiseHTTP = []reachURL{reachURL("http://" + string(s.HTTPAddr))}
	}
}

func (s *settings) deriveNode() {
	host, err := os.Hostname()
	if err == nil {
		err = s.Node.Decode(host)
	}
	if err != nil {
		s.problem("HOLDFAST_NODE", "the machine's host name %q can't be used: set a name here", host)
	}
}

// reachable says whether clients can be sent to where a listener listens: not to every address at once, and not to a
// port that the system has yet to choose.
func reachable(a listenAddr) bool {
	_, port, err := splitAddr(string(a))
	return err == nil && port != 0 && !a.wildcard()
}

// ownHosts lists the names and addresses by which this node is known, for the check of the Host header.
func (c *config) ownHosts() []string {
	var hosts []string
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, addr := range []string{string(c.NativeAddr), string(c.HTTPAddr), string(c.AdvertiseNative)} {
		if host, _, err := splitAddr(addr); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	for _, advertised := range c.AdvertiseHTTP {
		hosts = append(hosts, hostOf(advertised))
	}
	for _, p := range c.Peers {
		hosts = append(hosts, p.host())
	}
	return hosts
}
