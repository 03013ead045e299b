package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// kind is what a state knows of a name.
type kind uint8

const (
	vanished kind = iota // was gone when it was read; dropped when the state is sealed
	file
	link
	folder
	unkept // something whose content is not kept
	absent // known not to exist, in a directory of which only some names are known
)

// why says why something is not kept.
type why uint8

const (
	notWhy why = iota
	dependencies
	ignoredLarge
	ignoredMany
	special
	unreadable
	repository
	kernelFiles
	ownFiles
	tooDeep
	unsteady
	tooLarge
	lastWhy
)

func (w why) String() string {
	return [lastWhy]string{
		notWhy:       "not kept",
		dependencies: "a folder of dependencies",
		ignoredLarge: "a large file that git ignores",
		ignoredMany:  "beyond what is kept of the files that git ignores",
		special:      "a FIFO, socket or device",
		unreadable:   "not readable",
		repository:   "a git repository without a work tree",
		kernelFiles:  "files of the kernel",
		ownFiles:     "files of zcoder itself",
		tooDeep:      "nested too deeply",
		unsteady:     "changed again and again while it was read",
		tooLarge:     "larger than what is kept",
	}[w]
}

// entry is one name of a directory in a state.
type entry struct {
	name     string
	kind     kind
	why      why    // of what is unkept
	ignored  bool   // git ignores it: it counts in the budget for such files
	pinned   bool   // a tool edited it: kept whatever the rules say
	racy     bool   // changed so shortly before it was read that the stamp proves nothing
	mode     uint32 // permission bits, with the set-id and sticky bits
	uid, gid uint32
	hash     plumbing.Hash // of the content, the target or the tree; of what is unkept its outer signs
	stamp    stamp         // zero when it was not looked at; of a folder only its identity
	dir      *dir          // of a folder that was scanned, else its tree is in the store; of what is absent names to look for
}

// dir is a directory in a state. It does not change once it is sealed, so states
// share the directories that are the same in them.
type dir struct {
	entries []entry // sorted by name
	partial bool    // names that are not in entries are unknown, not absent
	hash    plumbing.Hash
	total   total
}

// total counts what is kept below a directory.
type total struct {
	files, ignoredFiles int
	bytes, ignoredBytes int64
}

func (t *total) add(o total) {
	t.files += o.files
	t.bytes += o.bytes
	t.ignoredFiles += o.ignoredFiles
	t.ignoredBytes += o.ignoredBytes
}

func (e *entry) total() total {
	switch {
	case e.kind == folder && e.dir != nil:
		return e.dir.total
	case e.kind != file && e.kind != link:
		return total{}
	case e.ignored && !e.pinned:
		return total{ignoredFiles: 1, ignoredBytes: e.stamp.size}
	}
	return total{files: 1, bytes: e.stamp.size}
}

// same reports whether two entries stand for the same thing on disk. Owners count
// only where states have them.
func (e *entry) same(o *entry) bool {
	if e.kind != o.kind {
		return false
	}
	switch e.kind {
	case absent:
		return true
	case link:
		return e.hash == o.hash && e.uid == o.uid && e.gid == o.gid
	case unkept:
		return e.hash == o.hash
	}
	return e.hash == o.hash && e.sameAttributes(o)
}

func (e *entry) sameAttributes(o *entry) bool {
	return e.mode == o.mode && e.uid == o.uid && e.gid == o.gid
}

func byName(e entry, name string) int { return strings.Compare(e.name, name) }

// find returns the entry called name, or nil.
func (d *dir) find(name string) *entry {
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.entries, name, byName)
	if !ok {
		return nil
	}
	return &d.entries[i]
}

// with returns a copy of d in which e stands in the place of the entry of its name.
func (d *dir) with(e entry) *dir {
	next := &dir{partial: d.partial}
	i, ok := slices.BinarySearchFunc(d.entries, e.name, byName)
	next.entries = append(make([]entry, 0, len(d.entries)+1), d.entries[:i]...)
	next.entries = append(next.entries, e)
	if ok {
		i++
	}
	next.entries = append(next.entries, d.entries[i:]...)
	return next
}

// without returns a copy of d that has no entry called name.
func (d *dir) without(name string) *dir {
	next := &dir{partial: d.partial, entries: slices.Clone(d.entries)}
	next.entries = slices.DeleteFunc(next.entries, func(e entry) bool { return e.name == name })
	return next
}

// metaName is the entry of a tree that holds what git's trees have no place for. No
// file of the workspace has it: names that begin so are never kept.
const metaName = tempPrefix + "meta"

// encode returns the git tree of a sealed directory and the blob of its metaName
// entry, nil when it needs none. The modes of files and directories are written in
// full, which git shows and otherwise takes for the nearest it knows.
func (d *dir) encode() (tree func(meta plumbing.Hash) []byte, meta []byte) {
	meta = d.encodeMeta()
	return func(metaHash plumbing.Hash) []byte {
		list := make([]*entry, 0, len(d.entries)+1)
		for i := range d.entries {
			if e := &d.entries[i]; e.kind == file || e.kind == link || e.kind == folder {
				list = append(list, e)
			}
		}
		if meta != nil {
			list = append(list, &entry{name: metaName, kind: file, mode: 0o600, hash: metaHash})
		}
		slices.SortFunc(list, gitOrder)
		var b bytes.Buffer
		for _, e := range list {
			fmt.Fprintf(&b, "%o %s\x00", e.gitMode(), e.name)
			b.Write(e.hash[:])
		}
		return b.Bytes()
	}, meta
}

