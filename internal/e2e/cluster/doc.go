// Package cluster tests Holdfast clusters from outside: real processes, killed, stopped, paused and cut off from each
// other, and clients that note all they are told, so that a checker can hold it against what is promised.
//
// The nodes of a test share the ports 7620 and 7621, each on a loopback address of its own (127.x.y.z), or in a network
// namespace of its own where links between them are cut. All of this is Linux; elsewhere the package has no tests.
package cluster
