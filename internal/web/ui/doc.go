// Package ui is the dashboard: pages for the person on call, made on the
// server, that work without JavaScript. The modules in web/static keep an open
// page up to date by asking for it again and changing what differs.
//
// A page is a struct, its view model, made from what the node says by a
// function that knows no HTML; the templates only write it down. Every text
// that clients choose (keys, owners) goes through a template's escaping, and
// keys through runs, which makes invisible characters visible.
//
// Nothing here changes the lock table but the two forms in force.go and
// remove.go, each a page of its own that says what it is about to do.
package ui
