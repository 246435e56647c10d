package history

import (
	"strconv"
	"time"
)

// A Summary stands for the lines of a conversation that were folded.
type Summary struct {
	Text        string
	Version     int64     // folds it went through; 0 means that there is no summary
	FoldedLines int64     // lines it stands for, over all folds
	From, Upto  time.Time // the earliest and the latest time of these lines; zero when none had a time
	UptoID      string    // id of the last line that was folded
	At          time.Time // of the last fold
	Model       string    // that wrote it
	stored      string    // the version as it is stored, whatever that is
}

// The fields of the hash in which a summary is kept. They are add-only.
const (
	fieldVersion = "version" // fold.lua compares it
	fieldText    = "summary"
	fieldLines   = "foldedLines"
	fieldFrom    = "from" // times are RFC 3339, UTC; no field when there is none
	fieldUpto    = "upto"
	fieldUptoID  = "uptoId"
	fieldAt      = "at"
	fieldModel   = "model"
)

// summary reads the fields of a summary. One that cannot be read in part is
// better than a turn without any, so what is odd is logged and left out; the next
// fold writes it anew.
func (s *Store) summary(conversation string, f map[string]string) Summary {
	if len(f) == 0 {
		return Summary{}
	}
	odd := func(field string, err error) {
		if err != nil {
			s.log.Warn("history_summary_odd", "conversation", conversation, "field", field, "value", f[field], "error", err)
		}
	}
	number := func(field string) int64 {
		n, err := strconv.ParseInt(f[field], 10, 64)
		odd(field, err)
		return n
	}
	moment := func(field string) time.Time {
		if f[field] == "" {
			return time.Time{}
		}
		t, err := time.Parse(time.RFC3339Nano, f[field])
		odd(field, err)
		return t
	}
	return Summary{
		Text: f[fieldText], Version: max(1, number(fieldVersion)), FoldedLines: number(fieldLines),
		From: moment(fieldFrom), Upto: moment(fieldUpto), UptoID: f[fieldUptoID],
		At: moment(fieldAt), Model: f[fieldModel], stored: f[fieldVersion],
	}
}

// fields spells a summary for the script that stores it.
func (m Summary) fields() []any {
	out := []any{
		fieldVersion, m.Version, fieldText, m.Text, fieldLines, m.FoldedLines,
		fieldUptoID, m.UptoID, fieldModel, m.Model, fieldAt, stamp(m.At),
	}
	if !m.From.IsZero() {
		out = append(out, fieldFrom, stamp(m.From), fieldUpto, stamp(m.Upto))
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// after is the summary when lines were folded into it. Lines that have no id or
// no time tell nothing of where the summary ends.
func (m Summary) after(lines []placed) Summary {
	m.Version++
	for i := range lines {
		l := &lines[i].line
		if l.ID != "" {
			m.UptoID = l.ID
		}
		if l.At.IsZero() {
			continue
		}
		if m.From.IsZero() || l.At.Before(m.From) {
			m.From = l.At
		}
		if l.At.After(m.Upto) {
			m.Upto = l.At
		}
	}
	return m
}
