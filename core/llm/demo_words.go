package llm

import (
	"slices"
	"strings"
	"unicode"
)

// A language is one the demo model answers in.
type language int

const (
	english language = iota
	german
	chinese
	spanish
)

// words are one text in each language.
type words [4]string

// tells are words that only one of the languages uses, or nearly so.
var tells = map[language][]string{
	english: {"the", "is", "are", "what", "what's", "who", "how", "my", "you", "i", "hello", "hi", "hey", "thanks", "please", "can", "and", "of", "time", "think", "for", "help", "name", "remember",
		"it", "to", "find", "out", "why", "that", "this", "run", "file", "files", "every", "at", "when", "ask", "which", "then", "did", "about", "do", "write", "read", "search", "cancel", "stop"},
	german: {"ich", "du", "der", "die", "das", "ist", "und", "nicht", "wie", "wer", "wer", "bist", "mein", "heiße", "heisse", "hallo", "guten", "moin", "servus", "danke", "bitte", "kannst",
		"ein", "eine", "mir", "hilfe", "uhr", "spät", "denk", "denke", "nach", "sekunden", "habe", "gesagt", "sag", "fasse", "es", "dir", "dich", "mich", "dass", "wir", "den", "dem", "auf", "mit", "merk",
		"jeden", "alle", "morgen", "heute", "gestern", "aufgabe", "aufgaben", "finde", "heraus", "warum", "dann", "danach", "frag", "welche", "wenn", "oder", "datei", "dateien", "lies", "schreibe",
		"ersetze", "durch", "storniere", "brich", "ab", "erinnere", "falsch", "leider", "plane", "woran"},
	spanish: {"hola", "qué", "que", "cómo", "quién", "eres", "mi", "llamo", "gracias", "buenos", "buenas", "días", "por", "favor", "puedes", "el", "la", "los", "una", "cuánto", "hora", "ayuda", "piensa",
		"segundos", "dije", "nombre", "es", "cuál", "repite", "resume", "y", "en", "de", "del", "las", "con", "para", "cada", "un", "averigua", "investiga", "recuerda", "recuérdame", "cancela", "tarea", "tareas",
		"archivo", "archivos", "busca", "escribe", "descarga", "ejecuta", "reemplaza", "planifica", "planea", "lo", "luego", "cuando", "ayer", "sobre", "eso", "minutos", "respuesta", "tómate"},
}

// detect guesses the language of a text: cheap, from its letters and small
// words. A text that shows none, like "12*7", is taken to be in the language of
// what was said before, newest first, and in English when there was nothing.
func detect(text string, before []string) language {
	for _, s := range append([]string{text}, backward(before)...) {
		if lang, ok := guess(s); ok {
			return lang
		}
	}
	return english
}

func backward(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

func guess(text string) (language, bool) {
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			return chinese, true
		case strings.ContainsRune("äöüßÄÖÜ", r):
			return german, true
		case strings.ContainsRune("¿¡ñÑ", r):
			return spanish, true
		}
	}
	best, most := english, 0
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for _, lang := range []language{english, german, spanish} {
		n := 0
		for _, f := range fields {
			if slices.Contains(tells[lang], f) {
				n++
			}
		}
		if n > most {
			best, most = lang, n
		}
	}
	return best, most > 0
}

