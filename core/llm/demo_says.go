package llm

// What the demo model says of what it does. Verbs of fmt are filled in.
var (
	saysFailed        = words{"I could not do that: `%s` says: %s.", "Das konnte ich nicht: `%s` sagt: %s.", "没能做到：`%s` 说：%s。", "No he podido: `%s` dice: %s."}
	saysNoRoom        = words{"I could not do that in this turn any more (`%s`). Please ask me again.", "Das konnte ich in dieser Runde nicht mehr tun (`%s`). Bitte frag mich noch einmal.", "这一轮已经来不及做了（`%s`），请再说一次。", "Ya no he podido hacerlo en este turno (`%s`). Pídemelo otra vez, por favor."}
	saysNotOffered    = words{"That would take the action `%s`, which I do not have here.", "Dafür bräuchte ich die Aktion `%s`, und die habe ich hier nicht.", "这需要操作 `%s`，而这里没有提供。", "Para eso necesitaría la acción `%s`, que aquí no tengo."}
	saysProgram       = words{" (The program says: %s)", " (Das Programm sagt: %s)", "（程序说：%s）", " (El programa dice: %s)"}
	saysDropped       = words{"All right, I leave that.", "Gut, das lasse ich.", "好的，那件事就不做了。", "De acuerdo, eso lo dejo."}
	saysStarted       = words{"I have started a task: “%s”. What comes out of it is told here. Meanwhile you can ask what I am working on, or cancel it.", "Ich habe eine Aufgabe begonnen: „%s“. Was herauskommt, steht dann hier. Inzwischen kannst du fragen, woran ich arbeite, oder sie abbrechen.", "我已开始一个任务：“%s”。结果会发到这里。在此期间可以问我在做什么，也可以取消它。", "He empezado una tarea: «%s». Aquí contaré lo que salga. Mientras, puedes preguntar en qué trabajo o cancelarla."}
	saysStartedBefore = words{"That task is open already: “%s”.", "Diese Aufgabe läuft schon: „%s“.", "这个任务已经在进行：“%s”。", "Esa tarea ya está abierta: «%s»."}
	saysPlanning      = words{"I have handed that to the planner: “%s”. It breaks it into tasks, and what comes of them is told here.", "Das habe ich dem Planer gegeben: „%s“. Er zerlegt es in Aufgaben; was daraus wird, steht dann hier.", "已交给规划器：“%s”。它会拆成若干任务，结果会发到这里。", "Se lo he pasado al planificador: «%s». Lo divide en tareas y aquí contaré lo que salga."}
	saysScheduled     = words{"I have set up “%s”: %s.", "Eingerichtet: „%s“, und zwar %s.", "已安排“%s”：%s。", "He programado «%s»: %s."}
	saysPast          = words{"That time is over (%s), so I set up nothing.", "Diese Zeit ist schon vorbei (%s), also habe ich nichts eingerichtet.", "那个时间已经过了（%s），所以没有安排。", "Esa hora ya ha pasado (%s), así que no he programado nada."}
	saysWhen          = words{"When shall that be? Say it with a time, such as `remind me in 5 minutes to stretch`.", "Wann soll das sein? Sag es mit einer Zeit, etwa `erinnere mich in 5 Minuten an den Tee`.", "什么时候？请带上时间，比如`5分钟后提醒我喝水`。", "¿Cuándo? Dilo con una hora, por ejemplo `recuérdame en 5 minutos beber agua`."}
	saysCanceled      = words{"I have asked for this to be canceled: “%s”.", "Das wird abgebrochen: „%s“.", "已要求取消：“%s”。", "He pedido cancelar esto: «%s»."}
	saysNoTask        = words{"I find no open task or trigger here that fits “%s”.", "Ich finde hier nichts Offenes, das zu „%s“ passt.", "这里没有与“%s”相符的未完成任务或触发器。", "No encuentro aquí nada abierto que encaje con «%s»."}
	saysWhich         = words{"That may be one of several, so I did nothing. Name one: %s.", "Das kann mehreres sein, also habe ich nichts getan. Nenne eines: %s.", "可能是其中之一，所以我什么都没做。请指明：%s。", "Puede ser una de varias, así que no he hecho nada. Nombra una: %s."}
	saysTasks         = words{"Tasks and triggers of this conversation:", "Aufgaben und Auslöser dieses Gesprächs:", "这次对话的任务和触发器：", "Tareas y disparadores de esta conversación:"}
	saysAsked         = words{"I have put a question to you; your answer may come at any time.", "Ich habe dir eine Frage gestellt; die Antwort hat Zeit.", "我已向你提了一个问题，随时可以回答。", "Te he hecho una pregunta; puedes responder cuando quieras."}
	saysAnswered      = words{"Thank you, I have your answer: “%s”.", "Danke, ich habe deine Antwort: „%s“.", "谢谢，收到你的回答：“%s”。", "Gracias, tengo tu respuesta: «%s»."}
	saysKept          = words{"Noted: “%s”.", "Gemerkt: „%s“.", "记住了：“%s”。", "Anotado: «%s»."}
	saysNoSecrets     = words{"That looks like a password or a key; those I do not keep.", "Das sieht nach einem Passwort oder Schlüssel aus; so etwas merke ich mir nicht.", "这看起来是密码或密钥，我不会记住。", "Eso parece una contraseña o una clave; esas cosas no las guardo."}
	saysNotes         = words{"What I have noted on “%s”:\n%s", "Was ich zu „%s“ notiert habe:\n%s", "关于“%s”我记下的：\n%s", "Lo que tengo anotado sobre «%s»:\n%s"}
	saysNoNotes       = words{"I have no notes on “%s”.", "Zu „%s“ habe ich keine Notizen.", "关于“%s”没有笔记。", "No tengo notas sobre «%s»."}
	saysLines         = words{"This was said:", "Das wurde gesagt:", "当时说的是：", "Esto se dijo:"}
	saysNoLines       = words{"I find no lines about that in this conversation.", "Dazu finde ich in diesem Gespräch keine Zeilen.", "这次对话里没有找到相关内容。", "No encuentro líneas sobre eso en esta conversación."}
	saysFeedback      = words{"Thank you, I have passed that on to those who run me.", "Danke, ich habe das an meine Betreiber weitergegeben.", "谢谢，已转达给运行我的人。", "Gracias, se lo he pasado a quienes me administran."}

	// Words for actions: of questions, prompts and plans.
	asksWhich    = words{"Which one shall I cancel?", "Was soll ich abbrechen?", "要取消哪一个？", "¿Qué cancelo?"}
	asksCancel   = words{"cancel %s", "storniere %s", "取消 %s", "cancela %s"}
	asksWhere    = words{"Where to?", "Wohin?", "部署到哪里？", "¿Dónde?"}
	asksDeploy   = words{"deploy to %s", "deploye nach %s", "部署到 %s", "despliega en %s"}
	asksReminder = words{"Reminder: %s", "Erinnerung: %s", "提醒：%s", "Recordatorio: %s"}
	asksResult   = words{"The result says what came out, what that rests on, and what is open.", "Das Ergebnis sagt, was herauskam, worauf es beruht und was offen ist.", "结果要说明得出了什么、依据是什么、还有什么未解决。", "El resultado dice qué ha salido, en qué se apoya y qué queda abierto."}
	asksYesNo    = [4][]string{{"Yes", "No"}, {"Ja", "Nein"}, {"是", "否"}, {"Sí", "No"}}
)

