// Package fixture imports what it must not.
package fixture

import (
	_ "context"      // want: imports context
	_ "crypto/rand"  // want: imports crypto/rand
	_ "hash/maphash" // want: imports hash/maphash
	logging "log"    // want: imports log
	_ "log/slog"     // want: imports log/slog
	_ "net"          // want: imports net
	_ "net/http"     // want: imports net/http
	_ "os"           // want: imports os
	_ "sort"         // fine
	_ "sync/atomic"  // want: imports sync/atomic
	_ "unicode/utf8" // fine
)

var _ = logging.Println
