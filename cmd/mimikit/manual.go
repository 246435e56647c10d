package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"mimikit/config"
)

// A manPage is what the help of a command says besides what its flags and arguments
// tell by themselves.
type manPage struct {
	what     string   // what it does, where the command itself does not tell more than a line
	examples []string // where the command itself has none
	exits    []string // further exit codes, or what the usual ones mean here
	env      []string // further variables of the environment that matter
	see      string   // commands that have to do with it, by commas
}

// usualExits are those of every command.
var usualExits = []string{
	"0    it was done",
	"1    it could not be done, or was refused; standard error says why",
	"2    it was called wrongly",
}

var usualEnv = []string{
	config.EnvFile + "   the file with the settings, where --config names none",
	"MIMIKIT_…        any setting; 'mimikit config keys' lists them",
}

const confirming = "1    also while a confirmation is missing: it was said what would be done"

// manual is by the command's path; "" is the program itself.
var manual = map[string]manPage{
	"": {
		examples: []string{"mimikit", "mimikit init", "mimikit serve", "mimikit tasks --status running", "mimikit doctor"},
		see:      "chat, init, serve, doctor, completion",
	},
	"chat": {
		what:     "What is typed is said to the bot; a line that begins with a slash is a command, and /help lists them. Where standard input is no terminal, each line of it is a message, and the answers are printed to standard output.",
		examples: []string{"mimikit", "mimikit chat --once 'what is 17 * 23?'", "mimikit chat --talk garden --as Ann"},
		exits:    []string{"1    also when no answer came in time, or a message was refused"},
		see:      "serve, status, tasks",
	},
	"init": {
		what:     "Asks for a model, for Slack and Discord, and where state is kept; tests what it is told, and writes a file that 'mimikit config check' accepts. Nothing is overwritten unless that is confirmed.",
		examples: []string{"mimikit init", "mimikit init --help"},
		see:      "doctor, config check, slack manifest, discord invite",
	},
	"serve": {
		what:     "Runs until SIGTERM or SIGINT. Then it takes nothing new, finishes or hands back what it has, and exits with 0 within a bound. Any number of nodes may run on one Redis; with the embedded one, one node a machine. The log goes to standard error.",
		examples: []string{"mimikit serve", "mimikit serve --config /etc/mimikit/config.yaml"},
		exits:    []string{"0    it was stopped and has left nothing behind"},
		see:      "ready, doctor, status, pause",
	},
	"tasks":     {see: "task, cancel, retry, triggers"},
	"task":      {exits: []string{"0    with --follow: the task succeeded", "130  with --follow: interrupted; the task goes on"}, see: "tasks, cancel, retry, usage"},
	"cancel":    {exits: []string{confirming}, see: "tasks, task, retry"},
	"retry":     {examples: []string{"mimikit retry t1m7z06qfa"}, see: "tasks, task, cancel"},
	"triggers":  {see: "trigger, tasks"},
	"trigger":   {see: "triggers, task"},
	"questions": {what: "Lists open questions, the newest first: what was asked, which answers there are, of whom, and until when.", examples: []string{"mimikit questions", "mimikit questions mine --json"}, see: "answer, task"},
	"answer":    {see: "questions"},
	"status": {
		what:     "Shows the nodes that live, how many partitions have an owner, what waits and for how long, tasks by status, how the models are that this process asked, what was given up, and what is paused.",
		examples: []string{"mimikit status", "mimikit status --json"},
		see:      "streams, dead list, pause, doctor, ready",
	},
	"usage":    {examples: []string{"mimikit usage", "mimikit usage user -n 50", "mimikit usage task t1m7z06qfa"}, see: "budget, report"},
	"budget":   {see: "usage"},
	"memory":   {see: "status"},
	"feedback": {examples: []string{"mimikit feedback", "mimikit feedback worker_error high -n 50"}, see: "report, dead list"},
	"report":   {examples: []string{"mimikit report"}, see: "feedback, usage"},
	"why":      {examples: []string{"mimikit why https://acme.slack.com/archives/C024/p1763692800000100", "mimikit why https://discord.com/channels/80351/80352/80353", "mimikit why k7s3m2nqv4xw5yzabcde --json"}, see: "status, streams, dead list"},
	"audit":    {examples: []string{"mimikit audit", "mimikit audit cancel --by U024BE7LH --since 7d", "mimikit audit --refused -n 200 --json"}, see: "dead list, pause, budget"},
	"pause": {
		what: "Nothing new is taken up on any node, until 'mimikit resume', over restarts too. What people write is kept; they are told so once in each conversation, and are answered afterwards. What is under way goes on to its end. " +
			"Tasks that wait are not begun. Triggers do not fire; one that comes due meanwhile fires once afterwards. Without --in it holds everywhere, in terminals and Discord's direct messages too. Every node knows within a second.",
		examples: []string{"mimikit pause", "mimikit pause we move house, back at six", "mimikit pause --in slack/T024BE7LH budget is spent"},
		see:      "resume, status, serve",
	},
	"resume": {
		what:     "What was kept is taken up within a second. Triggers that came due fire within half a minute, and tasks that waited begin within a minute.",
		examples: []string{"mimikit resume", "mimikit resume --in slack/T024BE7LH"},
		see:      "pause, status",
	},
	"streams": {
		what:     "The channels are what joins the loops of the program: an entry that waits there is a message, a result or a reply on its way.",
		examples: []string{"mimikit streams", "mimikit streams --partitions"},
		see:      "status, why, dead list",
	},
	"dead list":   {what: "An entry that cannot be read, or whose step failed too often, is given up, and who asked is told. It is kept here with the reason until it is replayed or dropped.", examples: []string{"mimikit dead", "mimikit dead list teller-reply -n 5 --data"}, see: "dead replay, dead drop, why"},
	"dead replay": {what: "The entry goes through the channel anew, behind what waits there. To replay all takes --yes.", examples: []string{"mimikit dead replay 11/1763692800000-0", "mimikit dead replay all --yes"}, exits: []string{confirming}, see: "dead list, dead drop"},
	"dead drop":   {what: "What is dropped cannot be brought back. To drop all takes --yes.", examples: []string{"mimikit dead drop 11/1763692800000-0", "mimikit dead drop all --yes"}, exits: []string{confirming}, see: "dead list, dead replay"},
	"slack manifest": {
		what:     "Paste it under https://api.slack.com/apps, Create New App, From a manifest. It asks for no more than the bot uses.",
		examples: []string{"mimikit slack manifest", "mimikit slack manifest --url https://bot.example.org/slack/events --name Mimi"},
		see:      "init, doctor",
	},
	"discord invite": {
		what:     "Open the link in a browser and choose a server of which you are an admin. It asks for no more than the bot uses.",
		examples: []string{"mimikit discord invite", "mimikit discord invite --app 80351110224678912"},
		env:      []string{"MIMIKIT_DISCORD_TOKEN   with it, Discord is asked for the application's id"},
		see:      "init, doctor",
	},
	"ready": {
		what:     "For health checks of containers and load balancers. It prints what the node's /readyz says; a line below tells when the bot is paused, which is no reason to send it no traffic.",
		examples: []string{"mimikit ready", "mimikit ready --timeout 1s"},
		exits:    []string{"0    the node is ready", "1    it is not, or does not answer"},
		see:      "serve, doctor, status",
	},
	"doctor": {
		what:     "Tests settings, Redis, each model, Slack, Discord, the sandbox, files, agents and servers of tools, in this order; it changes nothing. ✓ is well, ! is worth knowing, ✗ must be mended.",
		examples: []string{"mimikit doctor", "mimikit doctor --timeout 5s"},
		exits:    []string{"0    nothing keeps the bot from working", "1    something does"},
		see:      "init, config check, ready",
	},
	"prompts show":  {what: "Shows the prompt of an agent as a model would be given it, with a small example conversation, or one file of it as it is.", examples: []string{"mimikit prompts show --help"}, see: "prompts check"},
	"prompts check": {what: "Files in prompts.dir stand in place of the built-in ones of the same name. What an override leaves out of the text that it replaces is said, so that nothing gets lost unseen.", examples: []string{"mimikit prompts check"}, see: "prompts show, config check"},
	"config check":  {what: "Reads the settings as 'mimikit serve' would and says all that is wrong at once.", examples: []string{"mimikit config check", "mimikit config check --config new.yaml"}, exits: []string{"1    something does not hold; each is named, with what is allowed"}, see: "config print, config keys, doctor"},
	"config print":  {what: "Prints YAML that can be used as a settings file.", examples: []string{"mimikit config print"}, see: "config check, config keys"},
	"config keys":   {what: "A setting is given in the file, or as an environment variable, which wins.", examples: []string{"mimikit config keys"}, see: "config print, config check"},
	"completion":    {examples: []string{"mimikit completion bash", "mimikit completion fish"}, see: "tasks, task"},
	"bench messages": {
		what: "Runs nodes on a Redis of its own in a directory of its own and sends messages through; nothing of the deployment is touched.", examples: []string{"mimikit bench"}, see: "bench tasks, chaos messages",
	},
	"bench tasks": {what: "Runs a queue and workers on a Redis of their own; nothing of the deployment is touched.", examples: []string{"mimikit bench tasks"}, see: "bench messages, chaos tasks"},
	"chaos messages": {
		what:     "Runs nodes on a Redis of their own, kills, pauses and cuts them off at random, and judges what came out. Nothing of the deployment is touched.",
		examples: []string{"mimikit chaos"}, exits: []string{"1    something was lost, doubled or out of order"}, see: "chaos tasks, bench messages",
	},
	"chaos tasks": {what: "The same for background tasks.", examples: []string{"mimikit chaos tasks"}, exits: []string{"1    a task ended twice, not at all, or wrongly"}, see: "chaos messages, bench tasks"},
}

