// Command mimikit is the whole program: a node, a terminal to talk to it, and
// the tools to look after it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"mimikit/config"
)

// version is set by the build.
var version = "dev"

// cli is what can be asked of the program. Each command is a type with a Run
// method in a file of its own.
type cli struct {
	Config  string           `short:"c" placeholder:"FILE" help:"Settings, as YAML. Without it ${config_env} names the file, or the defaults hold. Every setting also has an environment variable; see 'mimikit config print'."`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Chat       chatCmd       `cmd:"" default:"withargs" help:"Talk to the bot in this terminal (the default). Runs a node, or joins the one that runs."`
	Init       initCmd       `cmd:"" help:"Ask what the bot needs to know, and write settings that hold."`
	Serve      serveCmd      `cmd:"" help:"Run a node without a terminal."`
	Tasks      tasksCmd      `cmd:"" help:"List background tasks."`
	Task       taskCmd       `cmd:"" help:"Show one task, or follow it to its end."`
	Cancel     cancelCmd     `cmd:"" help:"Cancel tasks and what they started."`
	Retry      retryCmd      `cmd:"" help:"Start a task that failed or was canceled again."`
	Triggers   triggersCmd   `cmd:"" help:"List what starts tasks later, with the next three times."`
	Trigger    triggerCmd    `cmd:"" help:"Show one trigger, or pause, resume, run or remove it."`
	Questions  questionsCmd  `cmd:"" help:"List what the bot waits to be told."`
	Answer     answerCmd     `cmd:"" help:"Answer a question."`
	Status     statusCmd     `cmd:"" help:"Show how the bot is doing: nodes, what waits, tasks."`
	Usage      usageCmd      `cmd:"" help:"Show what models were used for, by whom and when."`
	Budget     budgetCmd     `cmd:"" help:"Show or set what may be spent in a day."`
	Memory     memoryCmd     `cmd:"" help:"List what is remembered, or have it forgotten."`
	Feedback   feedbackCmd   `cmd:"" help:"List what failed and what people said about the bot."`
	Report     reportCmd     `cmd:"" help:"Sum a day up, as each day's report does."`
	Why        whyCmd        `cmd:"" help:"Tell where a message is now, and how long each hop took."`
	Audit      auditCmd      `cmd:"" help:"List who changed what."`
	Pause      pauseCmd      `cmd:"" help:"Have the bot take up nothing new, until it is resumed."`
	Resume     resumeCmd     `cmd:"" help:"Have a bot that was paused go on."`
	Streams    streamsCmd    `cmd:"" help:"Show the channels: what waits, what is pending, who owns which partition."`
	Dead       deadCmd       `cmd:"" help:"List, replay or drop dead letters: what was given up."`
	Slack      slackCmds     `cmd:"" help:"What Slack must be told of the bot."`
	Discord    discordCmds   `cmd:"" help:"What Discord must be told of the bot."`
	Ready      readyCmd      `cmd:"" help:"Ask the node of this machine whether it is ready; for health checks."`
	Doctor     doctorCmd     `cmd:"" help:"Test all that the bot needs, and say how to mend what is wrong."`
	Prompts    promptsCmd    `cmd:"" help:"Show what models are given, or check the files that shadow it."`
	Settings   settingsCmd   `cmd:"" name:"config" help:"Check or print the settings."`
	Completion completionCmd `cmd:"" help:"Print what has your shell complete commands and ids."`
	Bench      benchCmds     `cmd:"" help:"Measure the pipeline, or the queue of tasks."`
	Chaos      chaosCmds     `cmd:"" help:"Kill, pause and cut off nodes and Redis, and check that nothing is lost or doubled."`
	ChaosNode  chaosNodeCmd  `cmd:"" hidden:"" help:"A node of a chaos run."`
	ChaosTask  chaosTaskCmd  `cmd:"" hidden:"" name:"chaos-task-node" help:"A node of a chaos run of tasks."`
}

// streams are where a command reads and writes.
type streams struct {
	in       *os.File
	out, err io.Writer
}

func main() {
	if os.Getenv("GOGC") == "" {
		// The live heap is a few MiB, so the default would collect it many times
		// a second under load; four times of little is still little.
		debug.SetGCPercent(400)
	}
	hide()
	os.Exit(run(os.Args[1:], os.Environ(), streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main with what it needs given, and the exit code returned: 0 done,
// 1 failed, 2 called wrongly.
func run(args, environ []string, std streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	exit := -1
	parser, err := newParser(&c, std, func(code int) { exit = code }, kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(std.err, "mimikit:", err)
		return 2
	}
	if len(args) > 0 && args[0] == completeName {
		completing(ctx, parser, args[1:], environ, std.out)
		return 0
	}
	k, err := parser.Parse(args)
	if exit >= 0 {
		return exit // --help or --version
	}
	if err != nil {
		fmt.Fprintf(std.err, "mimikit: %v\nTry '%s --help'.\n", err, calledFor(err))
		return 2
	}
	s := &settings{file: c.Config, environ: environ}
	err = k.Run(&std, s)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		fmt.Fprintf(hush(std.err, s.loaded), "mimikit: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
		return 1
	}
}

// calledFor is the command that was called wrongly, as far as it is known.
func calledFor(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if n := wrong.Context.Selected(); n != nil && n.Name != "chat" { // which is meant where no command is named
			return n.FullPath()
		}
	}
	return "mimikit"
}

// newParser reads calls into c. exit is told when one is done with being read.
func newParser(c *cli, std streams, exit func(code int), more ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("mimikit"),
		kong.Description("A self-hosted AI teammate. Nothing lost, nothing doubled, ordered per conversation, on any number of nodes."),
		kong.Vars{"version": version, "config_env": config.EnvFile},
		kong.Writers(std.out, std.err),
		kong.Exit(exit),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
	}, more...)...)
}

// exitCode ends the program with a code after a command that has said already
// what was wrong.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// settings loads the configuration for the commands that need it.
type settings struct {
	file    string
	environ []string
	loaded  config.Config // for its secrets; none before it is loaded
}

func (s *settings) load() (config.Config, error) {
	cfg, err := config.Load(s.file, s.environ)
	s.loaded = cfg
	return cfg, err
}
