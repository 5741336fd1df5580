package main

import (
	"holdfast/internal/node"
	"holdfast/internal/web/ui"
)

var uiModes = map[choice]ui.Mode{"full": ui.Full, "readonly": ui.ReadOnly, "off": ui.Off}

// dashboard is what the dashboard shows of the settings.
func (s *settings) dashboard(past *node.History) ui.Config {
	cfg := ui.Config{
		Mode: uiModes[s.UI], History: past.Samples,
		Limits: s.table(), MaxConnections: connectionLimit(int(s.MaxConnections)),
	}
	if len(s.Peers) > 0 {
		cfg.Replication = string(s.Replication)
	}
	for _, one := range s.all {
		cfg.Settings = append(cfg.Settings, ui.Setting{Name: one.name, Value: one.shown(), Source: one.source})
	}
	return cfg
}
