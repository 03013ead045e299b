package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// Deltas are gathered for this long, or to this size, before they become an event.
const (
	gatherTime = 20 * time.Millisecond
	gatherSize = 4096 // bytes
)

// request builds the next request. Everything in front of the last messages is the
// same in every byte as in the request before: it is added to.
func (r *run) request() chat.Request {
	if len(r.sent) == 0 {
		r.sent = r.opening()
	}
	r.sent = r.with(r.sent, r.history[len(r.sent)-1:])
	return r.requestWith(r.sent[:len(r.sent):len(r.sent)])
}

// requestOf builds a request with another history, as side requests need.
func (r *run) requestOf(history []chat.Message) chat.Request {
	return r.requestWith(r.with(r.opening(), history))
}

func (r *run) opening() []chat.Message {
	return []chat.Message{{Role: chat.System, Content: r.turn.System}}
}

// with appends records as the model gets them.
func (r *run) with(messages, more []chat.Message) []chat.Message {
	messages = slices.Grow(messages, len(more))
	for _, m := range more {
		if !r.setup.KeepThinking {
			m.Thinking = ""
		}
		messages = append(messages, m)
	}
	return messages
}

func (r *run) requestWith(messages []chat.Message) chat.Request {
	return chat.Request{
		Model:      r.cfg.ModelName,
		Messages:   messages,
		Tools:      r.cfg.Tools.Specs(),
		Think:      r.setup.Think,
		NumCtx:     r.setup.Window,
		NumPredict: r.cfg.MaxOutput,
		KeepAlive:  r.cfg.KeepAlive,
	}
}

// generate asks the model and emits the reply, whole or partial. A request that did
// not fit, or that the server cut, is made again once after the history was
// shortened.
func (r *run) generate(ctx context.Context) (chat.Reply, error) {
	r.makeRoom(ctx)
	reply, err := r.ask(ctx)
	if !overflowed(err) {
		return reply, err
	}
	r.emit(event.Event{Kind: event.Warning, Text: err.Error() + ": the history is shortened and the request made again"})
	if cerr := r.compact(ctx, true); cerr != nil {
		return chat.Reply{}, errors.Join(err, cerr)
	}
	return r.ask(ctx)
}

func overflowed(err error) bool {
	var failure *chat.Error
	return errors.As(err, &failure) && failure.Kind == chat.Overflow
}

// cutPrompt returns an error when the server's own count shows that it left out a
// part of the prompt: it filled the window to the last token, or counted far fewer
// tokens than the request before though the history only grew and is near the
// window's end. Far from the end it is the model's own template that leaves out
// earlier turns.
func (r *run) cutPrompt(u chat.Usage) error {
	known := r.meter.known.Tokens
	full := r.setup.Window > 0 && u.PromptTokens >= r.setup.Window
	near := r.setup.Window <= 0 || r.meter.size(r.history) >= r.setup.Window*7/10
	shrunk := near && known > 0 && u.PromptTokens > 0 && u.PromptTokens < known*7/10
	if !full && !shrunk {
		return nil
	}
	return &chat.Error{
		Kind: chat.Overflow,
		Text: fmt.Sprintf("the server cut the prompt: it read only %d tokens", u.PromptTokens),
		Hint: "start a new conversation with /new, or set a larger --context-window",
	}
}

// ask makes one request.
func (r *run) ask(ctx context.Context) (chat.Reply, error) {
	phase := event.Reading
	if r.sum.Rounds == 1 && r.cfg.Prepare != nil && !r.setup.Loaded {
		phase = event.Loading
	}
	r.state(phase, "")
	reply, err := r.stream(ctx)
	if err != nil {
		r.keepPartial(reply, err)
		return chat.Reply{}, err
	}
	if err := r.cutPrompt(reply.Usage); err != nil {
		return chat.Reply{}, err
	}
	r.meter.take(reply.Usage, r.history)
	r.readTextCalls(&reply)
	r.own(reply.Message.Calls)
	r.count(reply.Usage)
	r.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{
		Message: reply.Message, DoneReason: reply.DoneReason, Usage: reply.Usage, Window: r.setup.Window, Prefix: r.prefix,
		Degenerate: !reply.Done && len(reply.Message.Calls) == 0,
	}})
	return reply, nil
}

