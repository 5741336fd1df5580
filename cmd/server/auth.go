package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"

	"holdfast/internal/web"
)

// tokenIdentity is who shows the one auth token. It stays the same when the token changes, so that a ticket made with
// the old one can be claimed with the new.
const tokenIdentity = "token"

// authenticator judges auth tokens for both ports. What it keeps is a hash: two of equal length are compared in constant
// time, so neither how much of a guess is right nor the token's length can be measured.
type authenticator struct {
	hash atomic.Pointer[[sha256.Size]byte]
}

func newAuthenticator(token secret) *authenticator {
	a := &authenticator{}
	a.replace(token)
	return a
}

// replace makes token the one that counts and says whether it differs from the one before. Connections that
// authenticated themselves before stay.
func (a *authenticator) replace(token secret) (changed bool) {
	sum := sha256.Sum256([]byte(token))
	old := a.hash.Swap(&sum)
	return old == nil || *old != sum
}

func (a *authenticator) knows(given []byte) bool {
	sum := sha256.Sum256(given)
	return subtle.ConstantTimeCompare(sum[:], a.hash.Load()[:]) == 1
}

// native is the hook of the TCP port.
func (a *authenticator) native(given []byte) (identity string, ok bool) {
	if !a.knows(given) {
		return "", false
	}
	return tokenIdentity, true
}

// web is the hook of the HTTP port.
func (a *authenticator) web(given string) (web.Identity, bool) {
	if !a.knows([]byte(given)) {
		return web.Identity{}, false
	}
	return web.Identity{Name: tokenIdentity, Operate: true}, true
}
