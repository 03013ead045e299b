package relay

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// manifest is what an instance publishes, in the field order of the contract.
type manifest struct {
	Protocol  int    `json:"protocol"`
	ID        string `json:"instance_id"`
	PID       int    `json:"pid"`
	Project   string `json:"project"`
	Workspace string `json:"workspace"`
	Session   string `json:"session_id"`
	Profile   string `json:"profile"`
	Model     string `json:"model"`
	Socket    string `json:"socket"`
	State     State  `json:"state"`
	StartedAt int64  `json:"started_at"` // seconds since 1970
}

// parseManifest checks every field of the manifest in the file of instance id.
// Fields that it does not know are left alone.
func parseManifest(data []byte, id string) (Peer, error) {
	o, err := parseObject(data)
	if err != nil {
		return Peer{}, err
	}
	var p Peer
	var errs [9]error
	var version int
	var started float64
	version, errs[0] = o.whole("protocol")
	p.ID, errs[1] = o.text("instance_id", 1, maxMessageID)
	p.PID, errs[2] = o.whole("pid")
	p.Project, errs[3] = o.text("project", 1, maxProject)
	p.Workspace, errs[4] = o.text("workspace", 1, maxWorkspace)
	p.Session, errs[5] = o.text("session_id", 0, maxWord)
	p.Profile, errs[6] = o.text("profile", 0, maxWord)
	p.Model, errs[7] = o.text("model", 0, maxWord)
	started, errs[8] = o.seconds("started_at")
	if err := errors.Join(errs[:]...); err != nil {
		return Peer{}, err
	}
	p.Started = time.Unix(int64(started), 0)
	socket, _ := o["socket"].(string)
	state, _ := o["state"].(string)
	p.State = State(state)
	switch {
	case version != protocol:
		return Peer{}, fmt.Errorf("its protocol is %d, not %d", version, protocol)
	case p.ID != id || p.PID != pidOf(id):
		return Peer{}, fmt.Errorf("it names instance %q of process %d", p.ID, p.PID)
	case !filepath.IsAbs(p.Workspace):
		return Peer{}, fmt.Errorf("its workspace %q is no absolute path", p.Workspace)
	case !filepath.IsAbs(socket) || filepath.Base(socket) != socketName(id):
		return Peer{}, fmt.Errorf("its socket %q is not the instance's", socket)
	case !p.State.valid():
		return Peer{}, fmt.Errorf("its state is %q", state)
	}
	return p, nil
}

// check reports whether others will accept what the instance says of itself.
func (s Self) check() error {
	o := object{"project": s.Project, "workspace": s.Workspace, "session": s.Session, "profile": s.Profile, "model": s.Model}
	_, project := o.text("project", 1, maxProject)
	_, place := o.text("workspace", 1, maxWorkspace)
	_, session := o.text("session", 0, maxWord)
	_, profile := o.text("profile", 0, maxWord)
	_, model := o.text("model", 0, maxWord)
	if !filepath.IsAbs(s.Workspace) {
		place = errors.Join(place, fmt.Errorf("the workspace %q is no absolute path", s.Workspace))
	}
	return errors.Join(project, place, session, profile, model)
}
