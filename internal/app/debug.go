package app

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"zcoder/internal/config"
	"zcoder/internal/ownfile"
	"zcoder/internal/termtext"
	"zcoder/tools"
)

// debug returns the function that gets what goes over the wire, or nil. Secrets that
// are known are masked.
func (w *workbench) debug() (func(kind, text string), error) {
	out, safe := io.Writer(w.p.Stderr), true
	if path := w.v.String("debug-log"); path != "" {
		f, err := ownfile.Open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
		if err != nil {
			return nil, &config.UsageError{Text: fmt.Sprintf("open the debug log: %v", err), Hints: []string{"name a file of your own that is no link"}}
		}
		w.onClose(f.Close)
		out, safe = f, false
	} else if !w.v.Bool("debug") {
		return nil, nil
	}
	most := w.v.Int("debug-max-chars")
	var mu sync.Mutex
	return func(kind, text string) {
		text = tools.Cut(w.mask.Mask(text), most)
		if safe {
			text = termtext.Safe(text)
		}
		mu.Lock()
		defer mu.Unlock()
		// The log is a help; the program goes on without it.
		_, _ = fmt.Fprintf(out, "%s %s %s\n", time.Now().Format(time.RFC3339Nano), kind, text)
	}, nil
}
