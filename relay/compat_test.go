package relay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// earlier is an instance of the earlier program, written from the wire contract
// alone: it shares no code with the package.
type earlier struct {
	t      *testing.T
	id     string
	socket string
	l      net.Listener
	reply  string       // the status that it answers messages with
	garble atomic.Int32 // messages whose reply is garbage
	got    chan map[string]any
}

func newEarlier(t *testing.T, registry, project string) *earlier {
	t.Helper()
	e := &earlier{t: t, id: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()%1e9), got: make(chan map[string]any, 10), reply: "accepted"}
	e.socket = registry + "/a-" + e.id + ".sock"
	var err error
	if e.l, err = net.Listen("unix", e.socket); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { e.l.Close(); <-done })
	go func() { defer close(done); e.serve() }()
	text := fmt.Sprintf(`{"started_at": %d, "state": "ready", "socket": "%s", "model": "qwen3-coder:latest", "profile": "coding", "session_id": "1700000000_123", "workspace": "/home/u/%s", "project": "%s", "pid": %d, "instance_id": "%s", "protocol": 1}`+"\n",
		time.Now().Unix(), e.socket, project, project, os.Getpid(), e.id)
	file := registry + "/a-" + e.id + ".json"
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *earlier) serve() {
	for {
		conn, err := e.l.Accept()
		if err != nil {
			return
		}
		e.one(conn)
		conn.Close()
	}
}

// one reads a request as slowly as a shell may, and answers it in pieces.
func (e *earlier) one(conn net.Conn) {
	request := readRaw(e.t, conn)
	if request == nil {
		return
	}
	status := e.reply
	switch {
	case request["target_instance_id"] != e.id:
		status = "wrong_target"
	case request["type"] == "ping":
		status = "pong"
	default:
		e.got <- request
	}
	if request["type"] == "enqueue" && e.garble.Add(-1) >= 0 {
		_, _ = io.WriteString(conn, "ZCODER-AGENT/1 2\n{}")
		return
	}
	body := fmt.Sprintf(`{"protocol":1,"type":"ack","message_id":"%s","status":"%s","queue_position":3,"state":"busy"}`, request["message_id"], status)
	for _, part := range []string{"ZCODER-AGENT/1", " ", strconv.Itoa(len(body)), "\n", body[:10], body[10:]} {
		_, _ = io.WriteString(conn, part)
	}
}

func readRaw(t *testing.T, conn net.Conn) map[string]any {
	in := bufio.NewReader(conn)
	header, err := in.ReadString('\n')
	if err != nil {
		return nil // somebody looked whether it lives
	}
	digits, ok := strings.CutPrefix(strings.TrimSuffix(header, "\n"), "ZCODER-AGENT/1 ")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > 65536 {
		t.Errorf("header %q", header)
		return nil
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		t.Error(err)
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Errorf("body %q: %v", body, err)
	}
	return m
}

// say sends one request and returns the reply.
func (e *earlier) say(socket, body string) map[string]any {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	frame := fmt.Sprintf("ZCODER-AGENT/1 %d\n%s", len(body), body)
	for len(frame) > 0 {
		n := min(100, len(frame))
		if _, err := io.WriteString(conn, frame[:n]); err != nil {
			e.t.Fatal(err)
		}
		frame = frame[n:]
	}
	return readRaw(e.t, conn)
}

