package action

// FileRead reads a part of a file.
type FileRead struct {
	Path      string `json:"path" max:"1000" about:"from the workspace's root"`
	StartLine int    `json:"start_line,omitempty" min:"1" default:"1"`
	LineCount int    `json:"line_count,omitempty" min:"1" max:"500" default:"100"`
}

// FileSearch looks for text in files.
type FileSearch struct {
	Query string `json:"query" max:"500" about:"text to find, or a regular expression (RE2) where regex is true"`
	Path  string `json:"path,omitempty" max:"1000" default:"." about:"folder or file to search"`
	Glob  string `json:"glob,omitempty" max:"200" about:"only files like this, such as **/*.go"`
	Regex bool   `json:"regex,omitempty"`
	Limit int    `json:"limit,omitempty" min:"1" max:"200" default:"50" about:"at most so many hits"`
}

// FileWrite makes or replaces a file.
type FileWrite struct {
	Path    string `json:"path" max:"1000" about:"from the workspace's root; folders are made"`
	Content string `json:"content" min:"0" about:"the whole new content"`
}

// FileEdit replaces a text in a file.
type FileEdit struct {
	Path       string `json:"path" max:"1000"`
	OldText    string `json:"old_text" about:"as it stands in the file, with its white space; must be there once"`
	NewText    string `json:"new_text" min:"0"`
	ReplaceAll bool   `json:"replace_all,omitempty" about:"replace every place where it stands"`
}

// Check refuses an edit that changes nothing.
func (a FileEdit) Check() error {
	if a.OldText == a.NewText {
		return Mistakef("new_text: it is the same as old_text")
	}
	return nil
}

// FilePatch applies a patch to files.
type FilePatch struct {
	Patch string `json:"patch" about:"a unified diff with paths from the workspace's root"`
}

// Command runs in a shell.
type Command struct {
	Command string `json:"command" max:"16000"`
	Workdir string `json:"workdir,omitempty" max:"1000" default:"." about:"folder to run it in"`
	Timeout int    `json:"timeout,omitempty" min:"1" max:"3600" default:"60" about:"seconds"`
}

// Check refuses a command of white space.
func (a Command) Check() error { return notBlank("command", a.Command) }

// Fetch reads a web page.
type Fetch struct {
	URL string `json:"url" max:"4000" about:"http or https"`
}

// Progress tells how far a task is.
type Progress struct {
	Message string `json:"message" max:"1000" about:"one sentence for the person"`
	Percent *int   `json:"percent,omitempty" min:"0" max:"100"`
}

// Check refuses a message of white space.
func (a Progress) Check() error { return notBlank("message", a.Message) }

// Response is a task's result.
type Response struct {
	Output     string `json:"output" about:"the result, for the person, in Markdown"`
	ResultType string `json:"resultType,omitempty" enum:"text,code_change,analysis,summary" default:"text"`
}

// Check refuses a result of white space.
func (a Response) Check() error { return notBlank("output", a.Output) }

var works = []string{WorkerStandard}

// What a standard worker may do, besides the tools of MCP servers.
var (
	ReadFile = Spec[FileRead]{
		Name: "read_file", Kind: Lookup, Agents: works,
		Description: "Reads lines of a text file in the workspace.",
		Examples:    []string{`@read_file path="src/main.go" start_line="101" line_count="200"`},
	}
	SearchFiles = Spec[FileSearch]{
		Name: "search_files", Kind: Lookup, Agents: works,
		Description: "Finds text in the files of the workspace; gives file, line number and line.",
	}
	WriteFile = Spec[FileWrite]{
		Name: "write_file", Kind: Lookup, Agents: works,
		Description: "Writes a whole file, replacing what was there.",
		Examples:    []string{`@write_file path="notes/plan.md" content="# Plan\n\n1. Read \"a.txt\"\n"`},
	}
	EditFile = Spec[FileEdit]{
		Name: "edit_file", Kind: Lookup, Agents: works,
		Description: "Replaces one text in a file by another.",
	}
	PatchFile = Spec[FilePatch]{
		Name: "patch_file", Kind: Lookup, Agents: works,
		Description: "Applies a unified diff to files, all of it or nothing.",
	}
	ExecShell = Spec[Command]{
		Name: "exec_shell", Kind: Lookup, Agents: works,
		Description: "Runs a command in the sandbox, in the workspace; gives its exit code and output.",
	}
	FetchURL = Spec[Fetch]{
		Name: "fetch_url", Kind: Lookup, Agents: works,
		Description: "Fetches a public web page as Markdown.",
	}
	ReportProgress = Spec[Progress]{
		Name: "report_progress", Kind: Lookup, Agents: works,
		Description: "Tells the person how far the task is.",
	}
	Respond = Spec[Response]{
		Name: "respond", Kind: End, Agents: works,
		Description: "Ends the task with its result.",
		Examples:    []string{`@respond output="The library is at 1.8.2, from go.sum."`},
	}
)
