package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Add registers a server in the file of its scope. It refuses a name that is taken
// there, unless replace is set.
func (h *Hub) Add(s Server, replace bool) error {
	raw, err := EntryText(s)
	if err == nil && s.Kind != Stdio && !strings.Contains(s.URL, "${") {
		err = checkURL(s.URL)
	}
	if err != nil {
		return fmt.Errorf("add server %q: %w", s.Name, err)
	}
	return h.edit(s.Scope, func(f *file) ([]byte, error) {
		if !replace && f.has(s.Name) {
			return nil, fmt.Errorf("there is a server %q already", s.Name)
		}
		return withEntry(f.data, s.Name, raw)
	})
}

// Remove takes a server out of the file of its scope.
func (h *Hub) Remove(scope Scope, name string) error {
	return h.edit(scope, func(f *file) ([]byte, error) { return withoutEntry(f.data, name) })
}

// Enable switches a server on or off in the file of its scope.
func (h *Hub) Enable(scope Scope, name string, on bool) error {
	return h.edit(scope, func(f *file) ([]byte, error) {
		data, err := withField(f.data, name, "enabled", []byte(fmt.Sprint(on)))
		if err == nil && on && f.disabled(name) {
			data, err = withField(data, name, "disabled", []byte("false"))
		}
		return data, err
	})
}

// edit changes a registry file and leaves what it does not touch byte for byte.
func (h *Hub) edit(scope Scope, change func(*file) ([]byte, error)) error {
	f := readFile(h.at.fileOf(scope), scope)
	if f.problem != "" {
		return errors.New(f.problem)
	}
	data, err := change(f)
	if err != nil {
		return err
	}
	if _, err := parseFile(data, scope); err != nil {
		return fmt.Errorf("edit %s: the result would not be readable: %w", f.path, err)
	}
	mode := fs.FileMode(0o600)
	if scope == Project {
		mode = 0o644
	}
	if err := replaceFile(f.path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	h.Reload()
	return nil
}

func (f *file) has(name string) bool {
	for _, e := range f.entries {
		if e.Name == name {
			return true
		}
	}
	return false
}

// disabled reports whether an entry says "disabled".
func (f *file) disabled(name string) bool {
	for _, e := range f.entries {
		if e.Name != name {
			continue
		}
		list, err := membersOf(e.Raw)
		_, has := memberOf(list, "disabled")
		return err == nil && has
	}
	return false
}

// ScopeOf returns where a name is registered: the only scope that has it. With none
// or both the error says so.
func (h *Hub) ScopeOf(name string) (Scope, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own, project := h.reg.user.has(name), h.reg.project.has(name)
	switch {
	case own && project:
		return "", fmt.Errorf("there are two servers %q, yours and the project's; name one with --scope", name)
	case own:
		return User, nil
	case project:
		return Project, nil
	}
	_, err := h.reg.entryFor(name)
	return "", err
}