// nextWords are what can be done about a task that ended otherwise than it should.
var nextWords = map[string]words{
	"canceled": {
		"Nothing of it runs any more. Ask for it again if it is wanted after all.",
		"Davon läuft nichts mehr. Bitte noch einmal darum, wenn es doch gebraucht wird.",
		"它已完全停止。如果还需要，再说一遍即可。",
		"Ya no queda nada en marcha. Pídela otra vez si al final hace falta.",
	},
	"failed": {
		"Ask for it again to have it tried anew, or say what is to be done differently.",
		"Bitte noch einmal darum, dann wird es neu versucht, oder sag, was anders zu machen ist.",
		"再说一遍就会重试，也可以告诉我要怎么改。",
		"Pídela otra vez para reintentarla, o di qué hay que hacer de otro modo.",
	},
}

// statusWords are how tasks stand, in people's words.
var statusWords = map[string]words{
	"succeeded": {"succeeded", "gelungen", "已成功", "terminada con éxito"},
	"failed":    {"failed", "gescheitert", "失败", "fallida"},
	"canceled":  {"canceled", "abgebrochen", "已取消", "cancelada"},
	"deferred":  {"deferred", "aufgeschoben", "已推迟", "aplazada"},
	"pending":   {"pending", "wartet", "等待中", "pendiente"},
	"running":   {"running", "läuft", "进行中", "en curso"},
	"waiting":   {"waits for an answer", "wartet auf Antwort", "等待回答", "espera una respuesta"},
}

