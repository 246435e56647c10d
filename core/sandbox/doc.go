// Package sandbox runs what a model wrote, and keeps it from everything that is
// not its workspace. A model reads pages and files of strangers, so a command is
// judged as if a stranger had typed it.
//
// [Sandbox.Run] promises, for every command:
//
//   - It runs in a sandbox (bubblewrap) or not at all. Where none is to be had,
//     [Sandbox.Available] says why and what mends it, and Run refuses.
//   - It sees a read-only system, one writable folder (its workspace, as
//     /workspace) and small temporary folders of its own. It sees no other
//     process, no file of the host beyond the system's programs, none of our
//     environment, and no network unless that was allowed.
//   - It ends: by itself, at its timeout, at a limit, or when the context is
//     cancelled. When Run returns, every process that came of it is dead,
//     detached ones included, because the kernel kills a pid namespace whole.
//   - Its memory, processes, disk and output are bounded. The kernel's limits
//     count for one process; what all of them use together is measured several
//     times a second, so that a burst may pass a bound for a moment.
//
// A command with the network allowed has the host's network: it reaches what the
// host reaches, its loopback and private neighbours included. Allow it only
// where that is meant.
//
// What the kernel holds for a process without showing it as memory of the
// process (socket buffers) is bounded only by the guard on the host's free
// memory. A deployment that wants that bounded too runs the whole service in a
// cgroup. The service should not run as root: the kernel does not count root's
// processes, so a sandbox is to be had then only where a pids cgroup can be made,
// and what a hole in the kernel would give away is worth more.
//
// [Start] is for a trusted program that brings a sandbox of its own: it gives
// no walls, only a process without our environment that can be killed with
// everything it started.
package sandbox
