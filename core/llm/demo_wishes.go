package llm

import (
	"fmt"
	"strings"
	"time"
)

// What the demo model does for people in a talk. A sentence that a rule knows
// becomes a wish: calls, one after another or together, and words about what
// came of them. Only what a person says now can be one, from its beginning on:
// what somebody quotes, and what stands in histories, results and files, is
// never looked at.

// A wish says what to call next, given what came of its calls so far; when it
// calls nothing it says how it ended.
type wish func(done []demoOutcome) (next []demoCall, says string)

// A talk is one turn with people.
type talk struct {
	*demoPrompt
	now   time.Time
	parts []*talkPart
}

// A talkPart is what one input, or one result, is answered with.
type talkPart struct {
	ask  *ask // nil for a result
	wish wish // nil when there is nothing to do
	done []demoOutcome
}

// maxCalls bounds the calls of a round; the rest comes in the next.
const maxCalls = 8

// finders know wishes, the first that finds one counts.
var finders = []func(*talk, *ask, string) wish{
	(*talk).toRemember, (*talk).toPraise, (*talk).toList, (*talk).toSearch, (*talk).toLookBack,
	(*talk).toCancel, (*talk).toAsk, (*talk).toWatch, (*talk).toSchedule, (*talk).toDelegate, (*talk).toCreate,
	(*talk).toHearAnswer,
}

func (p *demoPrompt) talk(now time.Time) *talk {
	t := &talk{demoPrompt: p, now: now}
	for i := range p.results {
		t.parts = append(t.parts, &talkPart{wish: t.toTell(&p.results[i])})
	}
	for _, a := range p.asks() {
		t.parts = append(t.parts, &talkPart{ask: a, wish: t.find(a)})
		if takesBack().MatchString(a.lower) {
			for _, earlier := range t.parts[:len(t.parts)-1] {
				if earlier.ask != nil && earlier.ask.from == a.from && earlier.wish != nil {
					earlier.wish = says(saysDropped[a.lang])
				}
			}
		}
	}
	t.replay()
	return t
}

// find gives the wish that an input is, nil when it is none.
func (t *talk) find(a *ask) wish {
	text := a.wishText()
	if text == "" || !a.mayAsk() || mere().MatchString(text) && !letKnow().MatchString(text) {
		return nil
	}
	if _, thinks := a.thinkTime(); thinks {
		return nil
	}
	for _, f := range finders {
		if w := f(t, a, text); w != nil {
			return w
		}
	}
	return nil
}

// takes says whether an action that a wish takes is there, and notes it when it
// is not, for the answer.
func (t *talk) takes(a *ask, name string) bool {
	if t.offers(name) {
		return true
	}
	if a.missing == "" {
		a.missing = name
	}
	return false
}

// replay goes through the rounds of this turn again. The same prompt gives the
// same wishes, so what was called when needs no keeping.
func (t *talk) replay() {
	for _, round := range t.rounds {
		for i, c := range t.wanting(t.offers) {
			if i < len(round) && round[i].name == c.call.name {
				c.part.done = append(c.part.done, round[i])
			}
		}
	}
}

type wanted struct {
	part *talkPart
	call demoCall
}

// wanting gives the calls that come next, of those that are allowed.
func (t *talk) wanting(allowed func(name string) bool) []wanted {
	var all []wanted
	for _, p := range t.parts {
		if p.wish == nil {
			continue
		}
		next, _ := p.wish(p.done)
		for _, c := range next {
			if len(all) == maxCalls || !allowed(c.name) {
				break
			}
			all = append(all, wanted{p, c})
		}
	}
	return all
}

// calls are those to make now.
func (t *talk) calls() []demoCall {
	var calls []demoCall
	for _, w := range t.wanting(t.may) {
		calls = append(calls, w.call)
	}
	return calls
}

// outcome is what there is to say of a wish when nothing more can be called.
func (p *talkPart) outcome(lang language) string {
	next, text := p.wish(p.done)
	if len(next) > 0 {
		return fmt.Sprintf(saysNoRoom[lang], next[0].name)
	}
	return text
}

// says is a wish that is words alone.
func says(text string) wish {
	return func([]demoOutcome) ([]demoCall, string) { return nil, text }
}

// once is a wish of one call, with the words for its success.
func once(lang language, call demoCall, ok func(told string) string) wish {
	return func(done []demoOutcome) ([]demoCall, string) {
		switch {
		case len(done) == 0:
			return []demoCall{call}, ""
		case !done[0].ok:
			return nil, failed(lang, done[0])
		}
		return nil, ok(done[0].told())
	}
}

