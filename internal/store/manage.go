package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/ownfile"
)

// Remove deletes a session. It returns ErrUnknown when there is none, and ErrInUse
// when another process has it open.
func (s *Store) Remove(id string) error {
	path, err := s.path(id)
	if err != nil {
		return err
	}
	f, err := ownfile.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %q: %w", id, ErrUnknown)
	}
	if err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return fmt.Errorf("remove session %q: %w", id, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove session: %w", err)
	}
	return nil
}

// Rename gives a session that nobody has open a title.
func (s *Store) Rename(id, title string, now time.Time) error {
	log, loaded, err := s.Resume(id)
	if err != nil {
		return err
	}
	var seq int64
	for _, e := range loaded.Events {
		seq = max(seq, e.Seq)
	}
	err = log.Append(event.Event{Seq: seq + 1, Time: now, Kind: event.Titled, Text: title})
	return errors.Join(err, log.Close())
}

// Hit is a session in which a text was found.
type Hit struct {
	Info  Info
	Lines []string // that hold it, at most hitLines; with who said them
}

const hitLines = 3

// Search finds a text, whatever its letter case, in the requests, answers and titles of
// the sessions of a workspace and profile, or of all when both are empty; newest
// activity first.
func (s *Store) Search(text, workspace, profile string) ([]Hit, error) {
	list, err := s.List(workspace, profile)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for _, info := range list {
		lines, err := s.linesWith(strings.ToLower(text), info.ID)
		if err != nil {
			return nil, err
		}
		if len(lines) > 0 {
			hits = append(hits, Hit{info, lines})
		}
	}
	return hits, nil
}

// linesWith returns the lines of a session that hold a text in lower case.
func (s *Store) linesWith(text, id string) ([]string, error) {
	f, err := ownfile.Open(filepath.Join(s.dir, id+".jsonl"), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was deleted meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("search session: %w", err)
	}
	defer f.Close()
	var found []string
	in := bufio.NewReaderSize(f, scanBuffer)
	for len(found) < hitLines {
		head, err := in.Peek(kindWithin)
		if len(head) == 0 && err != nil {
			return found, nil
		}
		kind := kindOf(head)
		if kind != event.User && kind != event.Reply && kind != event.Titled {
			if skipLine(in) != nil {
				return found, nil
			}
			continue
		}
		line, err := readLine(in, nil)
		found = append(found, matching(line, text)...)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("search session %q: %w", id, err)
		}
	}
	return found[:min(len(found), hitLines)], nil
}

// matching returns the lines of an event that hold the text.
func matching(record []byte, text string) []string {
	var e event.Event
	if json.Unmarshal(record, &e) != nil || !complete(e) {
		return nil
	}
	who, said := "you: ", e.Text
	switch e.Kind {
	case event.Reply:
		who, said = "model: ", e.Reply.Message.Content
	case event.Titled:
		who = "title: "
	}
	var found []string
	for line := range strings.SplitSeq(said, "\n") {
		if strings.Contains(strings.ToLower(line), text) {
			found = append(found, who+strings.TrimSpace(line))
		}
	}
	return found
}
