package perf

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"zcoder/internal/scripted"
)

// model answers at random: calls of every kind, broken ones, failures and silence.
type model struct {
	*soak
	r     *rand.Rand
	other string // the instance that messages go to, or ""
}

// said is what the model looks at in a request.
type said struct {
	Messages []struct{ Role, Content string }
	Tools    []json.RawMessage
}

const checkpoint = `{"schema_version":1,"objective":"work","constraints":[],"decisions":[],"artifacts":["a.txt"],"facts":[],"completed":[],"active":[],"blocked":[],"next":["go on"]}`

// respond is called by one request at a time.
func (m *model) respond(rec scripted.Recorded) string {
	var q said
	if err := json.Unmarshal(rec.Body, &q); err != nil || len(q.Messages) == 0 {
		return "> status 400 unreadable"
	}
	last := q.Messages[len(q.Messages)-1].Content
	if strings.Contains(last, "Write the checkpoint of this conversation") {
		m.compactions.Add(1)
		return "> say " + checkpoint
	}
	rounds := 0
	for i := len(q.Messages) - 1; i >= 0 && q.Messages[i].Role != "user"; i-- {
		rounds++
	}
	if m.other != "" && rounds == 0 && strings.Contains(string(rec.Body), `"send_agent_message"`) {
		m.messages.Add(1)
		return fmt.Sprintf(`> call send_agent_message {"target_instance_id":%q,"message":"count to %d"}`, m.other, m.r.IntN(100))
	}
	if rounds > 2*m.r.IntN(6) {
		return "> think All is done.\n> say That is **all**, after some words of an answer with `code` in it."
	}
	return m.call()
}

// call is one reply with a call, or something that goes wrong.
func (m *model) call() string {
	n := m.r.IntN(250)
	switch m.r.IntN(16) {
	case 0:
		return fmt.Sprintf(`> call write_file {"path":"a.txt","content":"%s\n"}`, strings.Repeat("x", 2000))
	case 1:
		return fmt.Sprintf(`> call write_file {"path":"a.txt","content":"%s\n"}`, strings.Repeat("y", 3000))
	case 2:
		return fmt.Sprintf(`> call run_command {"command":"echo %d; sleep 100 & setsid sleep 100 & sleep 0.01"}`, n)
	case 3:
		return `> call run_command {"command":"seq 3000; exit 3"}`
	case 4:
		return `> call apply_patch {"patch":"--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n--- a/b.txt\n+++ /dev/null\n"}`
	case 5:
		return fmt.Sprintf(`> call search {"query":"number %d"}`, n) + "\n" + `> call list_files {"path":"."}`
	case 6:
		return `> call run_command {"command":"sleep 0.2"}`
	case 7:
		return fmt.Sprintf(`> call replace_text {"path":"log.txt","old_text":"in it: %d","new_text":"in it"}`, n)
	case 8:
		return `> call no_such_tool {"x":1}`
	case 9:
		return `> call read_file {"path":"a.txt","Path":"b.txt"}`
	case 10:
		return "> say half an ans\n> error the runner is gone"
	case 11:
		return []string{"> status 500 {\"error\":\"busy\"}", "> say half\n> close", "> say half\n> eof"}[m.r.IntN(3)]
	default:
		return fmt.Sprintf(`> call read_file_range {"path":"log.txt","start_line":%d,"end_line":%d}`, n+1, n+40)
	}
}