// helpWidth is how wide help is written.
const helpWidth = 80

// printHelp prints the help of a command: what it does, arguments and flags, examples,
// exit codes, environment, and what to see also.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	path := ""
	if n := ctx.Selected(); n != nil {
		path = strings.TrimPrefix(n.FullPath(), "mimikit ")
	}
	page, known := manual[path]
	detail := ""
	if n := ctx.Selected(); n != nil {
		if n.Detail == "" {
			n.Detail = page.what
		}
		detail = n.Detail
	}
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	if !known {
		return nil // a group of commands, which lists them
	}
	return page.print(ctx.Stdout, detail)
}

func (p manPage) print(w io.Writer, detail string) error {
	var b strings.Builder
	if !strings.Contains(detail, "Examples:") {
		section(&b, "Examples", p.examples)
	}
	exits := map[string]string{}
	for _, e := range slices.Concat(usualExits, p.exits) {
		code, what, _ := strings.Cut(e, " ")
		what = strings.TrimSpace(what)
		if had := exits[code]; had != "" && strings.HasPrefix(what, "also ") {
			what = had + "; " + what
		}
		exits[code] = what
	}
	b.WriteString("\nExit codes:\n")
	for _, code := range slices.Sorted(maps.Keys(exits)) {
		for i, line := range wrapped(exits[code], helpWidth-7) {
			if i > 0 {
				code = ""
			}
			fmt.Fprintf(&b, "  %-4s %s\n", code, line)
		}
	}
	section(&b, "Environment", slices.Concat(usualEnv, p.env))
	var see []string
	for name := range strings.SplitSeq(p.see, ", ") {
		see = append(see, "mimikit "+name)
	}
	b.WriteString("\nSee also:\n")
	for _, line := range wrapped(strings.Join(see, ", "), helpWidth-2) {
		b.WriteString("  " + line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n" + title + ":\n")
	for _, l := range lines {
		b.WriteString("  " + l + "\n")
	}
}

// wrapped breaks a text into lines of at most so many characters.
func wrapped(text string, width int) []string {
	var out []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(w)) > width {
			out, line = append(out, line), ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(out, line)
}
