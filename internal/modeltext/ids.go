package modeltext

import "zcoder/internal/chat"

// IDs gives the calls of a reply ids that are their own.
type IDs struct {
	taken map[string]bool // ids of the history and of this reply
	fresh func() string
}

// NewIDs knows the ids of a history; fresh makes one for a call that has none of use.
func NewIDs(history []chat.Message, fresh func() string) IDs {
	ids := IDs{map[string]bool{}, fresh}
	for _, m := range history {
		for _, call := range m.Calls {
			ids.taken[call.ID] = true
		}
	}
	return ids
}

// Own replaces the ids that are missing, strange or taken.
func (ids IDs) Own(calls []chat.ToolCall) {
	for i := range calls {
		id := calls[i].ID
		for !UsableID(id) || ids.taken[id] {
			id = ids.fresh()
		}
		ids.taken[id] = true
		calls[i].ID = id
	}
}

// UsableID reports whether an id of a server can stand in logs and requests.
func UsableID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, r := range []byte(id) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.', r == ':':
		default:
			return false
		}
	}
	return true
}
