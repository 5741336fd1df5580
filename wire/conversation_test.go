package wire

import (
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// said is a line of a conversation: who, what, and the bytes on the line after it.
var said = regexp.MustCompile(`(?m)^(?://)?\s*([CS]): (.+)\n(?://)?\s*([0-9a-f ]+)$`)

// The conversation in the package documentation, and its copy in the protocol
// page, say what their bytes say, and every reply answers a request.
func TestConversation(t *testing.T) {
	var first [][]string
	for _, file := range []string{"doc.go", "../docs/protocol.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := said.FindAllStringSubmatch(string(text), -1)
		if len(lines) < 20 {
			t.Fatalf("%s: %d frames found", file, len(lines))
		}
		pending := map[string]bool{}
		for i, line := range lines {
			lines[i] = line[1:]
			frame, err := hex.DecodeString(strings.ReplaceAll(line[3], " ", ""))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, line[2], err)
			}
			checkSaid(t, line[1], line[2], frame, pending)
		}
		if len(pending) != 0 {
			t.Errorf("%s: requests without a reply: %v", file, pending)
		}
		if first == nil {
			first = lines
		} else if !reflect.DeepEqual(lines, first) {
			t.Errorf("%s: not the same conversation as in doc.go", file)
		}
	}
}

func checkSaid(t *testing.T, who, what string, frame []byte, pending map[string]bool) {
	if who == "C" {
		var r Request
		mustDecode(t, frame, r.Decode)
		if r.String() != what || r.Check() != nil {
			t.Errorf("the bytes say %v (%v), the text %s", r, r.Check(), what)
		}
		pending[matchKey(r.Op, r.ID, r.Key)] = true
		return
	}
	var r Reply
	mustDecode(t, frame, r.Decode)
	if r.String() != what {
		t.Errorf("the bytes say %v, the text %s", r, what)
	}
	match := matchKey(r.Op, r.ID, r.Key)
	if r.Status != StatusPush && !pending[match] {
		t.Errorf("%v answers nothing", r)
	}
	delete(pending, match)
}

func matchKey(op Op, id uint32, key []byte) string { return fmt.Sprintf("%v %d %q", op, id, key) }
