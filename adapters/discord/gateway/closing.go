package gateway

import "fmt"

// A Fatal is an end that trying again cannot mend.
type Fatal struct {
	Code   int    // Discord's close code; 0 when it was not one
	Reason string // what is wrong
	Mend   string // what an operator can do about it
}

// Error says what is wrong and what to do.
func (f *Fatal) Error() string {
	code := ""
	if f.Code != 0 {
		code = fmt.Sprintf(" (close code %d)", f.Code)
	}
	return fmt.Sprintf("discord gateway: %s%s: %s", f.Reason, code, f.Mend)
}

// An after is what to do once a connection has ended.
type after int

const (
	resume   after = 1 // the session goes on
	identify after = 2 // the session is over
	giveUp   after = 3
)

// Close codes of Discord. Those that stand nowhere here end the connection and
// leave the session.
const (
	closeNotAuthenticated = 4003
	closeAuthFailed       = 4004
	closeInvalidSeq       = 4007
	closeSessionTimeout   = 4009
	closeInvalidShard     = 4010
	closeShardingNeeded   = 4011
	closeInvalidVersion   = 4012
	closeInvalidIntents   = 4013
	closeDisallowed       = 4014
)

// closeResumable is what we close with: any code but 1000 and 1001 leaves the
// session to be resumed.
const closeResumable = 4000

// afterClose says what to do after Discord closed a connection with a code.
func afterClose(code int, intents int) (after, *Fatal) {
	fatal := func(reason, mend string) (after, *Fatal) {
		return giveUp, &Fatal{Code: code, Reason: reason, Mend: mend}
	}
	switch code {
	case closeNotAuthenticated, closeInvalidSeq, closeSessionTimeout:
		return identify, nil
	case closeAuthFailed:
		return fatal("Discord does not accept the bot token",
			"copy the token from the Bot page of the application at https://discord.com/developers/applications and set it anew; a token that was reset, or leaked, no longer works")
	case closeInvalidShard:
		return fatal("Discord does not accept the shard",
			"set the number of shards to what GET /gateway/bot recommends, or leave it out of the config")
	case closeShardingNeeded:
		return fatal("the bot is in too many servers for so few shards",
			"raise the number of shards, or leave it out of the config to take what Discord recommends")
	case closeInvalidVersion:
		return fatal("Discord no longer speaks this version of its gateway", "install a newer release")
	case closeInvalidIntents:
		return fatal(fmt.Sprintf("Discord does not know the intents %d", intents), "install a newer release")
	case closeDisallowed:
		return fatal("an intent is not enabled for this bot",
			"switch on \"Message Content Intent\" on the Bot page of the application at https://discord.com/developers/applications; "+
				"or run without it, and the bot hears only direct messages, mentions and replies to it")
	}
	return resume, nil
}
