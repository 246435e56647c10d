package chat

import "time"

// A Role is what a person may do, decided in code from verified platform ids,
// never by a prompt. Roles are ordered: a greater one may do all a lesser may.
type Role int

// The roles. The zero Role is invalid, so that a forgotten one is noticed.
const (
	RoleUser     Role = 1 // speaks with the bot; sees and cancels own tasks
	RoleOperator Role = 2 // sees and cancels any task of the workspace
	RoleAdmin    Role = 3 // also pauses the bot and sees the audit trail
)

// String names the role as config and prompts spell it.
func (r Role) String() string {
	switch r {
	case RoleUser:
		return "user"
	case RoleOperator:
		return "operator"
	case RoleAdmin:
		return "admin"
	}
	return "unknown"
}

// An Author is a verified platform identity. Name is what the person chose to
// be called: display only, and hostile text as far as prompts are concerned.
type Author struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Role Role   `json:"role"`
	Bot  bool   `json:"bot,omitempty"`
}

// An InputKind says what happened on the platform.
type InputKind string

// The kinds of input. The empty kind is read as KindMessage: stored entries of
// the first schema may leave it out.
const (
	KindMessage InputKind = "message" // something was said
	KindEdit    InputKind = "edit"    // an earlier message was changed; Text is the new text
	KindDelete  InputKind = "delete"  // an earlier message was removed
	KindStop    InputKind = "stop"    // the person wants the running turn to stop
	KindAnswer  InputKind = "answer"  // a question was answered; Question names it
)

// A UserInput is one thing a person did in a conversation, accepted once.
type UserInput struct {
	ID           string       `json:"id"`           // derived from the dedupe key: the same message always gets the same id
	Conversation Conversation `json:"conversation"` // where it was said, and where the answer goes
	Kind         InputKind    `json:"kind,omitempty"`
	Message      string       `json:"message"`           // the platform's id of the message
	Edit         string       `json:"edit,omitempty"`    // the platform's edit stamp, or "deleted"
	ReplyTo      string       `json:"replyTo,omitempty"` // the message this one answers, where the platform knows
	Author       Author       `json:"author"`
	Text         string       `json:"text"`               // valid UTF-8, at most MaxText bytes
	TextBlob     string       `json:"textBlob,omitempty"` // id of the whole text when Text was cut
	TextSize     int          `json:"textSize,omitempty"` // bytes of the whole text when Text was cut
	Attachments  []Attachment `json:"attachments,omitempty"`
	Addressed    bool         `json:"addressed"`          // a mention, a DM, or a thread the bot takes part in; of an edit: it adds the first mention
	Question     string       `json:"question,omitempty"` // the question this answers
	Option       string       `json:"option,omitempty"`   // the option chosen, when a button was used
	At           time.Time    `json:"at"`                 // the platform's time of the message, UTC
}

// MaxText bounds the bytes of one text in a stream (32 KiB). Longer texts are
// kept whole in a blob and cut in the stream, with TextSize telling how much
// there was.
const MaxText = 32 << 10

// An Attachment is a file somebody sent. The adapter of the platform is the
// only one that may fetch URL, since that takes the platform's token.
type Attachment struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	MediaType string `json:"mediaType,omitempty"`
	Size      int64  `json:"size,omitempty"` // bytes, as the platform says
	URL       string `json:"url,omitempty"`
	Text      string `json:"text,omitempty"` // the content, where it is short text
}
