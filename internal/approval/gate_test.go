package approval

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

type policyFunc func(Request) Verdict

func (f policyFunc) Judge(r Request) Verdict { return f(r) }

type askerFunc func(Request, Verdict) (Answer, error)

func (f askerFunc) Ask(_ context.Context, r Request, v Verdict) (Answer, error) { return f(r, v) }

// memory keeps the kinds of records; failing makes it refuse.
type memory struct {
	kinds   []string
	failing bool
}

func (m *memory) Record(r Record) error {
	if m.failing {
		return errors.New("no space left on device")
	}
	m.kinds = append(m.kinds, r.Kind)
	return nil
}

func always(v Verdict) policyFunc { return func(Request) Verdict { return v } }

func answers(c Choice) askerFunc {
	return func(Request, Verdict) (Answer, error) { return Answer{Choice: c}, nil }
}

var command = Request{CallID: "c1", Tool: "run_command", Effect: Exec, Origin: OriginUser, Text: "ls"}

func TestTheZeroGateAndPermitAllowNothing(t *testing.T) {
	if _, err := (&Gate{}).Authorize(t.Context(), command); err == nil {
		t.Error("a gate without a policy permitted")
	}
	g := &Gate{Policy: always(Verdict{Decision: Allow})}
	if _, err := g.Authorize(t.Context(), command); err == nil {
		t.Error("a gate without a recorder permitted a command")
	}
	if err := (Permit{}).Use(command); !errors.Is(err, ErrNoPermit) {
		t.Errorf("zero permit = %v", err)
	}
	g = &Gate{Policy: always(Verdict{}), Recorder: &memory{}}
	if _, err := g.Authorize(t.Context(), command); !errors.Is(err, ErrUnattended) {
		t.Errorf("no asker = %v; want ErrUnattended", err)
	}
	var a Answer
	if a.Choice != No {
		t.Error("the zero answer does not deny")
	}
	if Effect(0) != Unknown || Decision(0) != Ask {
		t.Error("zero values are not the safe ones")
	}
}

func TestAPermitIsForOneRequestOnce(t *testing.T) {
	g := &Gate{Policy: always(Verdict{Decision: Allow}), Recorder: &memory{}}
	p, err := g.Authorize(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	other := command
	other.Text = "rm -rf x"
	if err := p.Use(other); !errors.Is(err, ErrNoPermit) {
		t.Errorf("Use for another text = %v", err)
	}
	if err := p.Use(command); err != nil {
		t.Errorf("Use = %v", err)
	}
	if err := p.Use(command); !errors.Is(err, ErrNoPermit) {
		t.Errorf("second Use = %v", err)
	}
}

// TestDigestCoversEveryField changes each field by itself: what is not in the digest
// could differ between what was shown and what runs.
func TestDigestCoversEveryField(t *testing.T) {
	base := Request{Shell: []string{"sh", "-c"}, Paths: []PathUse{{Path: "/a", Rel: "a"}}, MustAsk: []string{"x"}, Notes: []string{"n"}}
	seen := map[Digest]string{base.Digest(): "base"}
	typ := reflect.TypeOf(base)
	for i := range typ.NumField() {
		r := base
		v := reflect.ValueOf(&r).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("changed")
		case reflect.Uint8:
			v.SetUint(3)
		case reflect.Slice:
			v.Set(reflect.Zero(v.Type()))
		default:
			t.Fatalf("field %s has a kind that the test does not know", typ.Field(i).Name)
		}
		if other, twice := seen[r.Digest()]; twice {
			t.Errorf("changing %s gives the digest of %s", typ.Field(i).Name, other)
		}
		seen[r.Digest()] = typ.Field(i).Name
	}
	split := base
	split.Shell = []string{"sh-c"}
	joined := base
	joined.Shell = []string{"sh", "-c", ""}
	if split.Digest() == base.Digest() || joined.Digest() == base.Digest() {
		t.Error("lists that differ in their parts have one digest")
	}
}

