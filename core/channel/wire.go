package channel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Schema is the version of stored entries that this build writes.
const Schema = 1

// The fields of a stream entry. What is needed to trace an entry or to tell
// somebody about it stands in fields of its own, so that an entry whose payload
// nobody can decode is not silent.
const (
	fieldConversation = "conv"
	fieldInputs       = "inputs" // input ids, comma-separated
	fieldKind         = "kind"
	fieldTrace        = "trace"
	fieldTraceparent  = "tp"
	fieldSchema       = "v"
	fieldHops         = "hops" // stage=unix µs, semicolon-separated
	fieldStop         = "stop" // the conversation's stop number when an input was accepted; the ingest script adds it
	fieldData         = "data" // JSON
)

// A letter is an entry on its way into a stream.
type letter struct {
	to     Name
	fields []string // names and values
	entry  *Entry   // what the entry will be once it has an id; nil when nobody here reads it
	begun  bool
	size   int
}

// newLetter encodes a publish made from work; cause is its oldest entry, and
// traceparent the step's own, if it has one.
func newLetter(p Publish, conversation string, cause *Entry, traceparent string, now time.Time) (letter, error) {
	data, err := json.Marshal(p.Value)
	if err == nil && p.Value == nil {
		err = errors.New("there is no value")
	}
	if err != nil {
		return letter{}, fmt.Errorf("encode a %T for %s: %w", p.Value, p.To, err)
	}
	hops := make(Hops, 0, len(cause.Hops)+2)
	hops = append(hops, cause.Hops...)
	if len(hops) == 0 {
		hops = append(hops, Hop{Stage: "accept", At: cause.At()})
	}
	if p.Stage != "" {
		hops = append(hops, Hop{Stage: p.Stage, At: now})
	}
	e := &Entry{
		Channel: p.To, Conversation: conversation, Kind: p.Kind, InputIDs: p.InputIDs,
		TraceID: cause.TraceID, Traceparent: cmp.Or(traceparent, cause.Traceparent), Hops: hops,
		Size: len(data), Value: pointerTo(p.Value),
	}
	return letter{to: p.To, fields: e.fields(data), entry: e, size: len(data)}, nil
}

// pointerTo makes a published value look like a decoded one, which is a pointer.
func pointerTo(v any) any {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		return v
	}
	p := reflect.New(rv.Type())
	p.Elem().Set(rv)
	return p.Interface()
}

// fields spells an entry as stream fields. Empty ones are left out.
func (e *Entry) fields(data []byte) []string {
	f := make([]string, 0, 16)
	f = append(f, fieldConversation, e.Conversation)
	if len(e.InputIDs) > 0 {
		f = append(f, fieldInputs, strings.Join(e.InputIDs, ","))
	}
	if e.Kind != "" {
		f = append(f, fieldKind, e.Kind)
	}
	if e.TraceID != "" {
		f = append(f, fieldTrace, e.TraceID)
	}
	if e.Traceparent != "" {
		f = append(f, fieldTraceparent, e.Traceparent)
	}
	f = append(f, fieldSchema, strconv.Itoa(Schema))
	if len(e.Hops) > 0 {
		f = append(f, fieldHops, e.Hops.encode())
	}
	return append(f, fieldData, string(data))
}

// readEntry turns stream fields into an entry. An entry that cannot be decoded
// is returned all the same, with bad set.
func readEntry(from Name, id string, fields map[string]string, decode Decoder) *Entry {
	e := &Entry{
		Channel: from, ID: id, Conversation: fields[fieldConversation], Kind: fields[fieldKind],
		TraceID: fields[fieldTrace], Traceparent: fields[fieldTraceparent],
		Hops: decodeHops(fields[fieldHops]),
	}
	if s := fields[fieldInputs]; s != "" {
		e.InputIDs = strings.Split(s, ",")
	}
	e.stop, _ = strconv.ParseInt(fields[fieldStop], 10, 64) // 0 when it has none
	data := fields[fieldData]
	e.Size = len(data)
	schema, err := strconv.Atoi(fields[fieldSchema])
	switch {
	case e.Conversation == "":
		e.bad = fmt.Errorf("entry %s of %s names no conversation", id, from)
	case err != nil:
		e.bad = fmt.Errorf("entry %s of %s: schema version %q is not a number", id, from, fields[fieldSchema])
	default:
		if e.Value, err = decode(schema, []byte(data)); err != nil {
			e.bad = fmt.Errorf("decode entry %s of %s (schema %d): %w", id, from, schema, err)
		}
	}
	return e
}

func (h Hops) encode() string {
	var b strings.Builder
	for i, hop := range h {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(hop.Stage)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(hop.At.UnixMicro(), 10))
	}
	return b.String()
}

// decodeHops skips what it cannot read: times are for people, not for rules.
func decodeHops(s string) Hops {
	var h Hops
	for part := range strings.SplitSeq(s, ";") {
		stage, us, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(us, 10, 64)
		if ok && err == nil {
			h = append(h, Hop{Stage: stage, At: time.UnixMicro(n).UTC()})
		}
	}
	return h
}

// The fields that a dead letter carries before the fields of the entry it was.
const (
	deadFrom    = "dead-from"
	deadGroup   = "dead-group"
	deadReason  = "dead-reason"
	deadCount   = "dead-count"
	deadEntry   = "dead-entry"
	deadAt      = "dead-at"
	deadLeading = 12 // fields and values of the above
)