// gitOrder compares as git does: directories as if a slash ended their names.
func gitOrder(a, b *entry) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return cmp.Compare(a.after(n), b.after(n))
}

func (e *entry) after(n int) byte {
	switch {
	case n < len(e.name):
		return e.name[n]
	case e.kind == folder:
		return '/'
	}
	return 0
}

func (e *entry) gitMode() uint32 {
	switch e.kind {
	case folder:
		return unix.S_IFDIR | e.mode
	case link:
		return unix.S_IFLNK
	}
	return unix.S_IFREG | e.mode
}

// encodeMeta writes records that end in a zero byte.
func (d *dir) encodeMeta() []byte {
	var b bytes.Buffer
	if d.partial {
		b.WriteString("partial\x00")
	}
	for i := range d.entries {
		switch e := &d.entries[i]; {
		case e.kind == absent:
			fmt.Fprintf(&b, "absent %s\x00", e.name)
		case e.kind == unkept:
			fmt.Fprintf(&b, "unkept %d %s %s\x00", e.why, e.hash, e.name)
		case e.uid != 0 || e.gid != 0:
			fmt.Fprintf(&b, "owner %d %d %s\x00", e.uid, e.gid, e.name)
		}
	}
	return b.Bytes()
}

var errTree = errors.New("the tree is damaged")

// decodeTree reads what encode wrote; blob reads the metaName entry.
func decodeTree(tree []byte, blob func(plumbing.Hash) ([]byte, error)) (*dir, error) {
	d := &dir{}
	var meta plumbing.Hash
	for len(tree) > 0 {
		e, rest, err := decodeEntry(tree)
		if err != nil {
			return nil, err
		}
		tree = rest
		if e.name == metaName {
			meta = e.hash
			continue
		}
		d.entries = append(d.entries, e)
	}
	slices.SortFunc(d.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	if meta.IsZero() {
		return d, nil
	}
	text, err := blob(meta)
	if err != nil {
		return nil, err
	}
	return d, d.decodeMeta(text)
}

func decodeEntry(tree []byte) (entry, []byte, error) {
	head, rest, ok := bytes.Cut(tree, []byte{0})
	octal, name, ok2 := strings.Cut(string(head), " ")
	mode, err := strconv.ParseUint(octal, 8, 32)
	if !ok || !ok2 || err != nil || len(rest) < len(plumbing.ZeroHash) || !plainName(name) {
		return entry{}, nil, errTree
	}
	e := entry{name: name, mode: uint32(mode) &^ unix.S_IFMT}
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.kind = folder
	case unix.S_IFLNK:
		e.kind = link
	case unix.S_IFREG:
		e.kind = file
	default:
		return entry{}, nil, errTree
	}
	n := copy(e.hash[:], rest)
	return e, rest[n:], nil
}

// plainName guards what is later joined to paths of the workspace.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

func (d *dir) decodeMeta(text []byte) error {
	for record := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		if err := d.decodeRecord(string(record)); err != nil {
			return err
		}
	}
	return nil
}

func (d *dir) decodeRecord(record string) error {
	word, rest, _ := strings.Cut(record, " ")
	switch word {
	case "partial":
		d.partial = true
		return nil
	case "absent":
		return d.insert(entry{name: rest, kind: absent})
	case "unkept":
		number, rest, _ := strings.Cut(rest, " ")
		sum, name, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseUint(number, 10, 8)
		raw, err2 := hex.DecodeString(sum)
		if err != nil || err2 != nil || n >= uint64(lastWhy) || len(raw) != len(plumbing.ZeroHash) {
			return errTree
		}
		return d.insert(entry{name: name, kind: unkept, why: why(n), hash: plumbing.Hash(raw)})
	case "owner":
		var uid, gid uint32
		parts := strings.SplitN(rest, " ", 3)
		if len(parts) != 3 {
			return errTree
		}
		if _, err := fmt.Sscan(parts[0]+" "+parts[1], &uid, &gid); err != nil {
			return errTree
		}
		e := d.find(parts[2])
		if e == nil {
			return errTree
		}
		e.uid, e.gid = uid, gid
		return nil
	}
	return errTree
}

func (d *dir) insert(e entry) error {
	i, ok := slices.BinarySearchFunc(d.entries, e.name, byName)
	if ok || !plainName(e.name) {
		return errTree
	}
	d.entries = slices.Insert(d.entries, i, e)
	return nil
}

// outerSigns stands for the content of something that is not kept.
func outerSigns(s stamp) plumbing.Hash {
	var b [28]byte
	binary.BigEndian.PutUint64(b[0:], s.ino)
	binary.BigEndian.PutUint64(b[8:], uint64(s.size))
	binary.BigEndian.PutUint64(b[16:], uint64(s.mtime))
	binary.BigEndian.PutUint32(b[24:], s.mode)
	return hashOf("unkept", b[:])
}
