package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"holdfast/wire"
)

// versionText is what the linker set, else the revision that was built.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "devel-" + s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return "devel"
}

// software is what the server is told.
func software() string { return "holdfast/" + versionText() }

func newVersion(a *app) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "Print the version of this program, what built it, and the protocol version\nthat it speaks. 'holdfast ping' prints the servers' versions.",
		Example: "  holdfast version\n  holdfast version -o json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			if output == outputJSON {
				return writeJSON(a.stdout, map[string]any{
					"version": versionText(), "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH, "protocol": wire.Version,
				})
			}
			_, err := fmt.Fprintf(a.stdout, "holdfast %s (%s, %s/%s, protocol %d)\n",
				versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH, wire.Version)
			return err
		},
	}
	output.register(cmd)
	return cmd
}

// writeJSON writes one indented document.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
