package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
)

// printSettings writes what counts now and where it came from.
func (s *settings) printSettings(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, one := range s.all {
		fmt.Fprintf(tab, "%s\t%s\t%s\n", one.name, one.shown(), one.source)
	}
	_ = tab.Flush() // to the standard output: there is nobody to tell
}

// printProblems writes what must be mended before the daemon starts.
func (s *settings) printProblems(w io.Writer) {
	noun := "problems"
	if len(s.problems) == 1 {
		noun = "problem"
	}
	fmt.Fprintf(w, "holdfastd: %d %s in the configuration:\n", len(s.problems), noun)
	for _, p := range s.problems {
		fmt.Fprintf(w, "  %s\n", p)
	}
}

func (s *setting) shown() string {
	switch {
	case !s.sound:
		return "(problem)"
	case s.value.Kind() != reflect.Slice:
		return orDash(fmt.Sprint(s.value))
	}
	var items []string
	for i := range s.value.Len() {
		items = append(items, fmt.Sprint(s.value.Index(i)))
	}
	return orDash(strings.Join(items, ","))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
