// Package remote is the agent beside its workspace with the person elsewhere: the
// server and the client of remote protocol 1, and the ways between them (TCP, a Unix
// socket, one pipe through ssh).
//
// It knows the wire and no terminal, no tool and no model. What it serves comes in as
// a Host, which internal/app builds; the client's Conversation has the four methods
// that frontends share, so the REPL drives a remote workspace with the same code.
package remote
