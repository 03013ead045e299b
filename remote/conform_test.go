package remote

import (
	"os"
	"strings"
	"testing"

	"zcoder/remote/conform"
)

func TestConformance(t *testing.T) {
	s := newStation(t).listen()
	conform.Run(t, conform.Target{
		Address: strings.TrimPrefix(s.url, "http://"), Token: stationToken,
		Quick: "say hello", Asks: "run ls", Command: "ls", Long: "wait",
	})
}

// TestConformanceOfAProgram tests a server that is named by the environment: its
// address and the file of its token. Its prompts need no model.
func TestConformanceOfAProgram(t *testing.T) {
	address, file := os.Getenv("ZCODER_CONFORM_ADDRESS"), os.Getenv("ZCODER_CONFORM_TOKEN_FILE")
	if address == "" || file == "" {
		t.Skip("ZCODER_CONFORM_ADDRESS and ZCODER_CONFORM_TOKEN_FILE name no server")
	}
	token, err := ReadToken(file)
	if err != nil {
		t.Fatal(err)
	}
	conform.Run(t, conform.Target{
		Address: address, Token: token,
		Quick: "/help", Asks: "! echo hi", Command: "echo hi", Long: "! sleep 600",
	})
}
