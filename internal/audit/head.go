package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// head says up to where the log was synced. It has a fixed length and is written in
// one piece, in place: replacing the file would double the time of an append.
type head struct {
	Count int64  `json:"count"`
	Hash  string `json:"hash"`
	Size  int64  `json:"size"` // where the record ends in the log
}

const headSize = 160 // bytes

func (h head) write(f *os.File) error {
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode head: %w", err)
	}
	text = append(text, bytes.Repeat([]byte{' '}, headSize-1-len(text))...)
	if _, err := f.WriteAt(append(text, '\n'), 0); err != nil {
		return fmt.Errorf("write head: %w", bare(err))
	}
	return nil
}

var errHead = errors.New("the head file is damaged")

// exists reports whether a head was ever written.
func (h head) exists() bool { return h.Hash != "" }

// readHead returns a head that does not exist when nothing was written.
func readHead(f *os.File) (head, error) {
	var h head
	text, err := io.ReadAll(io.NewSectionReader(f, 0, headSize+1))
	if err != nil {
		return h, fmt.Errorf("read head: %w", bare(err))
	}
	text = bytes.TrimRight(text, "\x00") // space that was never written
	if len(text) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(text, &h); err != nil || len(text) != headSize || h.Count < 0 || h.Count > 2*maxForeign || h.Size < 0 || (h.Count == 0) != (h.Size == 0) || len(h.Hash) != len(genesis().hash) {
		return head{}, errHead
	}
	return h, nil
}

// link returns what the head's record is followed by.
func (h head) link() link {
	l := link{n: h.Count}
	copy(l.hash[:], h.Hash)
	return l
}
