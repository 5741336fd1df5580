package node

import (
	"time"

	"holdfast/internal/locks"
)

// NoticeType is what a Notice is about.
type NoticeType uint8

const (
	NoticeRole       NoticeType = iota + 1 // this node's role has changed: Role, Text
	NoticeHandoff                          // a hand-off has begun, or come to nothing: Node, Text
	NoticePeer                             // a peer came, went or was refused: Node, Text
	NoticeMerge                            // a state was offered or merged: Node, Text
	NoticeTwoActives                       // another node is active too: Node, Text
	NoticeCluster                          // anything else between the nodes: Text
	NoticeOperator                         // an operator did something: Action, Who, From, Why, Result, and Key, Token or Node
	NoticeExpired                          // a grant ended with its lease: Key, Token
	NoticeForced                           // a grant was ended by an operator: Key, Token
	NoticeSuperseded                       // a grant gave way in a merge: Key, Token
	NoticeRemoved                          // a waiter was taken out by an operator: Key
	NoticeTimeout                          // a wait ended without a grant: Key
	NoticeAuth                             // an auth token was refused: From, Text
	NoticeLimit                            // something was refused for a limit: Key or From, Text
	NoticeGrant                            // Key, Token, Owner; only while somebody watches that key
	NoticeRelease                          // Key, Token; the same. Text says it where the grant was withdrawn
	numNoticeTypes
)

var noticeNames = [numNoticeTypes]string{
	NoticeRole: "role", NoticeHandoff: "handoff", NoticePeer: "peer", NoticeMerge: "merge", NoticeTwoActives: "two-actives",
	NoticeCluster: "cluster", NoticeOperator: "operator", NoticeExpired: "expired", NoticeForced: "forced",
	NoticeSuperseded: "superseded", NoticeRemoved: "removed", NoticeTimeout: "timeout", NoticeAuth: "auth",
	NoticeLimit: "limit", NoticeGrant: "grant", NoticeRelease: "release",
}

func (t NoticeType) String() string {
	if t == 0 || t >= numNoticeTypes {
		return "unknown"
	}
	return noticeNames[t]
}

// NoticeTypes returns every type, for tables that must not forget one.
func NoticeTypes() []NoticeType {
	all := make([]NoticeType, 0, numNoticeTypes-1)
	for t := NoticeRole; t < numNoticeTypes; t++ {
		all = append(all, t)
	}
	return all
}

// NoticeTypeOf returns the type of that name.
func NoticeTypeOf(name string) (t NoticeType, known bool) {
	for t = NoticeRole; t < numNoticeTypes; t++ {
		if noticeNames[t] == name {
			return t, true
		}
	}
	return 0, false
}

// Notice is something that happened, for people who look. Which fields are set
// depends on the type; the zero value of a field says nothing.
type Notice struct {
	Seq     uint64    // set by the feed: goes up by at least one from notice to notice
	At      time.Time // set by the feed
	Type    NoticeType
	Key     string
	Token   locks.Token
	Owner   string
	Node    string // the other node concerned
	Role    Role
	Text    string // in words
	Action  string // of operators: what was asked for
	Who     string // of operators: the identity; "" while auth is off
	From    string // network address
	Why     string // of operators: the reason they gave
	Result  string // of operators: what became of it
	Skipped uint64 // this many of the same type, just before, were left out
}

// shelf is where notices of a type are kept: each shelf has room of its own, so
// that a storm of expiries does not push out what explains it.
type shelf uint8

const (
	ofCluster shelf = iota
	ofLocks
	ofTraffic
	numShelves
)

func (t NoticeType) shelf() shelf {
	switch {
	case t <= NoticeOperator:
		return ofCluster
	case t < NoticeGrant:
		return ofLocks
	}
	return ofTraffic
}

// shelfSize is how many notices each shelf keeps; what comes then pushes out the
// oldest. At the most that may come in a second, a reader has 4 s for the traffic.
var shelfSize = [numShelves]int{ofCluster: 1024, ofLocks: 4096, ofTraffic: 4096}

const (
	// mostPerSecond bounds the notices of one type that are kept; operators'
	// and the cluster's are not bounded.
	mostPerSecond = 100

	// mostPerPrefix and mostTraffic bound grants and releases in the same way.
	mostPerPrefix = 200
	mostTraffic   = 1000

	// mostPrefixes bounds the different prefixes that are watched at a time: each
	// grant is held against all of them.
	mostPrefixes = 64
)

// budget lets so many through in each second and counts the rest.
type budget struct {
	second  int64
	used    int
	skipped uint64
}

func (b *budget) room(at time.Time, limit int) bool {
	if s := at.Unix(); s != b.second {
		b.second, b.used = s, 0
	}
	return b.used < limit
}
