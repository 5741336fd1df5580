// Package session is one native connection to one named server, without any
// of the comforts of package client: no reconnect, no redirect, no second
// connection. The commands that are about one server (ping, bench) or one
// request (release, extend) use it.
package session