// What the demo model says in tasks and plans.
var (
	saysWorking   = words{"I am at it: %s", "Ich bin dabei: %s", "正在做：%s", "Estoy en ello: %s"}
	saysPart      = words{"Step %d of %d is done.", "Schritt %d von %d ist getan.", "第 %d 步完成，共 %d 步。", "Paso %d de %d hecho."}
	saysWorkDone  = words{"The demo model (no AI, only rules) worked on “%s”:", "Das Demo-Modell (keine KI, nur Regeln) hat an „%s“ gearbeitet:", "演示模型（不是人工智能，只有规则）处理了“%s”：", "El modelo de demostración (no una IA, solo reglas) ha trabajado en «%s»:"}
	saysWorkLess  = words{"What my rules know to do is a link, a file, a search, a command or a waiting time in the request; there was nothing of the kind.", "Meine Regeln kennen nur Links, Dateien, Suchen, Befehle oder Wartezeiten im Auftrag; nichts davon war da.", "我的规则只认识请求里的链接、文件、搜索、命令或等待时间；这次都没有。", "Mis reglas solo conocen enlaces, archivos, búsquedas, órdenes o tiempos de espera en el encargo; no había nada de eso."}
	saysWorkData  = words{"Nobody whom the program knows asked for this, so the demo model did nothing.", "Niemand, den das Programm kennt, hat das verlangt; das Demo-Modell hat nichts getan.", "这不是程序认识的人提出的，所以演示模型什么都没做。", "No lo ha pedido nadie que el programa conozca, así que el modelo de demostración no ha hecho nada."}
	saysWorkOpen  = words{"Open: a real model would draw conclusions from this; I only show what came back.", "Offen: Ein echtes Modell zöge daraus Schlüsse; ich zeige nur, was zurückkam.", "未解决：真正的模型会据此得出结论；我只展示返回的内容。", "Abierto: un modelo de verdad deduciría algo de esto; yo solo muestro lo que ha vuelto."}
	saysWorkCould = words{"could not: %s", "ging nicht: %s", "没做成：%s", "no se pudo: %s"}
	saysWorkLacks = words{"Not to be had here: %s.", "Hier nicht zu haben: %s.", "这里没有提供：%s。", "Aquí no disponible: %s."}
	saysWorkLeft  = words{"Not done any more: %s.", "Nicht mehr getan: %s.", "没来得及做：%s。", "Ya no se hizo: %s."}
	saysWaited    = words{"I took my time, %s in all, so that you could see progress.", "Ich habe mir %s Zeit genommen, damit du Fortschritt siehst.", "一共用了 %s，好让你看到进度。", "Me he tomado %s en total para que vieras el progreso."}
	saysNote      = words{"Written by the demo model for: %s", "Vom Demo-Modell geschrieben für: %s", "演示模型为此写下：%s", "Escrito por el modelo de demostración para: %s"}
	saysCannot    = words{"The demo model cannot plan this: the request itself says that it is impossible.", "Das kann das Demo-Modell nicht planen: Der Auftrag selbst sagt, dass es unmöglich ist.", "演示模型无法规划：请求本身就说这是不可能的。", "El modelo de demostración no puede planearlo: el propio encargo dice que es imposible."}
	saysReply     = words{"%s\n\n(The answer to “%s” was: %s)", "%s\n\n(Die Antwort auf „%s“ war: %s)", "%s\n\n（对“%s”的回答是：%s）", "%s\n\n(La respuesta a «%s» fue: %s)"}
)
