package gitstate

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// indexEntry is one path of git's index.
type indexEntry struct {
	path                 string
	mode                 uint32
	mtime, ctime         uint32 // seconds
	mtimeNano, ctimeNano uint32 // 0 when git does not store them
	ino, uid, gid, size  uint32 // the lower 32 bits
	hash                 [sha1.Size]byte
	stage                int
	assumeValid, intent  bool
	skipWorktree         bool
}

var errIndex = errors.New("the index is damaged or of a kind that is not read")

// parseIndex reads an index of version 2, 3 or 4 with SHA-1 names. It refuses split
// and sparse ones. Entries are in git's order.
func parseIndex(b []byte) ([]indexEntry, error) {
	if len(b) < 12+sha1.Size || string(b[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	rest := b[12 : len(b)-sha1.Size]
	const least = 62 + 2
	if version < 2 || version > 4 || uint64(count) > uint64(len(rest)/least)+1 {
		return nil, errIndex
	}
	entries := make([]indexEntry, 0, count)
	before := ""
	for range count {
		e, n, err := parseEntry(rest, version, before)
		if err != nil {
			return nil, err
		}
		if e.path < before || e.path == before && (len(entries) == 0 || e.stage <= entries[len(entries)-1].stage) {
			return nil, errIndex
		}
		entries, rest, before = append(entries, e), rest[n:], e.path
	}
	return entries, checkExtensions(rest)
}

// parseEntry reads one entry and returns its length.
func parseEntry(b []byte, version uint32, before string) (e indexEntry, n int, err error) {
	if len(b) < 62 {
		return e, 0, errIndex
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	e = indexEntry{
		ctime: word(0), ctimeNano: word(1), mtime: word(2), mtimeNano: word(3), ino: word(5), mode: word(6),
		uid: word(7), gid: word(8), size: word(9), hash: [sha1.Size]byte(b[40:60]),
	}
	flags := binary.BigEndian.Uint16(b[60:])
	e.assumeValid, e.stage = flags&0x8000 != 0, int(flags>>12&3)
	n = 62
	if flags&0x4000 != 0 {
		if version < 3 || len(b) < 64 {
			return e, 0, errIndex
		}
		more := binary.BigEndian.Uint16(b[62:])
		e.skipWorktree, e.intent = more&0x4000 != 0, more&0x2000 != 0
		n = 64
	}
	prefix := ""
	if version == 4 {
		strip, used := stripLength(b[n:])
		if used == 0 || strip > uint64(len(before)) {
			return e, 0, errIndex
		}
		prefix, n = before[:len(before)-int(strip)], n+used
	}
	name, _, ok := bytes.Cut(b[n:], []byte{0})
	if !ok {
		return e, 0, errIndex
	}
	e.path = prefix + string(name)
	n += len(name) + 1
	if version < 4 { // padded with zeros to a multiple of eight
		n = (n + 7) &^ 7
	}
	if n > len(b) || !plainPath(e.path) {
		return e, 0, errIndex
	}
	return e, n, nil
}

// stripLength reads the number of bytes that version 4 cuts from the path before.
func stripLength(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i > 8 {
			break
		}
		if i > 0 {
			v++
		}
		v = v<<7 | uint64(c&0x7f)
		if c&0x80 == 0 {
			return v, i + 1
		}
	}
	return 0, 0
}

// plainPath refuses what would lead elsewhere.
func plainPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || part == ".git" {
			return false
		}
	}
	return true
}

// checkExtensions refuses an index whose meaning lies in extensions: git writes those
// that must be understood in lower case.
func checkExtensions(b []byte) error {
	for len(b) >= 8 {
		size := uint64(binary.BigEndian.Uint32(b[4:]))
		if b[0] < 'A' || b[0] > 'Z' || size > uint64(len(b)-8) {
			return errIndex
		}
		b = b[8+size:]
	}
	return nil
}

// treeOf returns the name of the tree that a commit of the index would have.
func treeOf(entries []indexEntry) [sha1.Size]byte {
	sum, _ := hashTree(entries, 0)
	return sum
}

// hashTree hashes the directory that the first entry lies in, whose path has depth
// bytes, and returns how many entries it took.
func hashTree(entries []indexEntry, depth int) (sum [sha1.Size]byte, n int) {
	var b bytes.Buffer
	dir := ""
	if len(entries) > 0 {
		dir = entries[0].path[:depth]
	}
	for n < len(entries) && strings.HasPrefix(entries[n].path, dir) {
		e := &entries[n]
		name, _, below := strings.Cut(e.path[depth:], "/")
		if !below {
			fmt.Fprintf(&b, "%o %s\x00%s", e.mode, name, e.hash[:])
			n++
			continue
		}
		sub, used := hashTree(entries[n:], depth+len(name)+1)
		fmt.Fprintf(&b, "40000 %s\x00%s", name, sub[:])
		n += used
	}
	h := sha1.New()
	fmt.Fprintf(h, "tree %d\x00", b.Len())
	h.Write(b.Bytes())
	return [sha1.Size]byte(h.Sum(nil)), n
}
