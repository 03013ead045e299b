package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/ownfile"
	"zcoder/internal/proc"
	"zcoder/internal/termtext"
	"zcoder/internal/worker"
	"zcoder/repl"
)

// Bounds of jobs.
const (
	maxJobs     = 8       // that run at a time
	maxJobLog   = 1 << 20 // bytes of one log
	maxJobShown = 4096    // bytes that /jobs show prints
	keepJobLogs = 7 * 24 * time.Hour
	keptJobs    = 50 // ended ones that are listed
)

// jobs are what a person explicitly started in the background: it goes on between
// turns and ends with the program. A nil *jobs keeps no records and has none.
type jobs struct {
	dir    string
	ctx    context.Context
	cancel context.CancelFunc
	tell   func(event.Event) // to the current conversation
	wait   sync.WaitGroup

	mu      sync.Mutex
	list    []*job
	n       int
	closing bool
	reports map[string][]event.Event // by session, for its next input
}

// job is one of them. What follows its lock is guarded by that of jobs.
type job struct {
	id, kind, text string // kind is "!" or the name of a worker
	started        time.Time
	cancel         context.CancelFunc
	over           chan struct{} // closed at its end
	log            string        // path

	ended  time.Duration // 0 while it runs
	status string
	at     string // what it does
}

// openJobs ends what a killed program left, and makes the place of new records.
func (w *workbench) openJobs(ctx context.Context) {
	if w.jobs != nil || w.scratch != "" {
		return
	}
	dir, err := makePrivate(filepath.Join(w.home, "jobs"))
	if err != nil {
		w.notices = append(w.notices, "warning: jobs cannot be recorded: "+err.Error())
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.jobs = &jobs{dir: dir, ctx: ctx, cancel: cancel, reports: map[string][]event.Event{}, tell: func(e event.Event) {
		if c := w.guide.conv.Load(); c != nil {
			c.Emit(e)
		}
	}}
	w.onClose(func() error { w.jobs.close(); return nil })
	w.notices = append(w.notices, cleanJobs(dir)...)
}

// jobRecord is what the next start needs to end a job whose program was killed.
type jobRecord struct {
	Owner   proc.Ident `json:"owner"`
	Child   proc.Ident `json:"child"`
	Command string     `json:"command"`
}

// cleanJobs ends what the records of dead programs name, and forgets old logs.
func cleanJobs(dir string) []string {
	var notices []string
	ownfile.Sweep(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), ".log") {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepJobLogs {
				_ = os.Remove(path)
			}
			continue
		}
		var r jobRecord
		data, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(e.Name(), ".json") || json.Unmarshal(data, &r) != nil || r.Owner.Running() {
			continue
		}
		for _, s := range proc.EndOrphan(r.Child) {
			notices = append(notices, fmt.Sprintf("note: ended what an earlier run left behind: %s (pid %d, of %s)", termtext.Line(s.Command), s.PID, termtext.Line(r.Command)))
		}
		_ = os.Remove(path)
	}
	return notices
}

// record writes down who runs, until the function that it returns is called. Failing
// to costs only the cleaning after a crash.
func (j *jobs) record(id proc.Ident, command string) (forget func()) {
	if j == nil {
		return func() {}
	}
	data, err := json.Marshal(jobRecord{Owner: proc.Self(), Child: id, Command: command})
	path := filepath.Join(j.dir, fmt.Sprintf("%d-%s.json", id.PID, newCallID()))
	if err == nil {
		err = ownfile.Replace(path, data, 0o600)
	}
	if err != nil {
		return func() {}
	}
	return func() { _ = os.Remove(path) }
}

