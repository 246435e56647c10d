// Package action is what a model may do besides speaking: one registry of
// actions, two ways in which a model asks for them, and the loop of a turn.
//
// An action is a [Definition]: a name, a JSON schema made from a Go struct, who
// may use it, the least right it needs, and a function. A [Registry] holds all
// of them and gives each turn an [Offer], the actions that this agent may use
// with these rights. A model asks for actions by native tool calls, or, where it
// knows none, by lines in a block at the end of its text; both are decoded into
// a [Call] and judged by the same schema. [Run] is the loop around the model:
// look-ups are answered, effects are gathered, mistakes go back to be mended.
//
// What is promised:
//
//   - Nothing here changes the world. An effect is handed back to the caller, who
//     commits it; what an effect's function returns is opaque to this package.
//   - Rights are decided in code, from the authors of the inputs, when an action
//     is offered and again before its function is called. A prompt cannot widen them.
//   - Nothing that is broken is guessed at. What does not parse, or does not fit
//     the schema, is a [*Mistake] that names the field, the value and what is
//     allowed; it goes back to the model a bounded number of times.
//   - Words that a model merely quotes do not act: see [Offer.DecodeBlock] for the
//     exact rules.
//
// # The line syntax
//
// Models without tool calls end their text with a block:
//
//	Done, you will hear from me.
//
//	<MIMIKIT:actions>
//	@create_task prompt="Read the paper" title="Paper" profile="standard" priority="7"
//	</MIMIKIT:actions>
//
// An action begins with @ and its name at the start of a line, and has
// key="value" pairs with white space between them, line breaks included. In the
// quotes \n, \r, \t, \" and \\ mean what they mean in JSON; every other
// backslash stands for itself, and so does a real line break. What a quoted
// value means is decided by the field's schema: where text is allowed it is text
// as it stands; anywhere else it is parsed as JSON, so that priority="7" is a
// number and options="[\"a\",\"b\"]" a list. A value without quotes must be JSON
// that is no text: priority=7, flag=true, options=["a","b"].
package action
