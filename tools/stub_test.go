package tools

import (
	"context"
	"errors"
)

type specOnly struct{ spec Spec }

func (s specOnly) Spec() Spec { return s.spec }
func (s specOnly) Plan(context.Context, Call) (Action, error) {
	return Action{}, errors.New("not used")
}