// What the demo model says. Verbs of fmt are filled in by the rules.
var (
	saysIntro = words{
		"I am Mimikit's demo model: no AI, just a handful of rules that run offline, so that you can try everything around a model before you connect one.",
		"Ich bin das Demo-Modell von Mimikit: keine KI, nur ein paar Regeln, die ohne Netz laufen, damit du alles rund um ein Modell ausprobieren kannst, bevor du eines anschließt.",
		"我是 Mimikit 的演示模型：不是人工智能，只是几条离线运行的规则，让你在接入真正的模型之前先试试其他一切。",
		"Soy el modelo de demostración de Mimikit: no soy una IA, solo unas cuantas reglas sin conexión, para que puedas probarlo todo antes de conectar un modelo de verdad.",
	}
	saysTryHelp = words{
		"Say `help` to see what you can try.", "Sag `hilfe`, dann zeige ich, was du ausprobieren kannst.",
		"输入“帮助”，看看可以试些什么。", "Escribe `ayuda` para ver qué puedes probar.",
	}
	saysHello      = words{"Hello%s!", "Hallo%s!", "你好%s！", "¡Hola%s!"}
	saysHelloAgain = words{"Good to see you again. What shall we try?", "Schön, dich wiederzusehen. Was probieren wir aus?", "又见面了。我们试点什么？", "Me alegra verte de nuevo. ¿Qué probamos?"}
	saysThanks     = words{"You are welcome!", "Gern geschehen!", "不客气！", "¡De nada!"}
	saysBye        = words{"Goodbye! I keep what was said here.", "Tschüss! Was hier gesagt wurde, bleibt erhalten.", "再见！这里说过的话都会保留。", "¡Hasta luego! Lo que se dijo aquí queda guardado."}
	saysFallback   = words{
		"You said: “%s”. A real model would have an answer; I am the demo model, no AI, and know only a few rules.",
		"Du hast gesagt: „%s“. Ein echtes Modell wüsste darauf eine Antwort; ich bin das Demo-Modell, keine KI, und kenne nur ein paar Regeln.",
		"你说：“%s”。真正的模型会有答案；我只是演示模型，不是人工智能，只懂几条规则。",
		"Has dicho: «%s». Un modelo de verdad sabría responder; yo soy el modelo de demostración, no una IA, y solo conozco unas pocas reglas.",
	}
	saysEmpty = words{"I got an empty message.", "Ich habe eine leere Nachricht bekommen.", "我收到了一条空消息。", "He recibido un mensaje vacío."}

	saysHelp = words{
		"This is the demo model, no AI. Things to try:\n" +
			"- `what is 12*7`, `what time is it`\n" +
			"- `my name is Ada`, and later `what's my name`; `what did I say`\n" +
			"- `echo hello`, `summarise: a few sentences of text`\n" +
			"- `think for 20 seconds`: while I think, run `kill -9` on the process and start it again; the answer still comes, once. Or stop me with `/stop`.\n" +
			"- several messages in a row: they are answered together\n" +
			"- in the terminal: `/help`, `/status`, `/stop`\n" +
			"- `how do I use a real model`",
		"Dies ist das Demo-Modell, keine KI. Zum Ausprobieren:\n" +
			"- `was ist 12*7`, `wie spät ist es`\n" +
			"- `ich heiße Ada`, und später `wie heiße ich`; `was habe ich gesagt`\n" +
			"- `wiederhole hallo`, `fasse zusammen: ein paar Sätze`\n" +
			"- `denk 20 Sekunden nach`: beende den Prozess inzwischen mit `kill -9` und starte ihn neu; die Antwort kommt trotzdem, genau einmal. Oder halte mich mit `/stop` an.\n" +
			"- mehrere Nachrichten hintereinander: sie werden zusammen beantwortet\n" +
			"- im Terminal: `/help`, `/status`, `/stop`\n" +
			"- `wie nutze ich ein echtes Modell`",
		"这是演示模型，不是人工智能。可以试试：\n" +
			"- `12*7 等于多少`、`现在几点`\n" +
			"- `我叫小明`，之后再问 `我叫什么`；`我说了什么`\n" +
			"- `重复 你好`、`总结：几句话`\n" +
			"- `想20秒`：在我思考时用 `kill -9` 结束进程再重新启动，答案仍会到达，而且只到一次。也可以用 `/stop` 让我停下。\n" +
			"- 连续发几条消息：会一起回答\n" +
			"- 在终端里：`/help`、`/status`、`/stop`\n" +
			"- `怎么使用真正的模型`",
		"Este es el modelo de demostración, no una IA. Puedes probar:\n" +
			"- `cuánto es 12*7`, `qué hora es`\n" +
			"- `me llamo Ada`, y luego `cómo me llamo`; `qué dije`\n" +
			"- `repite hola`, `resume: unas cuantas frases`\n" +
			"- `piensa 20 segundos`: mientras pienso, mata el proceso con `kill -9` y arráncalo otra vez; la respuesta llega igual, una sola vez. O párame con `/stop`.\n" +
			"- varios mensajes seguidos: se responden juntos\n" +
			"- en la terminal: `/help`, `/status`, `/stop`\n" +
			"- `cómo uso un modelo de verdad`",
	}
	saysSetup = words{
		"To talk to a real model, set `MIMIKIT_LLM_KEY`, and for any other OpenAI-compatible endpoint than OpenAI's `MIMIKIT_LLM_BASE_URL`, and `MIMIKIT_LLM_MODEL` to the model's name; then start me again. Or run Ollama on this machine: without a key it is found by itself. I step aside as soon as there is one.",
		"Für ein echtes Modell setze `MIMIKIT_LLM_KEY`, für einen anderen OpenAI-kompatiblen Dienst auch `MIMIKIT_LLM_BASE_URL`, und `MIMIKIT_LLM_MODEL` auf den Namen des Modells; dann starte mich neu. Oder lass Ollama auf diesem Rechner laufen: ohne Schlüssel wird es von selbst gefunden. Sobald eines da ist, trete ich zur Seite.",
		"要使用真正的模型，请设置 `MIMIKIT_LLM_KEY`；如果不是 OpenAI 而是其他兼容的服务，再设置 `MIMIKIT_LLM_BASE_URL`；用 `MIMIKIT_LLM_MODEL` 指定模型名称，然后重新启动。或者在本机运行 Ollama：没有密钥时会自动找到它。一旦有了真正的模型，我就让位。",
		"Para hablar con un modelo de verdad, define `MIMIKIT_LLM_KEY`; si el servicio compatible no es OpenAI, también `MIMIKIT_LLM_BASE_URL`; y `MIMIKIT_LLM_MODEL` con el nombre del modelo; luego arráncame de nuevo. O ejecuta Ollama en esta máquina: sin clave se encuentra solo. En cuanto haya uno, me aparto.",
	}

	saysName       = words{"Nice to meet you, %s. Ask me later what your name is.", "Freut mich, %s. Frag mich später, wie du heißt.", "很高兴认识你，%s。待会儿可以问我你叫什么。", "Encantado, %s. Pregúntame luego cómo te llamas."}
	saysYourName   = words{"Your name is %s; you told me here.", "Du heißt %s; das hast du hier gesagt.", "你叫%s，这是你在这里告诉我的。", "Te llamas %s; me lo dijiste aquí."}
	saysNoName     = words{"You have not told me yet. Try `my name is …`.", "Das hast du mir noch nicht gesagt. Versuch `ich heiße …`.", "你还没有告诉我。试试“我叫……”。", "Todavía no me lo has dicho. Prueba con `me llamo …`."}
	saysShownName  = words{"You have not told me, but messages from you come in as “%s”.", "Gesagt hast du es nicht, aber deine Nachrichten kommen als „%s“ an.", "你没有告诉我，不过你的消息署名是“%s”。", "No me lo has dicho, pero tus mensajes llegan como «%s»."}
	saysYouSaid    = words{"You said:\n%s", "Du hast gesagt:\n%s", "你说过：\n%s", "Dijiste:\n%s"}
	saysISaid      = words{"I said:\n%s", "Ich habe gesagt:\n%s", "我说过：\n%s", "Dije:\n%s"}
	saysNothing    = words{"Nothing yet in this conversation.", "In diesem Gespräch noch nichts.", "这次对话里还没有。", "Todavía nada en esta conversación."}
	saysSum        = words{"%s = %s", "%s = %s", "%s = %s", "%s = %s"}
	saysBadSum     = words{"I cannot work out %s: %s.", "%s kann ich nicht ausrechnen: %s.", "我算不出 %s：%s。", "No puedo calcular %s: %s."}
	saysZero       = words{"it divides by zero", "es teilt durch null", "除数为零", "divide por cero"}
	saysTooBig     = words{"the number gets too large", "die Zahl wird zu groß", "数字太大", "el número es demasiado grande"}
	saysTime       = words{"It is %s on %s, %s, by this machine's clock.", "Es ist %s, %s, %s, nach der Uhr dieses Rechners.", "现在是 %s，%s，%s（以本机时钟为准）。", "Son las %s del %s, %s, según el reloj de esta máquina."}
	saysSummary    = words{"In short: %s (%d words, %d sentences; the first stands for all, I only count.)", "Kurz: %s (%d Wörter, %d Sätze; der erste steht für alle, ich zähle nur.)", "简而言之：%s（%d 个字词，%d 句；我只会取第一句。）", "En resumen: %s (%d palabras, %d frases; la primera vale por todas, yo solo cuento.)"}
	saysThought    = words{"I took %s to think, as you asked, and here I am. Had you stopped me with `/stop`, you would have heard so; had you killed me with `kill -9`, this answer would still have come, once.", "Ich habe %s nachgedacht, wie gewünscht, und da bin ich. Mit `/stop` hättest du mich angehalten; nach einem `kill -9` wäre diese Antwort trotzdem gekommen, genau einmal.", "按你的要求，我想了 %s，回来了。如果你用 `/stop` 叫停，我会告诉你；如果用 `kill -9` 结束我，这个答案仍会到达，而且只到一次。", "He pensado %s, como pediste, y aquí estoy. Con `/stop` me habrías parado; con `kill -9` esta respuesta habría llegado igual, una sola vez."}
	saysThoughtCut = words{" (More than that I do not take.)", " (Länger denke ich nicht nach.)", "（最多只想这么久。）", " (Más no pienso.)"}
	saysResult     = words{"Task “%s”: %s", "Aufgabe „%s“: %s", "任务“%s”：%s", "Tarea «%s»: %s"}
)

var weekdays = [4][7]string{
	{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	{"Sonntag", "Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag"},
	{"星期日", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六"},
	{"domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"},
}