// start begins a job. run returns how it ended and what the history gets of it.
func (j *jobs) start(session, kind, text string, run func(ctx context.Context, one *job, log *jobLog) (status, record string)) (*job, error) {
	if j == nil {
		return nil, errors.New("nothing can run in the background here")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, one := range j.list {
		if one.ended == 0 {
			running++
		}
	}
	switch {
	case j.closing:
		return nil, errors.New("the program is about to end")
	case running >= maxJobs:
		return nil, withHint(fmt.Errorf("%d jobs run already", running), "/jobs cancel ID ends one")
	}
	j.n++
	ctx, cancel := context.WithCancel(j.ctx)
	now := time.Now()
	one := &job{id: fmt.Sprintf("j%d", j.n), kind: kind, text: text, started: now, cancel: cancel, over: make(chan struct{})}
	one.log = filepath.Join(j.dir, fmt.Sprintf("%s-%d-%s.log", now.Format("20060102-150405"), os.Getpid(), one.id))
	log, err := openJobLog(one.log)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open the log of the job: %w", err)
	}
	j.list = append(j.list, one)
	j.tell(event.Event{Kind: event.Info, Text: fmt.Sprintf("job %s runs in the background: %s %s", one.id, kind, termtext.Line(text))})
	j.wait.Go(func() {
		defer close(one.over)
		defer cancel()
		status, record := run(ctx, one, log)
		log.close()
		j.finish(session, one, status, record)
	})
	return one, nil
}

// finish tells of the end. What the history gets waits for the session's next input,
// since a turn may be running.
func (j *jobs) finish(session string, one *job, status, record string) {
	j.mu.Lock()
	one.ended, one.status = max(time.Since(one.started), 1), status
	quiet := j.closing
	if record != "" {
		j.reports[session] = append(j.reports[session], event.Event{Kind: event.Note, Text: record})
	}
	for len(j.list) > keptJobs && j.list[0].ended > 0 {
		j.list = j.list[1:]
	}
	j.mu.Unlock()
	if !quiet {
		j.tell(event.Event{Kind: event.Info, Text: fmt.Sprintf("job %s ended after %s: %s · %s\n/jobs show %s shows what it printed; the model learns of it with your next message", one.id, one.ended.Round(time.Second), status, termtext.Line(one.text), one.id)})
	}
}

// take returns what ended since a session's last input.
func (j *jobs) take(session string) []event.Event {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.reports[session]
	delete(j.reports, session)
	return list
}

// reporting adds what jobs reported to a session's inputs.
func (w *workbench) reporting(session string, next func(context.Context, event.Input) event.Input) func(context.Context, event.Input) event.Input {
	return func(ctx context.Context, in event.Input) event.Input {
		in.Before = append(in.Before, w.jobs.take(session)...)
		return next(ctx, in)
	}
}

// close ends all jobs, waits for their end, and returns how many ran.
func (j *jobs) close() int {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	running := 0
	for _, one := range j.list {
		if one.ended == 0 {
			running++
		}
	}
	j.closing = true
	j.mu.Unlock()
	j.cancel()
	j.wait.Wait()
	return running
}

func (j *jobs) find(id string) (*job, error) {
	if j != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, one := range j.list {
			if one.id == id {
				return one, nil
			}
		}
	}
	return nil, withHint(fmt.Errorf("there is no job %q", id), "/jobs lists them")
}

// line describes a job in the list.
func (j *jobs) line(one *job) string {
	state := "running " + time.Since(one.started).Round(time.Second).String()
	if one.ended > 0 {
		state = fmt.Sprintf("%s after %s", one.status, one.ended.Round(time.Second))
	} else if one.at != "" {
		state += " · " + termtext.Cut(termtext.Line(one.at), 40)
	}
	return fmt.Sprintf("%-4s %s  %s  %s", one.id, one.kind, termtext.Line(one.text), state)
}

func (j *jobs) lines() []string {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []string
	for _, one := range j.list {
		lines = append(lines, j.line(one))
	}
	return lines
}

// jobLog is a bounded file.
type jobLog struct {
	f    *os.File
	room int
}

func openJobLog(path string) (*jobLog, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return &jobLog{f: f, room: maxJobLog}, err
}

// add appends a piece. What cannot be written is lost to the log alone.
func (l *jobLog) add(p []byte) {
	if l.room <= 0 {
		return
	}
	over := len(p) > l.room
	p = p[:min(len(p), l.room)]
	l.room -= len(p)
	_, _ = l.f.Write(p)
	if over {
		_, _ = l.f.WriteString("\n[… the log ends here: it is full …]\n")
	}
}

func (l *jobLog) close() { _ = l.f.Close() }

