// Package mcp lets the model use the tools of MCP servers: it reads where servers
// are registered, holds what a person trusted, runs the servers and turns their tools
// into tools.Tool.
//
// It knows the two registry files, the pins, the protocol (through mcp-go) and the
// effects that tools claim. It knows neither the loop nor the gate: a tool describes
// its call in an approval.Request and acts with the permit that it is handed. It
// reads no environment and no flag; internal/app calls it and hands both in.
//
// Three things keep servers honest. A server of a project starts only while the
// content of its file is the one that a person approved. A tool is offered only
// while its definition is the pinned one. A tool that may change something outside
// this machine asks for every call, whatever rules say.
package mcp
