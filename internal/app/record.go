package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zcoder/internal/approval"
)

// auditLog is the record of everything that the gate does.
type auditLog interface {
	approval.Recorder
	Close() error
}

// plainLog appends one JSON line for each record.
type plainLog struct {
	mu   sync.Mutex
	file *os.File
}

func openAudit(dir string) (auditLog, error) {
	if _, err := makePrivate(dir); err != nil {
		return nil, fmt.Errorf("open the audit: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "plain.jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit: %w", err)
	}
	return &plainLog{file: f}, nil
}

func (l *plainLog) Record(r approval.Record) error {
	line := map[string]any{"time": time.Now(), "kind": r.Kind, "outcome": r.Outcome, "detail": r.Detail}
	if r.Request != nil {
		line["tool"], line["digest"] = r.Request.Tool, r.Request.Digest().String()
	}
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(data, '\n')); err != nil {
		return err
	}
	if r.Sync {
		return l.file.Sync()
	}
	return nil
}

func (l *plainLog) Close() error { return l.file.Close() }
