// Package mcp lends tasks the tools of servers that speak the Model Context
// Protocol, over a child process' pipes or over HTTP.
//
// A [Set] holds the servers of one node. It is promised that
//
//   - a server is started or reached when a task first wants its tools, is shared by
//     all tasks, and is gone when the Set has ended, with all that it started;
//   - it is offered only what its own entry allows, under the name
//     mcp_<server>_<tool>, with the server's own schema;
//   - it sees nothing of our environment but what its entry names;
//   - a call ends within its time and its answer within its size, and a server that
//     crashes, hangs or floods costs the calls that it had, never the node: it is
//     reached anew, less and less often while that fails;
//   - a call that was cut off is not made again, since nobody knows whether it was
//     done; the model is told so. Whatever else fails goes to the model as words that
//     it can act on.
//
// What a server says is material like a web page: it carries no rights.
package mcp
