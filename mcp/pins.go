package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"zcoder/internal/ownfile"
)

// pinFile is the name of the file in $ZCODER_HOME that holds what was trusted.
const pinFile = "mcp-pins.json"

// pins is what a person approved and what servers had at first use.
type pins struct {
	Version  int                    `json:"version"`
	Projects map[string]*projectPin `json:"projects,omitempty"` // by canonical workspace
	Servers  map[string]*serverPin  `json:"servers,omitempty"`  // by key
}

// projectPin is the content of a project's file that a person approved.
type projectPin struct {
	Digest  string `json:"digest"`
	Content string `json:"content"` // for the diff when it changed
	// Servers are those that were approved, with what their commands resolved to.
	Servers map[string]Program `json:"servers"`
}

// serverPin is what a server offered when it was used first, or confirmed last.
type serverPin struct {
	Tools []toolPin `json:"tools"`
	// NoProbe remembers that the server did not bear the question which protocol it
	// speaks.
	NoProbe bool `json:"noProbe,omitempty"`
	// Prompts are the names of its prompts, so that they are known before it runs.
	Prompts []promptPin `json:"prompts,omitempty"`
}

// remembers reports whether the pin has all of what was seen beside the tools.
func (s *serverPin) remembers(seen listing) bool {
	return (s.NoProbe || !seen.noProbe) && (!seen.asked || samePrompts(s.Prompts, seen.prompts))
}

func (s *serverPin) remember(seen listing) {
	s.NoProbe = s.NoProbe || seen.noProbe
	if seen.asked {
		s.Prompts = seen.prompts
	}
}

type toolPin struct {
	Definition
	// Accepted is the effect that the server claims and a person confirmed although
	// the tool's name contradicts it.
	Accepted string `json:"accepted,omitempty"`
}

type promptPin struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Args        []promptArg `json:"arguments,omitempty"`
}

type promptArg struct {
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
}

// pinKey names a server in the pins.
func pinKey(scope Scope, root, name string) string {
	if scope != User {
		return string(scope) + " " + root + " " + name
	}
	return "user " + name
}

func contentDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// store is the pin file. One that cannot be read pins nothing and is never written
// over.
type store struct{ dir string }

func (s store) path() string { return filepath.Join(s.dir, pinFile) }

func (s store) load() (*pins, error) {
	p := &pins{Version: 1}
	data, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		err = dec.Decode(p)
	}
	if err == nil && p.Version != 1 {
		err = fmt.Errorf("version %d is not known", p.Version)
	}
	if err != nil {
		return &pins{Version: 1}, fmt.Errorf("read what was trusted (%s): %w", s.path(), err)
	}
	return p, nil
}

// change edits the pins while no other process does.
func (s store) change(edit func(*pins)) error {
	lock, err := ownfile.Open(s.path()+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("lock what was trusted: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock what was trusted: %w", err)
	}
	p, err := s.load()
	if err != nil {
		return err
	}
	edit(p)
	data, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("store what is trusted: %w", err)
	}
	if err := replaceFile(s.path(), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("store what is trusted: %w", err)
	}
	return nil
}

func (p *pins) project(root string) *projectPin { return p.Projects[root] }

func (p *pins) server(key string) *serverPin { return p.Servers[key] }

// setServer stores a server's pin; nil removes it.
func (p *pins) setServer(key string, pin *serverPin) {
	if pin == nil {
		delete(p.Servers, key)
		return
	}
	if p.Servers == nil {
		p.Servers = map[string]*serverPin{}
	}
	p.Servers[key] = pin
}

func (p *pins) setProject(root string, pin *projectPin) {
	if pin == nil {
		delete(p.Projects, root)
		return
	}
	if p.Projects == nil {
		p.Projects = map[string]*projectPin{}
	}
	p.Projects[root] = pin
}

// tool finds a pinned tool by its server's name for it.
func (s *serverPin) tool(name string) (toolPin, bool) {
	if s != nil {
		for _, t := range s.Tools {
			if t.Name == name {
				return t, true
			}
		}
	}
	return toolPin{}, false
}
