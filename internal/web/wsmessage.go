package web

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

const (
	maxMessageBytes = 64 << 10

	// maxID is the highest id: above it numbers are not exact in JavaScript.
	maxID = 1<<53 - 1
)

// message is what a client sends: its op, its id where it has one, and the
// fields of the op, not judged yet.
type message struct {
	op     string
	id     uint64 // 0: none
	fields []messageField
}

type messageField struct {
	name string
	v    value
}

// readMessage takes a message apart. An error is misuse of the protocol: there
// is nothing that could be answered.
func readMessage(text []byte) (m message, err error) {
	m.fields, err = messageFields(text)
	if err != nil {
		return m, err
	}
	kept := m.fields[:0]
	for _, f := range m.fields {
		switch f.name {
		case "op":
			if m.op, err = parseString(f.v); err != nil {
				return m, &inputError{"op", err.Error()}
			}
		case "id":
			if m.id, err = parseID(f.v); err != nil {
				return m, &inputError{"id", err.Error()}
			}
		default:
			kept = append(kept, f)
		}
	}
	m.fields = kept
	if m.op == "" {
		return m, &inputError{"op", "is missing"}
	}
	return m, nil
}

// messageFields reads one JSON object of scalars and lists of strings.
func messageFields(text []byte) (fields []messageField, err error) {
	s := jsonScanner{rest: string(text)}
	if !s.take('{') {
		return nil, &inputError{what: "a message must be one JSON object"}
	}
	once := func(name string, v value) error {
		for _, f := range fields {
			if f.name == name {
				return &inputError{name, "is given twice"}
			}
		}
		if len(fields) == maxFields {
			return &inputError{what: fmt.Sprintf("a message has at most %d fields", maxFields)}
		}
		if v.kind == kindArray {
			list, err := s.list()
			if err != nil {
				return &inputError{name, err.Error()}
			}
			v.text = list
		}
		fields = append(fields, messageField{name, v})
		return nil
	}
	if !s.take('}') {
		if err := s.members(once); err != nil {
			return nil, err
		}
	}
	if s.space(); s.rest != "" {
		return nil, &inputError{what: "something follows the JSON object"}
	}
	return fields, nil
}

// maxFields bounds the fields of a message, each of which is held against the others.
const maxFields = 32

// list reads a list of strings, the bracket of which is next, as their lines.
func (s *jsonScanner) list() (string, error) {
	s.rest = s.rest[1:]
	if s.take(']') {
		return "", nil
	}
	var lines []string
	for {
		if s.space(); !strings.HasPrefix(s.rest, `"`) {
			return "", errors.New("must be a list of strings")
		}
		one, err := s.string()
		if err != nil {
			return "", err
		}
		lines = append(lines, one)
		if s.take(']') {
			return strings.Join(lines, "\n"), nil
		}
		if !s.take(',') {
			return "", errors.New(`an element is not followed by "," or "]"`)
		}
	}
}

func parseID(v value) (uint64, error) {
	n, err := parseInt(maxID)(v)
	if err == nil && n == 0 {
		err = fmt.Errorf("must be a whole number from 1 to %d", maxID)
	}
	return uint64(n), err
}

// decodeMessage sorts a message's fields into a T.
func decodeMessage[T any](s schema[T], m *message) (T, error) {
	return s.decode(func(fn func(string, value) error) error {
		for _, f := range m.fields {
			if err := fn(f.name, f.v); err != nil {
				return err
			}
		}
		return nil
	})
}

type wsHello struct{ auth, owner string }

var wsHelloSchema = schema[wsHello]{
	take("auth", func(in *wsHello) *string { return &in.auth }, parseString),
	take("owner", func(in *wsHello) *string { return &in.owner }, parseLabel),
}

type wsAcquire struct {
	key                           string
	lease, wait                   time.Duration
	try, shared, bound, contended bool
	slots                         uint16
	ticket                        *locks.Ticket
	owner                         string
}

var wsAcquireSchema = schema[wsAcquire]{
	need("key", func(in *wsAcquire) *string { return &in.key }, parseKey),
	take("lease", func(in *wsAcquire) *time.Duration { return &in.lease }, parseSeconds),
	take("wait", func(in *wsAcquire) *time.Duration { return &in.wait }, secondsUpTo(maxWait)),
	take("try", func(in *wsAcquire) *bool { return &in.try }, parseBool),
	take("shared", func(in *wsAcquire) *bool { return &in.shared }, parseBool),
	take("bound", func(in *wsAcquire) *bool { return &in.bound }, parseBool),
	take("contended", func(in *wsAcquire) *bool { return &in.contended }, parseBool),
	take("slots", func(in *wsAcquire) *uint16 { return &in.slots }, parseSlots),
	take("ticket", func(in *wsAcquire) **locks.Ticket { return &in.ticket }, optional(parseTicket)),
	take("owner", func(in *wsAcquire) *string { return &in.owner }, parseLabel),
}

type wsCancel struct{ target uint64 }

var wsCancelSchema = schema[wsCancel]{
	need("target", func(in *wsCancel) *uint64 { return &in.target }, parseID),
}

type wsWatch struct {
	prefix *string
	types  *watchTypes
}

var wsWatchSchema = schema[wsWatch]{
	take("prefix", func(in *wsWatch) **string { return &in.prefix }, optional(parseFilter)),
	take("types", func(in *wsWatch) **watchTypes { return &in.types }, optional(parseTypes)),
}

// watchTypes are the types of events that are watched, and whether stats are.
type watchTypes struct {
	notices []node.NoticeType
	stats   bool
}

func parseTypes(v value) (types watchTypes, err error) {
	if v.kind != kindArray {
		return types, v.mismatch("a list of strings")
	}
	for name := range strings.SplitSeq(v.text, "\n") {
		t, known := node.NoticeTypeOf(name)
		switch {
		case slices.Contains(types.notices, t):
			return types, fmt.Errorf("names %q twice", name)
		case known:
			types.notices = append(types.notices, t)
		case name == "stats":
			types.stats = true
		default:
			return types, fmt.Errorf("%q is no type of events", name[:min(len(name), 64)])
		}
	}
	return types, nil
}
