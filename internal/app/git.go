package app

import (
	"context"
	"time"

	"zcoder/internal/gitstate"
	"zcoder/internal/termtext"
)

// gitPatience bounds how long the start line waits to learn whether files changed.
const gitPatience = 25 * time.Millisecond

// gitLine says where the workspace's repository stands, or "". It reads plain files:
// no git runs, whatever the repository's configuration says.
func (w *workbench) gitLine(ctx context.Context) string {
	state, err := gitstate.Read(ctx, w.ws.Root(), gitstate.Options{Deadline: gitPatience, UserHome: w.p.UserHome})
	if err != nil || !state.Repository {
		return ""
	}
	line := "git " + termtext.Line(state.Branch)
	if state.Detached {
		line = "git detached at " + state.Commit[:min(len(state.Commit), 8)]
	}
	if state.Dirty == gitstate.Dirty {
		line += "*"
	}
	if state.Operation != "" {
		line += " (" + state.Operation + ")"
	}
	if state.Foreign {
		line += ", owned by another user"
	}
	return line
}
