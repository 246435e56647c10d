package llm

import "strings"

// countings ask for the lines of files of a kind, named by its language or by the
// ending of their names.
var countings = lazily(`(?i)count (?:all )?(?:the )?lines (?:of|in) (?:all |every |each |the )*\.?([a-z+#]{1,12}) files?|` +
	`zähle? (?:die )?zeilen (?:in |von )?(?:aller |allen |jeder |der )*\.?([a-z+#]{1,12})[- ]dateien|` +
	`(?:统计|数)(?:一下)?(?:所有|每个)?\s*\.?([a-z+#]{1,12})\s*文件的?行数|` +
	`cuenta las líneas de (?:todos |cada )?(?:los )?(?:archivos|ficheros) (?:de )?\.?([a-z+#]{1,12})`)

// suffixes are the endings of files in languages whose name is another.
var suffixes = map[string]string{
	"golang": "go", "python": "py", "markdown": "md", "text": "txt", "javascript": "js", "typescript": "ts", "rust": "rs",
	"ruby": "rb", "shell": "sh", "bash": "sh", "yml": "yaml", "c++": "cpp", "c#": "cs",
}

// suffixOf is the ending of names that a kind of file has. What could mean
// something to a shell never gets through.
func suffixOf(kind string) string {
	kind = strings.ToLower(kind)
	if s := suffixes[kind]; s != "" {
		return s
	}
	return strings.Trim(kind, "+#")
}
