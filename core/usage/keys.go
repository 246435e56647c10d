package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"mimikit/core/llm"
)

// life stands for the day in the keys of what has no day.
const life = "life"

// maxID bounds an id within a key, in bytes. Ids come from platforms and are
// far shorter.
const maxID = 200

// An account is the totals of one subject on one day, or for life.
type account struct {
	day string // 2026-11-21, or life
	s   llm.Subject
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// end is when an account that is written at a time expires.
func (a account) end(written time.Time) time.Time {
	if day, err := time.Parse(time.DateOnly, a.day); err == nil {
		written = day.AddDate(0, 0, 1)
	}
	return written.Add(Retention)
}

// resets is when a budget of the account begins anew; zero for never.
func (a account) resets() time.Time {
	day, err := time.Parse(time.DateOnly, a.day)
	if err != nil {
		return time.Time{}
	}
	return day.AddDate(0, 0, 1)
}

func (l *Ledger) key(a account) string {
	id := a.s.ID
	if len(id) > maxID {
		sum := sha256.Sum256([]byte(id))
		id = id[:maxID-32] + hex.EncodeToString(sum[:16])
	}
	return l.o.Prefix + ":usage:{" + a.day + "/" + string(a.s.Kind) + "/" + id + "}"
}

func (l *Ledger) heldKey(a account) string    { return l.key(a) + ":held" }
func (l *Ledger) settledKey(a account) string { return l.key(a) + ":settled" }

func (l *Ledger) rankKey(day string, kind llm.SubjectKind, by llm.Unit) string {
	return l.o.Prefix + ":usage:{" + day + "/" + string(kind) + "}:" + string(by)
}

// budgeted are the accounts of a charge that can have a budget, in the order in
// which a refusal names them.
func budgeted(c llm.Charge) []account {
	day := dayOf(c.Time)
	return known(
		account{day, llm.Subject{Kind: llm.UserSubject, ID: c.User}},
		account{day, llm.Subject{Kind: llm.PlaceSubject, ID: c.Place}},
		account{day, llm.Subject{Kind: llm.WorkspaceSubject, ID: c.Workspace}},
		account{life, llm.Subject{Kind: llm.TaskSubject, ID: c.Task}},
	)
}

// others are the accounts of a charge that only count.
func others(c llm.Charge) []account {
	day := dayOf(c.Time)
	return append(known(
		account{day, llm.Subject{Kind: llm.TaskSubject, ID: c.Task}},
		account{day, llm.Subject{Kind: ConversationSubject, ID: c.Conversation}},
		account{day, llm.Subject{Kind: AgentSubject, ID: c.Agent}},
		account{day, llm.Subject{Kind: ModelSubject, ID: c.Model}},
	), account{day, llm.Subject{Kind: Everything}})
}

// known leaves out the accounts of nobody.
func known(all ...account) []account {
	out := all[:0]
	for _, a := range all {
		if a.s.ID != "" {
			out = append(out, a)
		}
	}
	return out
}
