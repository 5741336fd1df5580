package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/wire"
)

// oneOf is a flag with a fixed set of values.
type oneOf struct {
	value   *string
	allowed []string
}

func (f oneOf) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

func (f oneOf) Type() string { return strings.Join(f.allowed, "|") }

func (f oneOf) Set(s string) error {
	if !slices.Contains(f.allowed, s) {
		return fmt.Errorf("one of %s", strings.Join(f.allowed, ", "))
	}
	*f.value = s
	return nil
}

// register adds the flag, with its values for shell completion.
func (f oneOf) register(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(f, name, short, usage)
	complete := cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag was registered in the line above
	}
}

// outputFormat is how looking commands print.
type outputFormat string

const (
	outputTable outputFormat = "table"
	outputJSON  outputFormat = "json"
)

func (o *outputFormat) register(cmd *cobra.Command) {
	*o = outputTable
	oneOf{(*string)(o), []string{string(outputTable), string(outputJSON)}}.register(cmd, "output", "o", "how to print")
}

// scriptFormat is how acquire, release and extend print.
type scriptFormat string

const (
	formatText scriptFormat = "text"
	formatJSON scriptFormat = "json"
	formatEnv  scriptFormat = "env"
)

func (f *scriptFormat) register(cmd *cobra.Command) {
	*f = formatText
	allowed := []string{string(formatText), string(formatJSON), string(formatEnv)}
	oneOf{(*string)(f), allowed}.register(cmd, "format", "", "how to print")
}

// checkDuration judges a lease or a wait, which travel as milliseconds in 32 bits.
func checkDuration(flag string, d time.Duration) error {
	if d < 0 || d > math.MaxUint32*time.Millisecond || d > 0 && d < time.Millisecond {
		return fmt.Errorf("--%s: %v; 0, or 1ms to %v", flag, d, time.Duration(math.MaxUint32)*time.Millisecond)
	}
	return nil
}

// parseToken reads a fencing token.
func parseToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token == 0 {
		return 0, fmt.Errorf("token %q: a number from 1 on, as acquire printed it", s)
	}
	return token, nil
}

// parseTicket reads 32 hexadecimal digits, with or without a UUID's dashes.
func parseTicket(s string) (wire.Ticket, error) {
	var t wire.Ticket
	digits := strings.ReplaceAll(s, "-", "")
	n, err := hex.Decode(t[:], []byte(digits[:min(len(digits), 2*len(t))]))
	if err != nil || n != len(t) || len(digits) != 2*len(t) || t.IsZero() {
		return t, fmt.Errorf("--ticket %q: a random UUID or 32 hexadecimal digits, not all zero", s)
	}
	return t, nil
}

// quoteShell quotes s so that a POSIX shell reads it as one word.
func quoteShell(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
