package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"zcoder/internal/ownfile"
)

// The names of the registry files: the person's in $ZCODER_HOME, the project's in the
// workspace.
const (
	UserFile    = "mcp.json"
	ProjectFile = ".mcp.json"
)

// maxFile bounds a registry file, in bytes.
const maxFile = 1 << 20

// serversKey is the member of the file that holds the servers.
const serversKey = "mcpServers"

// file is one registry file as it was read.
type file struct {
	path    string
	scope   Scope
	data    []byte // nil when there is none
	entries []fileEntry
	problem string // why none of it is used
}

// fileEntry is one server of a file, or why it is none.
type fileEntry struct {
	Server
	problem string
}

// readFile reads a registry file. A file that cannot be used has a problem and no
// entries; one bad entry does not hide the others.
func readFile(path string, scope Scope) *file {
	f := &file{path: path, scope: scope}
	data, err := readRegular(path, scope == Project)
	if errors.Is(err, fs.ErrNotExist) {
		return f
	}
	if err != nil {
		f.problem = err.Error()
		return f
	}
	f.data = data
	f.entries, err = parseFile(data, scope)
	if err != nil {
		f.problem = fmt.Sprintf("read %s: %v", filepath.Base(path), err)
	}
	return f
}

// readRegular reads a bounded regular file and never waits. Of a project it is not
// read through a link.
func readRegular(path string, noLink bool) ([]byte, error) {
	flags := os.O_RDONLY | unix.O_NONBLOCK
	if noLink {
		flags |= unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if noLink && errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("read %q: it is a link, and a project's file is read through none", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("read %q: it is not a regular file of at most 1 MiB", path)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func parseFile(data []byte, scope Scope) ([]fileEntry, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	_, servers, err := locate(data)
	if err != nil {
		return nil, err
	}
	var list []fileEntry
	for _, m := range servers {
		s, err := parseServer(m.name, scope, m.raw)
		e := fileEntry{Server: s}
		if err != nil {
			e.problem = err.Error()
		}
		list = append(list, e)
	}
	return list, nil
}

// locate finds the object that holds the servers. The members' places count from the
// start of data.
func locate(data []byte) (holder member, servers []member, err error) {
	body := bytes.TrimPrefix(data, []byte("\ufeff"))
	skip := len(data) - len(body)
	top, err := membersOf(body)
	if err != nil {
		return member{}, nil, err
	}
	holder, ok := memberOf(top, serversKey)
	if !ok {
		return member{}, nil, nil
	}
	if servers, err = membersOf(holder.raw); err != nil {
		return member{}, nil, fmt.Errorf("%s: %w", serversKey, err)
	}
	holder.start, holder.end = holder.start+skip, holder.end+skip
	for i := range servers {
		servers[i].start += holder.start
		servers[i].end += holder.start
		servers[i].key += holder.start
	}
	return holder, servers, nil
}

// The edits below change the text of one entry and leave every other byte as it is.

// withEntry returns the file's text with the entry set to raw.
func withEntry(data []byte, name string, raw json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{\n  \"" + serversKey + "\": {}\n}\n")
	}
	holder, servers, err := locate(data)
	if err != nil {
		return nil, err
	}
	if m, ok := memberOf(servers, name); ok {
		return splice(data, m.start, m.end, indented(raw, indentAt(data, m.key))), nil
	}
	if holder.raw == nil {
		return withMember(data, serversKey, json.RawMessage(`{`+quoted(name)+`:`+string(raw)+`}`))
	}
	return addMember(data, holder, servers, name, raw), nil
}

// withoutEntry returns the file's text without the entry.
func withoutEntry(data []byte, name string) ([]byte, error) {
	_, servers, err := locate(data)
	if err != nil {
		return nil, err
	}
	for i, m := range servers {
		if m.name != name {
			continue
		}
		switch {
		case i+1 < len(servers):
			return splice(data, m.key, servers[i+1].key, nil), nil
		case i > 0:
			return splice(data, servers[i-1].end, m.end, nil), nil
		default:
			open := bytes.LastIndexByte(data[:m.key], '{') + 1
			end := m.end + bytes.IndexByte(data[m.end:], '}')
			return splice(data, open, end, nil), nil
		}
	}
	return nil, fmt.Errorf("there is no server %q", name)
}

// withField returns the file's text with one member of an entry set.
func withField(data []byte, name, field string, raw json.RawMessage) ([]byte, error) {
	_, servers, err := locate(data)
	if err != nil {
		return nil, err
	}
	m, ok := memberOf(servers, name)
	if !ok {
		return nil, fmt.Errorf("there is no server %q", name)
	}
	entry, err := setMember(data, m, field, raw)
	if err != nil {
		return nil, err
	}
	return entry, nil
}

// withMember sets a member of the whole object.
func withMember(data []byte, name string, raw json.RawMessage) ([]byte, error) {
	start := bytes.IndexByte(data, '{')
	return setMember(data, member{start: start, end: bytes.LastIndexByte(data, '}') + 1, key: start}, name, raw)
}

// setMember sets a member of the object that stands at o.
func setMember(data []byte, o member, name string, raw json.RawMessage) ([]byte, error) {
	list, err := membersOf(data[o.start:o.end])
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].start += o.start
		list[i].end += o.start
		list[i].key += o.start
	}
	if m, ok := memberOf(list, name); ok {
		return splice(data, m.start, m.end, raw), nil
	}
	return addMember(data, o, list, name, raw), nil
}

