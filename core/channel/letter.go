package channel

// EntryFields spells an entry of a channel for a script of another package, which
// adds it to the stream itself. They are names and values as XADD takes them. Two
// values are left to the script, since only it knows them: the second element is
// "0", to be replaced by the conversation's stop number ([Keys.Stops]), and the
// last is empty, to be replaced by the JSON of the payload.
func EntryFields(e Entry) []string {
	return append([]string{fieldStop, "0"}, e.fields(nil)...)
}
