package relay

import (
	"errors"
	"fmt"
	"regexp"
)

// protocol is the version that all documents carry.
const protocol = 1

// status is the receiver's word on a request.
type status string

const (
	statusPong        status = "pong"
	statusAccepted    status = "accepted"  // stored whole
	statusDuplicate   status = "duplicate" // accepted before
	statusPaused      status = "paused"
	statusFull        status = "full"
	statusInvalid     status = "invalid"
	statusWrongTarget status = "wrong_target"
	statusUnsupported status = "unsupported"
)

func (s status) valid() bool {
	switch s {
	case statusPong, statusAccepted, statusDuplicate, statusPaused, statusFull, statusInvalid, statusWrongTarget, statusUnsupported:
		return true
	}
	return false
}

// header begins every request and is all of a ping; enqueue is the other request.
// The fields stand in the order of the contract.
type header struct {
	Protocol  int    `json:"protocol"`
	Type      string `json:"type"`
	MessageID string `json:"message_id"`
	Target    string `json:"target_instance_id"`
}

type enqueue struct {
	header
	Sender    string `json:"sender_instance_id"`
	PID       int    `json:"sender_pid"`
	Project   string `json:"sender_project"`
	Workspace string `json:"sender_workspace"`
	Body      string `json:"body"`
	CreatedAt int64  `json:"created_at"` // seconds since 1970
}

// ack is the reply to every request.
type ack struct {
	Protocol  int    `json:"protocol"`
	Type      string `json:"type"`
	MessageID string `json:"message_id"`
	Status    status `json:"status"`
	Position  int    `json:"queue_position"`
	State     State  `json:"state"`
}

var messageIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// read takes a request apart for the instance self. The status is "" when the
// request is whole; then env.Body is empty for a ping. id is the message id to
// answer with, "" when there is no valid one.
func read(data []byte, self string, limits Limits) (env Envelope, id string, verdict status) {
	o, err := parseObject(data)
	if err != nil {
		return env, "", statusInvalid
	}
	id, err = o.text("message_id", 1, maxMessageID)
	if err != nil || !messageIDPattern.MatchString(id) {
		return env, "", statusInvalid
	}
	version, err := o.whole("protocol")
	if err != nil {
		return env, id, statusInvalid
	}
	if version != protocol {
		return env, id, statusUnsupported
	}
	target, ok := o["target_instance_id"].(string)
	if !ok {
		return env, id, statusInvalid
	}
	if target != self {
		return env, id, statusWrongTarget
	}
	switch kind, ok := o["type"].(string); {
	case !ok:
		return env, id, statusInvalid
	case kind == "ping":
		return env, id, statusPong
	case kind != "enqueue":
		return env, id, statusUnsupported
	}
	env, err = readMessage(o, limits)
	if err != nil {
		return env, id, statusInvalid
	}
	env.ID = id
	return env, id, ""
}

func readMessage(o object, limits Limits) (Envelope, error) {
	var e Envelope
	var errs [6]error
	e.Sender, errs[0] = o.text("sender_instance_id", 1, maxMessageID)
	e.PID, errs[1] = o.whole("sender_pid")
	e.Project, errs[2] = o.text("sender_project", 1, maxProject)
	e.Workspace, errs[3] = o.text("sender_workspace", 1, maxWorkspace)
	e.Body, errs[4] = o.text("body", 1, limits.MessageChars)
	_, errs[5] = o.seconds("created_at")
	if err := errors.Join(errs[:]...); err != nil {
		return e, err
	}
	if pid := pidOf(e.Sender); pid == 0 || pid != e.PID {
		return e, fmt.Errorf("sender %q is not of process %d", e.Sender, e.PID)
	}
	return e, nil
}

// readAck takes a reply apart.
func readAck(data []byte) (ack, error) {
	var a ack
	o, err := parseObject(data)
	if err != nil {
		return a, err
	}
	if version, err := o.whole("protocol"); err != nil || version != protocol || o["type"] != "ack" {
		return a, errors.New("it is no acknowledgement of this protocol")
	}
	word, _ := o["status"].(string)
	state, _ := o["state"].(string)
	id, ok := o["message_id"].(string)
	a = ack{Protocol: protocol, Type: "ack", MessageID: id, Status: status(word), State: State(state)}
	if !ok || !a.Status.valid() || !a.State.valid() {
		return a, errors.New("a field of the acknowledgement is wrong")
	}
	a.Position, err = o.whole("queue_position")
	return a, err
}
