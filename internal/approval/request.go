// Package approval decides who may do what: it holds the effects an action can
// have, the request that describes one action completely, the permit that proves
// a request was authorised, and the gate that alone makes permits.
//
// It knows nothing of tools, models, terminals or files. Rules come in through
// Policy, a person's answers through Asker, and the record through Recorder. The
// agent loop calls the gate; tools check the permit they are handed.
package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
)

// Effect is what an action may do to the world. The zero value is Unknown, which
// always asks.
type Effect uint8

// The effects, from the words of the design.
const (
	Unknown        Effect = iota // not stated: asks
	Read                         // looks at the workspace, changes nothing
	WorkspaceWrite               // changes files inside the workspace
	Exec                         // runs a shell command on this machine
	Network                      // talks to the network without a shell
	ExternalWrite                // changes something outside this machine
	Delegate                     // hands work to another agent program
	Peer                         // sends a message to another zcoder
)

var effectNames = [...]string{"unknown", "read", "workspace-write", "exec", "network", "external-write", "delegate", "peer"}

// String returns the effect's name as used in records and policy files.
func (e Effect) String() string {
	if int(e) < len(effectNames) {
		return effectNames[e]
	}
	return fmt.Sprintf("effect(%d)", uint8(e))
}

// Origin is who started the turn that an action belongs to. The zero value is
// OriginUnknown and is treated like a peer: no grant covers it.
type Origin uint8

// The origins of a turn.
const (
	OriginUnknown Origin = iota
	OriginUser           // a person at this terminal
	OriginRemote         // a person at a remote client
	OriginPeer           // another zcoder of the same user
)

var originNames = [...]string{"unknown", "user", "remote", "peer"}

// String returns the origin's name as used in records.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return fmt.Sprintf("origin(%d)", uint8(o))
}

// PathUse is one file or directory that an action reads or writes.
type PathUse struct {
	Path  string // absolute, resolved
	Rel   string // relative to the workspace, as shown; empty when outside
	Write bool
}

// Request describes one validated call completely: it is what policy judges, what
// a person is shown, what is recorded and what the permit covers. It is a value;
// whoever receives one does not change it.
type Request struct {
	CallID string // unique within the conversation
	Tool   string // name the model used
	Effect Effect
	Origin Origin // set by the loop, never by the tool
	Turn   string // id of the turn, set by the loop

	Summary string    // one line for progress, e.g. "read_file main.go"
	Text    string    // exact text to approve: the command, the diff, the message
	Shell   []string  // for Exec: the program and flags that Text is appended to
	Dir     string    // for Exec: absolute working directory
	Timeout string    // for Exec: the deadline as shown, e.g. "2m0s"
	Paths   []PathUse // files that the action reads or writes
	Args    string    // the arguments in canonical JSON

	// MustAsk holds reasons why this call asks a person whatever grants say:
	// several hard links, a secret-like file, a file that runs code later.
	// Only a policy rule that names the path can answer in their stead.
	MustAsk []string
	// Notes are reading aids shown under Text; they carry no authority.
	Notes []string
}

// Digest identifies the request. Two requests with the same digest are the same in
// every field.
func (r Request) Digest() Digest {
	h := sha256.New()
	for _, s := range []string{r.CallID, r.Tool, r.Effect.String(), r.Origin.String(), r.Turn, r.Summary, r.Text, r.Dir, r.Timeout, r.Args} {
		writePart(h, s)
	}
	writeList(h, r.Shell)
	writeList(h, r.MustAsk)
	writeList(h, r.Notes)
	writeCount(h, len(r.Paths))
	for _, p := range r.Paths {
		writePart(h, p.Path)
		writePart(h, p.Rel)
		writePart(h, fmt.Sprint(p.Write))
	}
	return Digest(h.Sum(nil))
}

// Digest is the SHA-256 of a request.
type Digest [sha256.Size]byte

// String returns the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func writeList(h hash.Hash, list []string) {
	writeCount(h, len(list))
	for _, s := range list {
		writePart(h, s)
	}
}

func writePart(h hash.Hash, s string) {
	writeCount(h, len(s))
	h.Write([]byte(s))
}

func writeCount(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