// inBackground reports whether a typed command ends with a & of its own, and returns it
// without.
func inBackground(command string) (string, bool) {
	rest, found := strings.CutSuffix(strings.TrimSpace(command), "&")
	if !found || strings.HasSuffix(rest, "&") || strings.HasSuffix(rest, `\`) || strings.TrimSpace(rest) == "" {
		return command, false
	}
	return strings.TrimSpace(rest), true
}

// commandLater runs a typed command in the background, without a terminal.
func (d *desk) commandLater(command string) error {
	w := d.w
	if w.profile.WorkersOff {
		return withHint(fmt.Errorf("nothing runs in the background in the profile %s", w.profile.Name), "leave the & at the end away")
	}
	_, err := w.jobs.start(d.conv().Info().ID, "!", command, func(ctx context.Context, _ *job, log *jobLog) (string, string) {
		forget := func() {}
		argv := append(append([]string(nil), w.shell.Argv()...), command)
		out, err := proc.Run(ctx, proc.Spec{
			Argv: argv, Dir: w.ws.Root(), Env: w.p.Env, MaxOutput: maxShown, OnOutput: log.add,
			OnStart: func(id proc.Ident) { forget = w.jobs.record(id, command) },
		})
		forget()
		if err != nil {
			return "not started: " + err.Error(), ""
		}
		status := fmt.Sprintf("exit %d", out.ExitCode)
		if out.Cancelled {
			status = "cancelled"
		}
		return status, userRecord(command+" &", out)
	})
	return err
}

// consultLater asks a worker in the background.
func (d *desk) consultLater(k work, done func(worker.Report)) error {
	w := d.w
	_, err := w.jobs.start(d.conv().Info().ID, k.h.Name, k.request, func(ctx context.Context, one *job, log *jobLog) (string, string) {
		r := w.runWorker(ctx, k, func(line string) {
			log.add([]byte(line + "\n"))
			w.jobs.mu.Lock()
			one.at = line
			w.jobs.mu.Unlock()
		})
		done(r)
		log.add([]byte(reportForPerson(k, r, edited{}) + "\n"))
		return string(r.Status) + detail(r), w.reportForModel(k, r, edited{})
	})
	if err != nil {
		done(worker.Report{Status: worker.Failed})
	}
	return err
}

func (d *desk) cmdJobs(ctx context.Context, ui repl.UI, arg string) error {
	verb, id, _ := strings.Cut(arg, " ")
	id = strings.TrimSpace(id)
	switch verb {
	case "", "list":
		d.listJobs(ui)
		return nil
	case "show":
		return d.showJob(ui, id)
	case "cancel":
		return d.cancelJob(ctx, ui, id)
	}
	return withHint(fmt.Errorf("/jobs %q", verb), "say /jobs, /jobs show ID or /jobs cancel ID")
}

func (d *desk) listJobs(ui repl.UI) {
	lines := d.w.jobs.lines()
	for _, j := range d.w.tracker.Jobs() {
		lines = append(lines, fmt.Sprintf("pid %d  left by a command: %s", j.PID, termtext.Line(j.Command)))
	}
	if len(lines) == 0 {
		lines = []string{"nothing runs in the background"}
	}
	ui.Print(strings.Join(lines, "\n"))
}

func (d *desk) showJob(ui repl.UI, id string) error {
	one, err := d.w.jobs.find(id)
	if err != nil {
		return err
	}
	text, err := tailOf(one.log, maxJobShown)
	if err != nil {
		return fmt.Errorf("read the log of job %s: %w", id, err)
	}
	d.w.jobs.mu.Lock()
	head := d.w.jobs.line(one)
	d.w.jobs.mu.Unlock()
	ui.Print(head + "\n" + text + "\nlog: " + d.w.shortPath(one.log))
	return nil
}

// tailOf is the end of a file, from the beginning of a line on.
func tailOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(info.Size()-most, 0)
	buf := make([]byte, info.Size()-from)
	n, err := f.ReadAt(buf, from)
	if n == 0 && len(buf) > 0 {
		return "", err
	}
	text := string(buf[:n])
	if from > 0 {
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
		text = "[…]\n" + text
	}
	return strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n"), nil
}

func (d *desk) cancelJob(ctx context.Context, ui repl.UI, id string) error {
	one, err := d.w.jobs.find(id)
	if err != nil {
		return err
	}
	select {
	case <-one.over:
		ui.Print("job " + id + " has ended already")
		return nil
	default:
	}
	one.cancel()
	select {
	case <-one.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
