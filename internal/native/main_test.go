package native

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata got as what they want")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
