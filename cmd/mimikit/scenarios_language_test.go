package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// littleWords are those that no text of a few sentences can do without. A chat's
// answers are too short for what detects languages by the shares of letters.
var littleWords = map[string]map[string]bool{
	"en": setOf("the is are was and or not to of in on for with it this that you your i i'll i've we can will have has from at as be by an if so me no done thanks what which who there them they too all its his her but how when where why get got still"),
	"de": setOf("der die das ist sind war und oder nicht zu von im auf für mit es dies dass du ihr sie ich wir kann wird habe hat aus bei als ein eine einen keine wenn den dem noch gern gerne bitte danke was welche wer schon um uhr"),
	"es": setOf("el la los las es son fue y o no a de en para con lo esto que tú usted yo puedo puede he ha del al un una si gracias qué cuál hay está su como más pero se te me por"),
	"fr": setOf("le la les est sont et ou pas à de en pour avec ce cela que vous tu je nous peut ai a du au un une si merci quoi quel il elle bonjour des ne"),
}

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

var (
	verbatim = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|https?://\\S+|\"[^\"\n]*\"|“[^”\n]*”|„[^“\n]*“|«[^»\n]*»|[\\w.-]+@[\\w.-]+")
	wordlike = regexp.MustCompile(`[\p{L}']+`)
)

// languageOf says what language a text is in, code, links and quotations aside;
// "" where it cannot be told.
func languageOf(text string) string {
	text = verbatim.ReplaceAllString(text, " ")
	script := map[string]int{}
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			script["ja"] += 3
		case unicode.Is(unicode.Han, r):
			script["zh"] += 3 // a character is about a word's worth
		case unicode.Is(unicode.Arabic, r):
			script["ar"]++
		case unicode.Is(unicode.Hangul, r):
			script["ko"] += 3
		case unicode.Is(unicode.Cyrillic, r):
			script["ru"]++
		case unicode.IsLetter(r):
			script["latin"]++
		}
	}
	if script["ja"]*5 > script["zh"] { // no Japanese sentence is without kana, no Chinese one with
		script["ja"] += script["zh"]
		script["zh"] = 0
	}
	best := ""
	for _, s := range []string{"latin", "ja", "zh", "ar", "ko", "ru"} {
		if script[s] > script[best] {
			best = s
		}
	}
	if best != "latin" {
		return best
	}
	words := wordlike.FindAllString(strings.ToLower(text), -1)
	best, most, again := "", 0, false
	for _, l := range []string{"en", "de", "es", "fr"} {
		n := 0
		for _, w := range words {
			if littleWords[l][w] {
				n++
			}
		}
		if n == most {
			again = true
		}
		if n > most {
			best, most, again = l, n, false
		}
	}
	if again || most == 0 {
		return ""
	}
	return best
}

// sentences are the parts of a text that can be in languages of their own.
func sentences(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n.!?。！？؟", r) })
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Redis listens on 6379 unless it is configured otherwise.":      "en",
		"Redis lauscht auf 6379, wenn nichts anderes eingestellt ist.":  "de",
		"Puedes cambiar el puerto en la configuración.":                 "es",
		"Vous pouvez changer le port dans la configuration.":            "fr",
		"Redis 默认使用 6379 端口。":                                           "zh",
		"デフォルトのポートは 6379 です。設定で変更できます。":                                 "ja",
		"المنفذ الافتراضي هو 6379.":                                     "ar",
		"По умолчанию порт 6379.":                                       "ru",
		"기본 포트는 6379입니다.":                                               "ko",
		"Gern.":                                                         "de",
		"Use `git commit --amend` and force-push the branch to it.":     "en",
		"„The port is already in use“ heißt, dass der Port belegt ist.": "de",
		"6379":   "",
		"":       "",
		"Redis.": "",
	} {
		if got := languageOf(text); got != want {
			t.Errorf("%q is taken for %q; want %q", text, got, want)
		}
	}
}
