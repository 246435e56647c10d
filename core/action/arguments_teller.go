package action

// Digest hands over what inputs and results come down to.
type Digest struct {
	Summary string `json:"summary" max:"8000" about:"who wants what, with names, numbers, paths and times; in the language of the newest input"`
}

// Check refuses a summary of nothing.
func (a Digest) Check() error { return notBlank("summary", a.Summary) }

// The teller's ways to hand over a digest; the two are one under two names.
var (
	DigestContext = Spec[Digest]{
		Name: "digest_context", Kind: End, Agents: []string{TellerDigest},
		Description: "Hands the summary of what is new to the thinker.",
		Examples:    []string{`@digest_context summary="Ann wants the staging cache restarted."`},
	}
	HandoffContext = Spec[Digest]{
		Name: "handoff_context", Kind: End, Agents: []string{TellerDigest},
		Description: "Another name of digest_context.",
	}
)
