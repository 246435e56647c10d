// Package core is the part of Mimikit that knows no chat platform. It holds no
// code of its own; this page is the tour, from the ground up.
//
// # The way of a message
//
// Someone says something on a platform. Its adapter hands the message to the
// inbox, which stores it durably and once. From there it travels over channels,
// which are Redis Streams, from loop to loop; each loop takes entries, does its
// work, and commits what came of it, the settling of what it took included, in
// one atomic script. So a crash anywhere may repeat a model call, never an
// effect. At the end the outbox posts the reply and records that it did.
//
//	listener ▶ user-input ▶ teller ▶ teller-digest ▶ thinker ▶ thinker-decision ▶ teller ▶ teller-reply ▶ outbox
//
// # The ground
//
//   - [mimikit/core/chat] holds the nouns that every other package speaks:
//     conversation, input, digest, decision, reply. It imports the standard
//     library only, so that everything may import it.
//   - [mimikit/core/llm] is the one door to language models: an interface of one
//     method, an OpenAI-compatible endpoint and the offline demo model behind it,
//     and wrappers that retry, fall back, keep accounts and archives.
//   - [mimikit/core/tokens] counts tokens offline.
//   - [mimikit/core/action] is what a model may do besides speaking: a registry of
//     actions with schemas and rights, two decoders, and the loop of a turn.
//   - [mimikit/core/telemetry] counts what happens and answers whether the
//     process is well. Everything may count, so it knows nothing.
//
// # Where state lives
//
//   - [mimikit/core/store] finds, starts or adopts a Redis, and refuses one that
//     would lose what it acknowledged.
//   - [mimikit/core/channel] is the heart: partitioned streams with leases, fenced
//     delivery and fenced commits, attempts and dead letters. Claiming, retrying
//     and stopping have one home, so no loop has to get them right.
//   - [mimikit/core/history] reads the lines of a conversation back and cuts the
//     window that fits a prompt. They are written by the commit of the turn that
//     they belong to. [mimikit/core/fold] sums up the oldest of them.
//   - [mimikit/core/task] is the queue of background tasks: a state chart whose
//     every transition is one script. What a turn does to tasks is part of its
//     commit.
//   - [mimikit/core/usage] is the ledger of what model calls cost, and of budgets.
//   - [mimikit/core/memory] is what people asked to be remembered, with walls between
//     them.
//   - [mimikit/core/review] looks back: it reviews conversations that have gone quiet,
//     and sums each day up.
//   - [mimikit/core/audit] is who did what.
//   - [mimikit/core/pause] is where the bot takes up nothing new for now.
//   - [mimikit/core/cluster] is what nodes agree on beside the roads: leases of single
//     connections, how far a place was heard, one rate budget for all.
//   - [mimikit/core/trigger] is what starts tasks later: times and conditions, each slot
//     of which fires once. [mimikit/core/question] is what people were asked, answered
//     days later on any node. These two and the tasks read what they keep with
//     [mimikit/core/rows].
//   - [mimikit/core/attachment] is where the files are that people sent.
//   - [mimikit/core/blob] keeps the texts that are too long for a stream.
//   - [mimikit/core/feed] is a short stream for each terminal, so that a reply
//     posted by any node reaches the terminal that waits for it.
//
// # The loops
//
//   - [mimikit/prompts] holds the words that models are given, as files that can
//     be shadowed; there is no prompt text in Go code.
//   - [mimikit/core/teller] hears and words: it gathers what was said into a
//     digest, and turns a decision into a reply in the bot's voice.
//   - [mimikit/core/thinker] decides: one digest in, one decision out, and what is
//     to be done.
//
// Both are functions from entries to effects. They know neither Redis nor each
// other, so each can be tested as a table of cases.
//
//   - [mimikit/core/worker] does the work of a task, one action after the other,
//     with a checkpoint after each. Its files are in a [mimikit/core/workspace],
//     its commands run in a [mimikit/core/sandbox], and pages of the web reach it
//     through [mimikit/core/webread]: three walls that know nothing of tasks. It has
//     planners, which break a request into steps, and experts, which hand one to
//     another program; [mimikit/core/mcp] brings tools of other servers.
//   - [mimikit/core/supervisor] asks no model: it fires triggers, carries out plans, and
//     keeps questions' deadlines.
//
// # The edges
//
//   - [mimikit/core/admin] is the command set, once for all doors: rights are decided
//     here, and every act is told to the audit.
//   - [mimikit/adapters] says what a platform must offer.
//   - [mimikit/adapters/inbox] makes an input of a message, once for each message.
//   - [mimikit/adapters/outbox] cuts a reply into parts, posts each effectively
//     once, and says so when it cannot.
//   - [mimikit/adapters/console] is the terminal, [mimikit/adapters/slack] Slack and
//     [mimikit/adapters/discord] Discord, whose gateway client is our own.
//     Where one process is alone, [mimikit/adapters/alone] remembers what nodes of
//     these would share. [mimikit/adapters/adaptertest] is the suite that all of them run, and fakes of
//     the platforms that follow their documentation.
//   - [mimikit/core/page] is the operator's page; it says what the commands say.
//   - [mimikit/config] reads what an operator may set. No other package knows it.
//   - mimikit/cmd/mimikit puts the parts together: it translates settings into
//     options, holds the table of loops, and runs them under one group.
//
// Who may import whom is a table in walls_test.go, and a test.
package core