func TestTheEarlierProgramReceives(t *testing.T) {
	dir := shortDir(t)
	a := open(t, options(t, dir, "alpha"))
	z := newEarlier(t, a.o.Directory, "zsh-side")
	peers, err := a.Peers(t.Context(), nil)
	if err != nil || len(peers) != 1 || peers[0].ID != z.id || peers[0].State != Busy || peers[0].Model != "qwen3-coder:latest" || peers[0].Workspace != "/home/u/zsh-side" {
		t.Fatalf("alpha sees %+v (%v)", peers, err)
	}
	receipt, err := a.Send(t.Context(), peers[0], "hello <there> & \"you\"\n\u2028ü")
	if err != nil || receipt.Position != 3 || receipt.State != Busy {
		t.Fatalf("Send = %+v, %v", receipt, err)
	}
	got := <-z.got
	created, _ := got["created_at"].(float64)
	delete(got, "created_at")
	want := map[string]any{
		"protocol": 1.0, "type": "enqueue", "message_id": receipt.ID, "target_instance_id": z.id, "sender_instance_id": a.ID(),
		"sender_pid": float64(os.Getpid()), "sender_project": "alpha", "sender_workspace": "/work/alpha", "body": "hello <there> & \"you\"\n\u2028ü",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || time.Since(time.Unix(int64(created), 0)) > time.Minute {
		t.Errorf("got %v, created %v", got, created)
	}
	if !strings.HasPrefix(receipt.ID, a.ID()+"-") {
		t.Errorf("message id %q", receipt.ID)
	}
	for _, status := range []string{"paused", "full", "invalid", "wrong_target", "unsupported", "asleep"} {
		z.reply = status
		if _, err := a.Send(t.Context(), peers[0], "x"); err == nil {
			t.Errorf("%s counts as delivered", status)
		}
	}
	z.reply = "duplicate"
	if _, err := a.Send(t.Context(), peers[0], "x"); err != nil {
		t.Errorf("a duplicate is not delivered: %v", err)
	}
}

func TestTheEarlierProgramSends(t *testing.T) {
	dir := shortDir(t)
	b := open(t, options(t, dir, "beta"))
	z := newEarlier(t, b.o.Directory, "zsh-side")
	message := func(id, body string) string {
		return fmt.Sprintf(`{"protocol":1,"type":"enqueue","message_id":"%s-%s","target_instance_id":"%s","sender_instance_id":"%s","sender_pid":%d,"sender_project":"zsh-side","sender_workspace":"/home/u/zsh-side","body":"%s","created_at":%d}`,
			z.id, id, b.ID(), z.id, os.Getpid(), body, time.Now().Unix())
	}
	ping := fmt.Sprintf(`{"protocol":1,"type":"ping","message_id":"%s-1","target_instance_id":"%s"}`, z.id, b.ID())
	steps := []struct {
		name, body, status string
		position           float64
		before             func()
	}{
		{"ping", ping, "pong", 0, nil},
		{"another target", strings.Replace(ping, b.ID(), "1-1", 1), "wrong_target", 0, nil},
		{"unknown type", strings.Replace(ping, "ping", "dance", 1), "unsupported", 0, nil},
		{"first", message("2", `one \u00fc`), "accepted", 1, nil},
		{"second", message("3", "two"), "accepted", 2, nil},
		{"second again", message("3", "two"), "duplicate", 2, nil},
		{"first again after it was claimed", message("2", "one"), "duplicate", 0, func() {
			if e := b.claim(t); e.Body != "one ü" || e.Project != "zsh-side" {
				t.Errorf("claimed %+v", e)
			}
		}},
		{"project of another", strings.Replace(message("4", "x"), `"sender_project":"zsh-side"`, `"sender_project":"bank"`, 1), "invalid", 0, nil},
		{"workspace of another", strings.Replace(message("4", "x"), `/home/u/zsh-side`, `/home/u/bank`, 1), "invalid", 0, nil},
		{"nobody's id", strings.ReplaceAll(message("4", "x"), `"sender_instance_id":"`+z.id, fmt.Sprintf(`"sender_instance_id":"%d-1`, os.Getpid())), "invalid", 0, nil},
		{"paused", message("5", "x"), "paused", 0, func() {
			if err := b.Pause(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}},
		{"a known one while paused", message("3", "two"), "duplicate", 1, nil},
	}
	for _, s := range steps {
		if s.before != nil {
			s.before()
		}
		got := z.say(b.socket(), s.body)
		if got["protocol"] != 1.0 || got["type"] != "ack" || got["status"] != s.status || got["queue_position"] != s.position || !strings.HasPrefix(fmt.Sprint(got["message_id"]), z.id+"-") {
			t.Errorf("%s: %v", s.name, got)
		}
	}
	if got := z.say(b.socket(), "{"); got["status"] != "invalid" || got["message_id"] != "" || got["state"] != "paused" {
		t.Errorf("garbage: %v", got)
	}
	// The manifest, as the other side reads it.
	data, err := os.ReadFile(filepath.Join(b.o.Directory, "a-"+b.ID()+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	started, _ := m["started_at"].(float64)
	delete(m, "started_at")
	want := map[string]any{"protocol": 1.0, "instance_id": b.ID(), "pid": float64(os.Getpid()), "project": "beta", "workspace": "/work/beta", "session_id": "1_2", "profile": "coding", "model": "m", "socket": b.socket(), "state": "paused"}
	if fmt.Sprint(m) != fmt.Sprint(want) || started < 1.7e9 {
		t.Errorf("manifest %v, started %v", m, started)
	}
}

// zshInstance is an instance in zsh itself: it listens, publishes, sends one message
// from a subshell, and answers the requests that it is told to expect.
const zshInstance = `
emulate -L zsh; setopt no_unset; LC_ALL=C
zmodload zsh/net/socket zsh/system zsh/datetime || exit 77
dir=$1 target=$2 requests=$3
id=$$-$RANDOM$RANDOM
zsocket -l $dir/a-$id.sock || exit 1
listener=$REPLY
print -r -- '{"protocol":1,"instance_id":"'$id'","pid":'$$',"project":"shell","workspace":"/home/u/shell","session_id":"s","profile":"coding","model":"m","socket":"'$dir/a-$id.sock'","state":"ready","started_at":'$EPOCHSECONDS'}' >$dir/.$id.tmp
mv $dir/.$id.tmp $dir/a-$id.json
print -r -- $id
(
  zsocket $dir/a-$target.sock || exit 1
  body='{"protocol":1,"type":"enqueue","message_id":"'$id'-1","target_instance_id":"'$target'","sender_instance_id":"'$id'","sender_pid":'$$',"sender_project":"shell","sender_workspace":"/home/u/shell","body":"from zsh","created_at":'$EPOCHSECONDS'}'
  print -rnu $REPLY -- "ZCODER-AGENT/1 ${#body}"
  print -rnu $REPLY -- $'\n'"$body"
  sysread -i $REPLY answer; print -r -- ${answer#*$'\n'}
)
repeat $requests; do
  zsocket -a $listener || exit 1
  sysread -i $REPLY request
  word=accepted; [[ $request == *'"type":"ping"'* ]] && word=pong
  [[ $request =~ '"message_id":"([^"]*)"' ]]
  body='{"protocol":1,"type":"ack","message_id":"'$match[1]'","status":"'$word'","queue_position":1,"state":"ready"}'
  print -rnu $REPLY -- "ZCODER-AGENT/1 ${#body}"$'\n'"$body"
  exec {REPLY}>&-
  print -r -- ${request#*$'\n'}
done
`

func TestAnInstanceInZsh(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("there is no zsh: ", err)
	}
	dir := shortDir(t)
	b := open(t, options(t, dir, "beta"))
	cmd := exec.CommandContext(t.Context(), zsh, "-f", "-c", zshInstance, "zsh", b.o.Directory, b.ID(), "2")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(stdout)
	line := func() string {
		if !out.Scan() {
			err := cmd.Wait()
			if cmd.ProcessState.ExitCode() == 77 {
				t.Skip("this zsh has no sockets")
			}
			t.Fatalf("zsh ended: %v", err)
		}
		return out.Text()
	}
	id := line()
	if got, want := line(), `{"protocol":1,"type":"ack","message_id":"`+id+`-1","status":"accepted","queue_position":1,"state":"ready"}`; got != want {
		t.Errorf("zsh was answered %s", got)
	}
	if e := b.claim(t); e.Body != "from zsh" || e.Project != "shell" || e.PID != cmd.Process.Pid {
		t.Errorf("claimed %+v", e)
	}
	peers, err := b.Peers(t.Context(), nil)
	if err != nil || len(peers) != 1 || peers[0].ID != id {
		t.Fatalf("beta sees %+v (%v)", peers, err)
	}
	if _, err := b.Send(t.Context(), peers[0], "to zsh"); err != nil {
		t.Error(err)
	}
	if got := line(); !strings.Contains(got, `"type":"ping"`) {
		t.Errorf("zsh got %s", got)
	}
	if got := line(); !strings.Contains(got, `"body":"to zsh"`) || !strings.Contains(got, `"sender_instance_id":"`+b.ID()+`"`) {
		t.Errorf("zsh got %s", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
