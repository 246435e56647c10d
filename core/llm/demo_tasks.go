package llm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A demoTask is a line of a list of tasks and triggers.
type demoTask struct{ id, status, title string }

func (t demoTask) open() bool {
	return !slices.Contains([]string{"succeeded", "failed", "canceled", "cancelled", "done", "removed"}, t.status)
}

var (
	taskID    = lazily(`^[0-9_-]*[a-zA-Z][a-zA-Z_-]*[0-9][0-9a-zA-Z_-]*$|^[0-9]+[a-zA-Z][0-9a-zA-Z_-]{3,}$`)
	taskQuote = lazily(`"(?:[^"\\]|\\.)*"`)
	knownID   = lazily(`\b[a-z][0-9a-hjkmnp-tv-z]{20}\b`)
)

// readTasks reads lines such as
//
//	t1 running: The report
//	t01j8 pending standard "The report" created=2m_ago
//
// as task lists in prompts and answers have them. The title is in quotation
// marks, or behind the colon, or all that is left; other lines are passed over.
func readTasks(list string) []demoTask {
	var tasks []demoTask
	for line := range strings.Lines(list) {
		words := strings.Fields(strings.TrimLeft(line, " \t-*•"))
		if len(words) < 2 || !taskID().MatchString(strings.Trim(words[0], ":,`")) {
			continue
		}
		t := demoTask{id: strings.Trim(words[0], ":,`"), status: strings.ToLower(strings.TrimRight(words[1], ":,"))}
		rest := strings.Join(words[2:], " ")
		switch q := taskQuote().FindString(rest); {
		case q != "":
			if title, err := strconv.Unquote(q); err == nil {
				t.title = title
			}
		default:
			t.title = rest
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// commonWord are words that tell no task from another.
var commonWord = lazily(`(?i)^(?:the|a|an|my|our|that|this|it|its|task|tasks|trigger|job|reminder|one|please|now|running|current|on|of|to|with|for|and|about|is|has|have|been|` +
	`der|die|das|den|dem|mein|meine|meinen|diese|dieser|diesen|aufgabe|bitte|von|mit|über|ist|es|el|la|los|las|mi|tarea|esa|ese|eso|esta|este|esto|de|del|con|sobre|recordatorio|erinnerung|id)$`)

var (
	justThat = lazily(`(?i)^(?:(?:that|this|it|the|my|current|running|das|die|den|diese|laufende|eso|esa|ese|esto|la|el|mi|这个|那个|当前的?|正在进行的|它|这|那)?\s*(?:task|job|one|thing|work|trigger|reminder|aufgabe|arbeit|auftrag|erinnerung|tarea|trabajo|recordatorio|任务|工作|提醒)?|it|this|that|它|这个|那个)$`)
	allThat  = lazily(`(?i)^(?:all|everything|all (?:of )?(?:them|it|(?:the |my )?(?:tasks|triggers|jobs))|alles|alle(?: meine)?(?: aufgaben)?|todo|todas?(?: las| mis)?(?: tareas)?|全部(?:任务)?|所有(?:任务)?|一切)$`)
)

// which are the tasks that words mean, those that fit best.
func which(tasks []demoTask, words string) []demoTask {
	words = strings.TrimSpace(strings.Trim(words, "\"“”„«»「」'`"))
	for _, t := range tasks {
		if slices.Contains(strings.FieldsFunc(words, func(r rune) bool { return !inWord(r) && r != '-' && r != '_' }), t.id) {
			return []demoTask{t}
		}
	}
	var open []demoTask
	for _, t := range tasks {
		if t.open() {
			open = append(open, t)
		}
	}
	if allThat().MatchString(words) || justThat().MatchString(words) {
		return open
	}
	best, most := []demoTask(nil), 0
	for _, t := range open {
		switch n := alike(t.title, words); {
		case n > most:
			best, most = []demoTask{t}, n
		case n == most && n > 0:
			best = append(best, t)
		}
	}
	return best
}

// alike counts what a title has of words: words that are not commonWord, and of
// Chinese every two signs.
func alike(title, words string) int {
	title, n := strings.ToLower(title), 0
	for _, w := range strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !inWord(r) }) {
		if r, _ := utf8.DecodeRuneInString(w); unicode.Is(unicode.Han, r) {
			signs := []rune(w)
			for i := 0; i+1 < len(signs); i++ {
				if pair := string(signs[i : i+2]); pair != "任务" && pair != "提醒" && strings.Contains(title, pair) {
					n++
				}
			}
			continue
		}
		if !commonWord().MatchString(w) && utf8.RuneCountInString(w) > 1 && strings.Contains(title, strings.TrimSuffix(w, "s")) {
			n++
		}
	}
	return n
}

// listFirst finds tasks in the prompt, or in the answer to a look-up when the
// prompt has none. looked is how many of the outcomes were for the look-up.
func (t *talk) listFirst(words string, done []demoOutcome) (found []demoTask, look []demoCall, looked int) {
	found = which(t.tasks, words)
	if len(found) > 0 || !t.offers("list_tasks") {
		return found, nil, 0
	}
	if len(done) == 0 {
		return nil, []demoCall{{"list_tasks", map[string]any{"status": "active"}}}, 0
	}
	if done[0].name != "list_tasks" {
		return nil, nil, 0
	}
	return which(readTasks(done[0].text), words), nil, 1
}

var (
	cancels = lazily(`(?i)^(?:(?:cancel|stop|abort)\s+(.+)|(?:remove|end|kill|delete|drop)\s+((?:the |my |that |this )?(?:\S+ ){0,4}(?:tasks?|trigger|reminder|schedule|job)\b.*)|` +
		`(?:brich|breche)\s+(.+?)\s+ab|(?:stoppe?|beende|storniere|halte)\s+(.+?)(?: an)?|(.+?) (?:abbrechen|stoppen|beenden)|(?:取消|停止|终止|中止|停掉)\s*(.+)|(?:cancela|det[ée]n|anula|interrumpe)\s+(.+))$`)
	lists = lazily(`(?i)^(?:what are you (?:working on|doing|up to|busy with)|what(?:'s| is) (?:running|going on|scheduled|the status)|(?:list|show)(?: me)?(?: all)?(?: of)?(?: the| my| your)?(?: open| running| background| active)* (?:tasks?|triggers?|reminders?|jobs|schedules?)|` +
		`(?:which|what|any|how many) (?:tasks|triggers|reminders|jobs)\b.*|status(?: of .+| report)?|how(?:'s| is) (?:it|the .+) (?:going|coming along)|how far (?:are|is) .+|are you (?:done|finished|ready)(?: yet)?|` +
		`woran arbeitest du.*|was machst du(?: gerade| denn)*|was läuft(?: gerade)?|(?:zeige?|liste)(?: mir)?(?: alle| meine| die)* (?:aufgaben|tasks|trigger|erinnerungen)(?: auf)?|welche (?:aufgaben|tasks|trigger|erinnerungen).*|wie weit (?:bist|ist) .+|bist du (?:schon )?fertig|` +
		`你(?:现在|正)*在?(?:做|忙)(?:些)?什么(?:呢)?|(?:列出|显示|查看|看看)(?:我的|所有|全部|一下)*(?:任务|触发器|提醒)(?:列表)?|(?:现在)?有(?:哪些|什么)任务.*|任务(?:列表|进度|状态)|(?:进展|进度)(?:如何|怎么样)|做到哪.*|` +
		`en qué (?:estás trabajando|trabajas).*|qué (?:estás haciendo|haces)(?: ahora)?|(?:lista|muestra|muéstrame|enséñame)(?: mis| las| todas| los)* (?:tareas|recordatorios|disparadores)|qué tareas.*|cómo va(?: todo| .+)?)$`)
)

// toList tells the tasks and triggers of the conversation.
func (t *talk) toList(a *ask, text string) wish {
	if !lists().MatchString(text) && !lists().MatchString(strings.TrimLeft(text, "¿¡")) || !t.takes(a, "list_tasks") {
		return nil
	}
	return once(a.lang, demoCall{"list_tasks", map[string]any{}}, func(told string) string {
		tasks := readTasks(told)
		if len(tasks) < len(strings.FieldsFunc(told, func(r rune) bool { return r == '\n' })) || told == "" { // there is more than tasks in it
			if told == "" {
				told = saysNothing[a.lang]
			}
			return saysTasks[a.lang] + "\n" + clip(told, 2000)
		}
		var b strings.Builder
		for _, k := range tasks {
			status := k.status
			if words, ok := statusWords[status]; ok {
				status = words[a.lang]
			}
			fmt.Fprintf(&b, "\n- %s: %s (`%s`)", clip(k.title, 120), status, k.id)
		}
		return saysTasks[a.lang] + b.String()
	})
}

// toCancel cancels the task that is meant; when it may be one of several, it
// asks which, with sentences that will be understood as answers.
func (t *talk) toCancel(a *ask, text string) wish {
	m := cancels().FindStringSubmatch(text)
	if m == nil || !t.takes(a, "cancel_task") {
		return nil
	}
	words := strings.Join(m[1:], "")
	lang := a.lang
	return func(done []demoOutcome) ([]demoCall, string) {
		found, look, looked := t.listFirst(words, done)
		if look != nil {
			return look, ""
		}
		done = done[min(looked, len(done)):]
		if id := knownID().FindString(words); len(found) == 0 && id != "" {
			found = []demoTask{{id: id, title: id}}
		}
		if len(found) > 1 && !allThat().MatchString(words) {
			if !t.offers("ask_user") {
				return nil, fmt.Sprintf(saysWhich[lang], titles(found))
			}
			return once(lang, whichCall(lang, found), func(string) string { return saysAsked[lang] })(done)
		}
		if len(found) == 0 {
			return nil, fmt.Sprintf(saysNoTask[lang], clip(words, 100))
		}
		if len(done) < len(found) {
			var calls []demoCall
			for _, k := range found[len(done):] {
				calls = append(calls, demoCall{"cancel_task", map[string]any{"task_id": k.id}})
			}
			return calls, ""
		}
		var says []string
		for i, k := range found {
			if !done[i].ok {
				says = append(says, failed(lang, done[i]))
				continue
			}
			says = append(says, withWords(lang, fmt.Sprintf(saysCanceled[lang], k.title), done[i].told()))
		}
		return nil, strings.Join(says, "\n")
	}
}

// whichCall asks which task is to be canceled.
func whichCall(lang language, tasks []demoTask) demoCall {
	var options []string
	for _, k := range tasks[:min(len(tasks), 10)] {
		option := fmt.Sprintf(asksCancel[lang], clip(k.title, 40))
		if slices.Contains(options, option) || k.title == "" || len(which(tasks, k.title)) > 1 {
			option = fmt.Sprintf(asksCancel[lang], k.id)
		}
		options = append(options, option)
	}
	return demoCall{"ask_user", map[string]any{"question": asksWhich[lang], "options": options}}
}

func titles(tasks []demoTask) string {
	var all []string
	for _, k := range tasks {
		all = append(all, fmt.Sprintf("“%s” (`%s`)", clip(k.title, 60), k.id))
	}
	return strings.Join(all, ", ")
}