func TestGrants(t *testing.T) {
	firm := Verdict{Firm: true}
	for _, tt := range []struct {
		name    string
		first   Request
		verdict Verdict
		then    Request
		asked   int
	}{
		{"covers later commands", command, Verdict{}, command, 1},
		{"not other effects", command, Verdict{}, Request{Effect: ExternalWrite, Origin: OriginUser}, 2},
		{"not a peer's turn", command, Verdict{}, Request{Effect: Exec, Origin: OriginPeer}, 2},
		{"not an unknown origin", command, Verdict{}, Request{Effect: Exec}, 2},
		{"`a` of a peer's turn means once", Request{Effect: Exec, Origin: OriginPeer}, Verdict{}, command, 2},
		{"`a` on a firm question means once", command, firm, command, 2},
		{"`a` for a file means once", Request{Effect: WorkspaceWrite, Origin: OriginUser}, Verdict{}, command, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			g := &Gate{Policy: always(tt.verdict), Recorder: &memory{}, Asker: askerFunc(func(Request, Verdict) (Answer, error) {
				asked++
				return Answer{Choice: Conversation}, nil
			})}
			for _, r := range []Request{tt.first, tt.then} {
				if _, err := g.Authorize(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if asked != tt.asked {
				t.Errorf("asked %d times; want %d", asked, tt.asked)
			}
		})
	}
}

func TestClearGrantAsksAgain(t *testing.T) {
	asked := 0
	g := &Gate{Policy: always(Verdict{}), Recorder: &memory{}, Asker: askerFunc(func(Request, Verdict) (Answer, error) {
		asked++
		return Answer{Choice: Conversation}, nil
	})}
	for range 2 {
		if _, err := g.Authorize(t.Context(), command); err != nil {
			t.Fatal(err)
		}
		g.ClearGrant()
	}
	if asked != 2 || g.Granted() {
		t.Errorf("asked %d times, granted %v", asked, g.Granted())
	}
}

func TestEverythingIsRecordedInOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict Verdict
		choice  Choice
		want    string
	}{
		{"allowed", Verdict{Decision: Allow}, No, "verdict start"},
		{"denied by rule", Verdict{Decision: Deny, Reason: "no"}, No, "verdict"},
		{"approved", Verdict{}, Once, "verdict answer start"},
		{"denied by a person", Verdict{}, No, "verdict answer"},
		{"granted", Verdict{}, Conversation, "verdict answer grant start"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &memory{}
			g := &Gate{Policy: always(tt.verdict), Recorder: m, Asker: answers(tt.choice)}
			_, err := g.Authorize(t.Context(), command)
			if got := strings.Join(m.kinds, " "); got != tt.want {
				t.Errorf("records = %q; want %q", got, tt.want)
			}
			if permitted := err == nil; permitted != strings.HasSuffix(tt.want, "start") {
				t.Errorf("Authorize = %v", err)
			}
		})
	}
}

func TestWhatCannotBeRecordedIsRefused(t *testing.T) {
	g := &Gate{Policy: always(Verdict{Decision: Allow}), Recorder: &memory{failing: true}}
	for effect := Unknown; effect <= Peer; effect++ {
		_, err := g.Authorize(t.Context(), Request{Effect: effect})
		if (effect == Read) != (err == nil) {
			t.Errorf("%s with an audit that cannot be written = %v", effect, err)
		}
	}
}

func TestApprovedByPerson(t *testing.T) {
	g := &Gate{Policy: always(Verdict{}), Recorder: &memory{}, Asker: answers(Conversation)}
	second := command
	second.CallID = "c2"
	for _, r := range []Request{command, second} {
		if _, err := g.Authorize(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if !g.ApprovedByPerson(command) || g.ApprovedByPerson(second) {
		t.Error("the first was approved by a person, the second by the grant")
	}
}
