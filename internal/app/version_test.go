package app

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersionText(t *testing.T) {
	here := runtime.GOOS + "/" + runtime.GOARCH
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-11-30T17:04:03Z"}}
	for _, c := range []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"nothing known", nil, version + " (go1.26.8 " + here + ")"},
		{"a commit", append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), version + " (go1.26.8 " + here + ", commit 0123456789ab of 2026-11-30)"},
		{"with changes", append(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), version + " (go1.26.8 " + here + ", commit 0123456789ab of 2026-11-30, changed)"},
	} {
		if got := versionText(&debug.BuildInfo{GoVersion: "go1.26.8", Settings: c.settings}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