// failed says that a call failed, and why.
func failed(lang language, o demoOutcome) string {
	return fmt.Sprintf(saysFailed[lang], o.name, strings.TrimRight(o.reason(), "."))
}

// withWords adds what the program said of a success, in its own words.
func withWords(lang language, text, told string) string {
	if told == "" {
		return text
	}
	return text + fmt.Sprintf(saysProgram[lang], clip(strings.Join(strings.Fields(told), " "), 300))
}

var (
	// lead is what may stand before a wish without changing it.
	lead = lazily(`(?i)^(?:(?:please|could you|can you|would you|will you|i want you to|i need you to|i'd like you to|i would like you to|okay|ok|now|and|also|so|thanks|thank you|hey|mimikit|bot|` +
		`bitte|kannst du|könntest du|würdest du|ich möchte,? dass du|und|jetzt|danke|por favor|puedes|podrías|quiero que|y|ahora|gracias)(?:[\s,.!:]+)|(?:请你|请|麻烦你?|能不能|你能|帮我|给我|现在|谢谢)[\s,，。！]*)+`)
	tail = lazily(`(?i)(?:[\s.!?。！？,，]+|[\s,]+(?:please|bitte|por favor|thanks|danke|gracias)|吧|好吗|谢谢)+$`)

	// mere are texts about which something is said, or that are to be repeated.
	mere = lazily(`(?is)^(?:>|` + "```" + `|["“„«「]|(?:echo|repeat after me|repeat|say|wiederhole|sage?|repite|di)[:\s]|重复|复述|跟我说|` +
		`(?:summari[sz]e|sum up|tl;?dr|fass?e?(?: das| dies| folgendes)?(?: bitte)? zusammen|resumen|resume|总结一下|总结|概括)(?: (?:this|that|it|the following|esto|lo siguiente))?\s*(?:[:：\n]|$))`)

	// letKnow begins like an echo and is none.
	letKnow = lazily(`(?i)^sage? (?:mir|uns)\s`)

	takesBack = lazily(`^(?:no,? ?)?(?:(?:wait,? )?never ?mind(?: that)?|forget (?:it|that)|scratch that|(?:nein,? )?vergiss es|doch nicht|lass es|算了|不用了|别做了|d[ée]jalo|olv[íi]dalo)$`)
)

// wishText is the text without what stands before a wish and after it.
func (a *ask) wishText() string {
	text := straight.Replace(strings.TrimSpace(a.text))
	for {
		shorter := lead().ReplaceAllString(greeting().ReplaceAllString(text, ""), "")
		if shorter == text {
			break
		}
		text = shorter
	}
	if len(text) > 4000 {
		return ""
	}
	return tail().ReplaceAllString(text, "")
}

// toTell keeps the gist of a result that is long, and tells it.
func (t *talk) toTell(r *demoResult) wish {
	lang := detect("", append([]string{r.title}, userTexts(t.history)...))
	status := r.status
	if words, ok := statusWords[r.status]; ok {
		status = words[lang]
	}
	text := fmt.Sprintf(saysResult[lang], r.title, status)
	if r.text != "" {
		text += "\n" + clip(r.text, 3000)
	}
	if next, ok := nextWords[r.status]; ok {
		text += "\n" + next[lang]
	}
	if len(r.text) <= longResult || r.task == "" || !t.offers("summarize_task_result") {
		return says(text)
	}
	call := demoCall{"summarize_task_result", map[string]any{"task_id": r.task, "summary": shortResult(r.text, 600)}}
	return func(done []demoOutcome) ([]demoCall, string) {
		if len(done) == 0 {
			return []demoCall{call}, ""
		}
		return nil, text // whether it is kept short or whole is the same to those who wait
	}
}

// longResult is from where on, in bytes, a result is kept as its gist.
const longResult = 1000

// shortResult is the first sentence of a text and its last, and how long it is.
func shortResult(text string, most int) string {
	var all []string
	for _, s := range sentence().FindAllString(text, -1) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return clip(strings.TrimSpace(text), most)
	}
	short := clip(all[0], most/2)
	if len(all) > 1 {
		short += " … " + clip(all[len(all)-1], most/2)
	}
	return fmt.Sprintf("%s (beginning and end of %d words)", short, len(splitWords(text)))
}

// toHearAnswer takes note of the answer to a question, when it is no wish itself.
func (t *talk) toHearAnswer(a *ask, _ string) wish {
	if a.question == "" {
		return nil
	}
	return says(fmt.Sprintf(saysAnswered[a.lang], clip(strings.TrimSpace(a.text), 200)))
}