// addMember puts a member behind the others of the object at o, laid out as they are.
func addMember(data []byte, o member, list []member, name string, raw json.RawMessage) []byte {
	if n := len(list); n > 0 {
		last := list[n-1]
		gap := ", "
		indent := indentAt(data, last.key)
		if bytes.IndexByte(data[o.start:last.key], '\n') >= 0 {
			gap = ",\n" + indent
		}
		return splice(data, last.end, last.end, []byte(gap+quoted(name)+": "+string(indented(raw, indent))))
	}
	outer := indentAt(data, o.key)
	inner := outer + "  "
	text := "{\n" + inner + quoted(name) + ": " + string(indented(raw, inner)) + "\n" + outer + "}"
	return splice(data, o.start, o.end, []byte(text))
}

func splice(data []byte, from, to int, text []byte) []byte {
	out := make([]byte, 0, len(data)+len(text))
	out = append(out, data[:from]...)
	out = append(out, text...)
	return append(out, data[to:]...)
}

// indentAt returns the white space that the line of offset at begins with.
func indentAt(data []byte, at int) string {
	line := data[bytes.LastIndexByte(data[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func indented(raw json.RawMessage, prefix string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, prefix, "  ") != nil {
		return raw
	}
	return b.Bytes()
}

func quoted(name string) string {
	b, _ := encode(name) // a string always encodes
	return string(b)
}

// replaceFile writes a whole file in one step. A link of the person's is followed to
// the file that it names.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return ownfile.Replace(path, data, mode)
}

// EntryText makes the text of an entry from a command or a URL, as `mcp add` does.
func EntryText(s Server) (json.RawMessage, error) {
	var parts []string
	add := func(name string, v any) error {
		b, err := encode(v)
		parts = append(parts, quoted(name)+":"+string(b))
		return err
	}
	var errs []error
	if s.URL != "" {
		errs = append(errs, add("type", s.Kind), add("url", s.URL))
	} else {
		errs = append(errs, add("command", s.Command))
	}
	if len(s.Args) > 0 {
		errs = append(errs, add("args", s.Args))
	}
	if len(s.Env) > 0 {
		errs = append(errs, add("env", s.Env))
	}
	if s.Cwd != "" {
		errs = append(errs, add("cwd", s.Cwd))
	}
	if len(s.Headers) > 0 {
		errs = append(errs, add("headers", s.Headers))
	}
	raw := json.RawMessage("{" + strings.Join(parts, ",") + "}")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	_, err := parseServer(s.Name, s.Scope, raw)
	return raw, err
}
