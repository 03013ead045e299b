package config

import (
	"strings"
	"testing"
	"time"
)

// A wrong value of the relay changes nothing but the relay.
func TestLenientSettings(t *testing.T) {
	for _, tt := range []struct{ name, file, variable, value, problem string }{
		{name: "relay", variable: "ZCODER_RELAY", value: "sometimes", problem: "variable ZCODER_RELAY: \"sometimes\" is not allowed"},
		{name: "relay-max-queue", variable: "ZCODER_RELAY_MAX_QUEUE", value: "0", problem: "is out of range: give 1 to 1000 messages"},
		{name: "relay-max-bytes", variable: "ZCODER_RELAY_MAX_BYTES", value: "much", problem: "is not allowed"},
		{name: "relay-io-timeout", variable: "ZCODER_RELAY_IO_TIMEOUT", value: "1h", problem: "is out of range"},
		{name: "relay-max-message-chars", file: `relay_max_message_chars = "x"`, problem: "config.toml:1: relay_max_message_chars: it is a text in quotes"},
		{name: "relay-max-queue", file: `relay_max_queue = "x"`, variable: "ZCODER_RELAY_MAX_QUEUE", value: "3"},
		{name: "relay", variable: "ZCODER_RELAY", value: "paused"},
		{name: "relay", variable: "ZCODER_RELAY", value: "off"},
	} {
		env := map[string]string{}
		if tt.variable != "" {
			env[tt.variable] = tt.value
		}
		v := load(t, run{file: tt.file, env: env})
		if got := v.Problem(tt.name); (got == "") != (tt.problem == "") || !strings.Contains(got, tt.problem) {
			t.Errorf("%s %q: problem %q", tt.name, tt.value, got)
		}
		var shown strings.Builder
		if err := v.Show(&shown, false); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(shown.String(), "ignored: ") != (tt.problem != "") {
			t.Errorf("%s %q: shown as\n%s", tt.name, tt.value, shown.String())
		}
		if tt.problem != "" && v.String("relay") != "true" || v.Int("relay-max-bytes") != 65536 || v.Duration("relay-io-timeout") != 2*time.Second {
			t.Errorf("%s %q: the default does not stand", tt.name, tt.value)
		}
	}
	if v := load(t, run{env: map[string]string{"ZCODER_RELAY": "no"}}); v.String("relay") != "false" {
		t.Errorf("off reads as %q", v.String("relay"))
	}
}
