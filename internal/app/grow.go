package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/sizing"
)

// growPatience bounds what the end of a turn waits for the server's facts.
const growPatience = 2 * time.Second

// grow raises the window between two turns when the conversation fills it, the model
// can take more and this machine, if the server is here, has the memory. It returns
// what the person should know, or "".
func (b *brain) grow(ctx context.Context, used int, free func() int64) string {
	if b.explicit > 0 || used == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, growPatience)
	defer cancel()
	facts, err := b.known(ctx)
	client, model := b.current()
	if err != nil || facts.FixedContext > 0 || !here(client.BaseURL()) || onGraphicsCard(ctx, client, model) {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.window[model].Tokens
	tokens, ok := sizing.Raise(sizing.Growth{
		Window: now, Used: used, Trained: facts.TrainedContext, BytesPerToken: facts.CacheBytesPerToken, Free: free(),
	})
	if !ok {
		return ""
	}
	b.window[model] = sizing.Choice{Tokens: tokens, Source: "raised, since the conversation needs it and the memory allows it"}
	b.remember(tokens)
	return fmt.Sprintf("the window is raised from %d to %d tokens: the next request loads the model again and re-reads the prompt once", now, tokens)
}

// here reports whether a server is on this machine.
func here(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// onGraphicsCard reports whether a part of the model is in memory that is not the
// machine's own, whose size is not known.
func onGraphicsCard(ctx context.Context, client modelServer, model string) bool {
	m, ok := loadedModel(ctx, client, model)
	return !ok || m.SizeVRAM > 0
}

// loadedModel is the model as it is in the server's memory.
func loadedModel(ctx context.Context, client modelServer, model string) (chat.LoadedModel, bool) {
	l, ok := client.(loader)
	if !ok {
		return chat.LoadedModel{}, false
	}
	list, err := l.Loaded(ctx)
	if err != nil {
		return chat.LoadedModel{}, false
	}
	for _, m := range list {
		if sameModel(m.Name, model) {
			return m, true
		}
	}
	return chat.LoadedModel{}, false
}

// freeMemory is what the machine has left, in bytes; 0 where the system does not say.
func freeMemory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// residency says how the model is in the server's memory, for /context.
func (b *brain) residency(ctx context.Context) string {
	client, model := b.current()
	m, ok := loadedModel(ctx, client, model)
	if !ok {
		return "model           not in the server's memory"
	}
	line := fmt.Sprintf("model           in memory, %s", size(m.Size))
	if m.Size > 0 && m.SizeVRAM > 0 {
		line += fmt.Sprintf(", %d %% on the graphics card", 100*m.SizeVRAM/m.Size)
	}
	switch left := time.Until(m.Expires); {
	case m.Expires.IsZero():
	case left > 365*24*time.Hour:
		line += ", stays"
	default:
		line += fmt.Sprintf(", for another %s", left.Round(time.Second))
	}
	return line
}
