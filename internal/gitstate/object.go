package gitstate

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const (
	maxCommit = 1 << 20 // bytes of a commit, and of the deltas that make it
	maxChain  = 60      // deltas on deltas; git makes at most 50 unless it is told to
)

var errObject = errors.New("the object is missing, damaged or too large")

// treeOfCommit returns the tree of a commit of the repository's own objects:
// alternates, which lead elsewhere, are not followed.
func (r *repository) treeOfCommit(ctx context.Context, commit string) (tree [20]byte, err error) {
	id, err := hex.DecodeString(commit)
	if err != nil || len(id) != len(tree) {
		return tree, errObject
	}
	text, err := r.object(ctx, [20]byte(id), maxChain)
	if err != nil {
		return tree, err
	}
	named, ok := bytes.CutPrefix(text, []byte("tree "))
	if !ok || len(named) < 41 || named[40] != '\n' {
		return tree, errObject
	}
	_, err = hex.Decode(tree[:], named[:40])
	return tree, err
}

// object returns the content of a commit, or of a base that a commit is a delta of.
func (r *repository) object(ctx context.Context, id [20]byte, chain int) ([]byte, error) {
	name := hex.EncodeToString(id[:])
	if f, _, err := openFile(filepath.Join(r.common, "objects", name[:2], name[2:])); err == nil {
		defer f.Close()
		return looseObject(f)
	}
	entries, err := readDir(filepath.Join(r.common, "objects", "pack"))
	if err != nil {
		return nil, errObject
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path := filepath.Join(r.common, "objects", "pack", base)
		at, err := findInIndex(path+".idx", id)
		if err != nil {
			continue
		}
		f, _, err := openFile(path + ".pack")
		if err != nil {
			continue
		}
		defer f.Close()
		return r.packedObject(ctx, f, at, chain)
	}
	return nil, errObject
}

func looseObject(f io.Reader) ([]byte, error) {
	zr, err := zlib.NewReader(f)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zr, maxCommit))
	if err != nil {
		return nil, err
	}
	head, content, ok := bytes.Cut(text, []byte{0})
	if !ok || !bytes.HasPrefix(head, []byte("commit ")) {
		return nil, errObject
	}
	return content, nil
}

// findInIndex returns where a pack has an object. It reads only what a binary search
// needs: indexes can be large.
func findInIndex(path string, id [20]byte) (int64, error) {
	f, info, err := openFile(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const head, fanout = 8, 256 * 4
	table := make([]byte, head+fanout)
	if _, err := f.ReadAt(table, 0); err != nil || !bytes.HasPrefix(table, []byte("\xfftOc\x00\x00\x00\x02")) {
		return 0, errObject
	}
	place := func(i int) int64 { return int64(binary.BigEndian.Uint32(table[head+4*i:])) }
	total, lo, hi := place(255), int64(0), place(int(id[0]))
	if id[0] > 0 {
		lo = place(int(id[0]) - 1)
	}
	if total*28 > info.Size() || hi > total {
		return 0, errObject
	}
	var name [20]byte
	for lo < hi {
		mid := (lo + hi) / 2
		if _, err := f.ReadAt(name[:], head+fanout+mid*20); err != nil {
			return 0, err
		}
		switch bytes.Compare(id[:], name[:]) {
		case 0:
			return offsetAt(f, head+fanout+total*24, mid, total)
		case -1:
			hi = mid
		default:
			lo = mid + 1
		}
	}
	return 0, errObject
}

// offsetAt reads entry i of the table of offsets, which may point to one of long ones.
func offsetAt(f *os.File, table, i, total int64) (int64, error) {
	var b [8]byte
	if _, err := f.ReadAt(b[:4], table+4*i); err != nil {
		return 0, err
	}
	at := int64(binary.BigEndian.Uint32(b[:4]))
	if at&0x80000000 == 0 {
		return at, nil
	}
	if _, err := f.ReadAt(b[:], table+4*total+8*(at&0x7fffffff)); err != nil {
		return 0, err
	}
	if at = int64(binary.BigEndian.Uint64(b[:])); at < 0 {
		return 0, errObject
	}
	return at, nil
}

// The kinds of entries in a pack.
const (
	packCommit   = 1
	packOfsDelta = 6
	packRefDelta = 7
)

// packedObject reads the entry at an offset and, of a delta, its base.
func (r *repository) packedObject(ctx context.Context, f *os.File, at int64, chain int) ([]byte, error) {
	if chain == 0 || ctx.Err() != nil {
		return nil, errors.Join(errObject, ctx.Err())
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, at, 1<<40), 4096)
	kind, size, err := entryHead(in)
	if err != nil || size > maxCommit {
		return nil, errors.Join(errObject, err)
	}
	var base []byte
	switch kind {
	case packCommit:
		return inflate(in, size)
	case packOfsDelta:
		back, err := ofsDistance(in)
		if err != nil || back <= 0 || back >= at {
			return nil, errors.Join(errObject, err)
		}
		base, err = r.packedObject(ctx, f, at-back, chain-1)
		if err != nil {
			return nil, err
		}
	case packRefDelta:
		var id [20]byte
		if _, err := io.ReadFull(in, id[:]); err != nil {
			return nil, err
		}
		if base, err = r.object(ctx, id, chain-1); err != nil {
			return nil, err
		}
	default:
		return nil, errObject
	}
	delta, err := inflate(in, size)
	if err != nil || !smallTarget(delta) {
		return nil, errors.Join(errObject, err)
	}
	return packfile.PatchDelta(base, delta)
}

// smallTarget reports whether a delta makes at most maxCommit bytes, by its head.
func smallTarget(delta []byte) bool {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return false
	}
	size, m := binary.Uvarint(delta[n:])
	return m > 0 && size <= maxCommit
}

func entryHead(in io.ByteReader) (kind int, size int64, err error) {
	c, err := in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size = int(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil || shift > 50 {
			return 0, 0, errors.Join(errObject, err)
		}
		size |= int64(c&0x7f) << shift
	}
	return kind, size, nil
}

// ofsDistance reads how far before a delta its base lies.
func ofsDistance(in io.ByteReader) (v int64, err error) {
	for i := range 8 {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if i > 0 {
			v++
		}
		v = v<<7 | int64(c&0x7f)
		if c&0x80 == 0 {
			return v, nil
		}
	}
	return 0, errObject
}

func inflate(in io.Reader, size int64) ([]byte, error) {
	zr, err := zlib.NewReader(in)
	if err != nil {
		return nil, err
	}
	content := make([]byte, size)
	_, err = io.ReadFull(zr, content)
	return content, err
}
