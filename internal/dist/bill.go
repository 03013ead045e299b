package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of a CycloneDX 1.5 document that we write.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type        string     `json:"type"`
		Ref         string     `json:"bom-ref"`
		Name        string     `json:"name"`
		Version     string     `json:"version"`
		Description string     `json:"description,omitempty"`
		Hashes      []hash     `json:"hashes,omitempty"`
		PURL        string     `json:"purl,omitempty"`
		Properties  []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref  string   `json:"ref"`
		Uses []string `json:"dependsOn"`
	}
)

// bill lists what a program is built from, as the program itself tells: its modules with
// their checksums, the Go release, and how it was built.
func bill(info *debug.BuildInfo, version string, program []byte, when time.Time) ([]byte, error) {
	self := component{Type: "application", Ref: "zcoder", Name: "zcoder", Version: version,
		Hashes: []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(program))}}}
	for _, s := range info.Settings {
		self.Properties = append(self.Properties, property{"go:" + s.Key, s.Value})
	}
	release := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Type: "library", Ref: "std", Name: "std", Version: info.GoVersion, Description: "the standard library of Go", PURL: "pkg:golang/std@" + release}}
	for _, m := range info.Deps {
		parts = append(parts, module(m))
	}
	uses := make([]string, len(parts))
	for i, p := range parts {
		uses[i] = p.Ref
	}
	text, err := json.MarshalIndent(document{"CycloneDX", "1.5", 1, metadata{when.Format(time.RFC3339), self}, parts, []dependency{{"zcoder", uses}}}, "", "  ")
	return append(text, '\n'), err
}

// module describes a module that is linked. One that a directory of this tree replaces
// is ours, whatever its name.
func module(m *debug.Module) component {
	c := component{Type: "library", Ref: m.Path, Name: m.Path, Version: m.Version}
	if r := m.Replace; r != nil && r.Version == "" {
		c.Description = "replaced by " + strings.TrimPrefix(r.Path, "./") + " of this tree"
		return c
	} else if r != nil {
		m = r
		c.Name, c.Version = r.Path, r.Version
	}
	c.PURL = "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
