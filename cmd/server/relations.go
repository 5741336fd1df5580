package main

// checkRelations reports settings that do not fit together. Those that have a problem of their own are left out: the
// first thing to mend is that.
func (s *settings) checkRelations() {
	if s.sound("HOLDFAST_DEFAULT_LEASE", "HOLDFAST_MAX_LEASE") && s.DefaultLease > s.MaxLease {
		s.problem("HOLDFAST_DEFAULT_LEASE", "%s is longer than HOLDFAST_MAX_LEASE (%s)", s.DefaultLease, s.MaxLease)
	}
	if s.sound("HOLDFAST_DRAIN_DELAY", "HOLDFAST_STOP_TIMEOUT") && s.DrainDelay >= s.StopTimeout {
		s.problem("HOLDFAST_DRAIN_DELAY", "%s leaves nothing of HOLDFAST_STOP_TIMEOUT (%s) to stop in", s.DrainDelay, s.StopTimeout)
	}
	if s.sound("HOLDFAST_NATIVE_ADDR", "HOLDFAST_HTTP_ADDR") && samePlace(s.NativeAddr, s.HTTPAddr) {
		s.problem("HOLDFAST_HTTP_ADDR", "%s is taken by HOLDFAST_NATIVE_ADDR (%s)", s.HTTPAddr, s.NativeAddr)
	}
	s.checkCluster()
}

// samePlace says whether two listeners would get in each other's way.
func samePlace(a, b listenAddr) bool {
	hostA, portA, _ := splitAddr(string(a))
	hostB, portB, _ := splitAddr(string(b))
	return portA != 0 && portA == portB && (hostA == hostB || a.wildcard() || b.wildcard())
}