// readTextCalls turns a reply that is nothing but calls written as text into calls.
func (r *run) readTextCalls(reply *chat.Reply) {
	m := &reply.Message
	if len(m.Calls) > 0 || !reply.Done || reply.DoneReason == "length" {
		return
	}
	if m.Calls = recoverCalls(m.Content, r.cfg.Tools); m.Calls != nil {
		m.Content = ""
		r.emit(event.Event{Kind: event.Info, Text: "the model wrote its call as text; it was read as a call"})
	}
}

func (r *run) state(p event.Phase, detail string) {
	r.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: p, Detail: detail}})
}

// keepPartial stores what had been shown of a reply that broke off.
func (r *run) keepPartial(reply chat.Reply, err error) {
	var failure *chat.Error
	if errors.As(err, &failure) {
		reply = failure.Partial
	}
	if reply.Message.Content == "" && reply.Message.Thinking == "" {
		return
	}
	r.own(reply.Message.Calls)
	r.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: reply.Message, Partial: true, Window: r.setup.Window}})
}

// own gives each call an id that is unique in the conversation, since servers leave
// them out or repeat them, and keeps broken arguments as a JSON string, since the log
// holds JSON alone.
func (r *run) own(calls []chat.ToolCall) {
	for i := range calls {
		calls[i].ID = r.cfg.NewID()
		if args := calls[i].Args; len(args) > 0 && !json.Valid(args) {
			calls[i].Args, _ = json.Marshal(string(args)) // a string always encodes
		}
	}
}

func (r *run) count(u chat.Usage) {
	r.sum.FreshTokens += u.OutputTokens + max(0, u.PromptTokens-r.lastPrompt)
	r.lastPrompt = u.PromptTokens
	r.sum.PromptTokens = u.PromptTokens
	r.sum.OutputTokens += u.OutputTokens
	r.sum.Window = r.setup.Window
}

// stream runs the request in its own goroutine and emits its deltas, gathered, from
// this one. It returns after that goroutine ended. On an error the reply holds what
// was emitted.
func (r *run) stream(ctx context.Context) (chat.Reply, error) {
	type end struct {
		reply chat.Reply
		err   error
	}
	deltas := make(chan chat.Delta, 64)
	done := make(chan end, 1)
	request := r.request()
	go func() {
		reply, err := r.chat(ctx, request, func(d chat.Delta) { deltas <- d })
		close(deltas)
		done <- end{reply, err}
	}()
	g := gatherer{run: r}
	g.consume(deltas)
	e := <-done
	if e.err != nil {
		e.reply = chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: g.content.String(), Thinking: g.thinking.String()}}
	}
	return e.reply, e.err
}

// chat asks the model; a panic in an adapter ends the turn, not the program, which
// would leave the terminal as the REPL set it.
func (r *run) chat(ctx context.Context, q chat.Request, emit func(chat.Delta)) (reply chat.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model client failed: %v", p)
		}
	}()
	return r.cfg.Model.Chat(ctx, q, emit)
}

// gatherer turns deltas into events: at most one each 20 ms, unless much text comes.
type gatherer struct {
	run               *run
	kind              event.Kind
	text              strings.Builder
	content, thinking strings.Builder
	phase             event.Phase
}

func (g *gatherer) consume(deltas <-chan chat.Delta) {
	timer := time.NewTimer(gatherTime)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case d, more := <-deltas:
			if !more {
				g.flush()
				return
			}
			if g.add(d) {
				timer.Reset(gatherTime)
			}
		case <-timer.C:
			g.flush()
		}
	}
}

// add takes a delta and reports whether the timer must be started.
func (g *gatherer) add(d chat.Delta) bool {
	started := false
	if d.Thinking != "" {
		g.thinking.WriteString(d.Thinking)
		started = g.put(event.Thinking, d.Thinking)
	}
	if d.Content != "" {
		g.content.WriteString(d.Content)
		started = g.put(event.Content, d.Content) || started
	}
	if d.Calls > 0 {
		g.flush()
		started = false
		g.enter(event.Calling)
	}
	return started
}

func (g *gatherer) put(kind event.Kind, text string) (started bool) {
	g.enter(event.Generating)
	if kind != g.kind {
		g.flush()
		g.kind = kind
	}
	started = g.text.Len() == 0
	g.text.WriteString(text)
	if g.text.Len() >= gatherSize {
		g.flush()
		return false
	}
	return started
}

func (g *gatherer) enter(p event.Phase) {
	if g.phase != p {
		g.phase = p
		g.run.state(p, "")
	}
}

func (g *gatherer) flush() {
	if g.text.Len() == 0 {
		return
	}
	g.run.emit(event.Event{Kind: g.kind, Text: g.text.String()})
	g.text.Reset()
}
