package channel

import "strconv"

// call spells the keys and arguments of the cycle script.
func (o *owner) call(ops []*op, renew bool) ([]string, []any) {
	keys := append(make([]string, 0, 20+len(ops)), o.keys...)
	ttl := "0"
	if renew {
		ttl = strconv.FormatInt(o.n.opt.Lease.Milliseconds(), 10)
	}
	args := make([]any, 0, 100+len(ops)*24)
	args = append(args, o.token, "", ttl, len(roads)+len(files), len(tables), o.n.opt.HistoryCap, o.n.lean(), readPage)

	settle := make([][]string, len(roads))
	publishes := make([]bool, len(roads)+len(files))
	for _, op := range ops {
		for _, l := range op.letters {
			publishes[roadNumber(l.to)-1] = true
		}
		if !op.settle {
			continue
		}
		for _, e := range op.entries {
			r := roadNumber(e.Channel) - 1
			settle[r] = append(settle[r], e.ID)
		}
	}
	for i, r := range roads {
		read := flag(o.reads(r.name) && (o.readAll || ((o.read || o.hot) && r.external)))
		args = append(args, string(r.name), r.group, read, flag(publishes[i]), len(settle[i]))
		args = appendAll(args, settle[i])
	}
	for _, f := range files {
		args = append(args, string(f), "", "0", "0", 0)
	}

	args = append(args, len(ops))
	letters, histories := 0, 0
	for _, op := range ops {
		args = append(args, op.conv)
		letters += len(op.letters)
		if len(op.history) > 0 {
			histories++
		}
	}
	for _, op := range ops {
		args = append(args, op.stop)
	}
	keys, args = o.appendCalls(keys, args, ops)
	args = append(args, histories)
	var active []any
	for _, op := range ops {
		if len(op.history) > 0 {
			keys = append(keys, o.n.keys.of(o.p, "h:"+op.conv))
			args = append(args, len(keys), len(op.history))
			args = appendAll(args, op.history)
			active = append(active, o.now().UnixMilli(), op.conv)
		}
	}
	args = append(args, letters)
	for _, op := range ops {
		for _, l := range op.letters {
			args = append(args, roadNumber(l.to), flag(l.begun), len(l.fields))
			args = appendAll(args, l.fields)
		}
	}
	args = o.appendPuts(args, ops)
	args = appendWaiting(args, ops)
	args = append(args, len(active))
	return keys, append(args, active...)
}

// appendCalls lays out the calls of extensions.
func (o *owner) appendCalls(keys []string, args []any, ops []*op) ([]string, []any) {
	n := len(args)
	args = append(args, 0)
	calls := 0
	for _, op := range ops {
		for _, c := range op.calls {
			calls++
			args = append(args, c.Extension, len(c.Keys))
			for _, k := range c.Keys {
				keys = append(keys, k)
				args = append(args, len(keys))
			}
			args = append(args, len(c.Args))
			args = appendAll(args, c.Args)
		}
	}
	args[n] = calls
	return keys, args
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func appendAll(args []any, list []string) []any {
	for _, s := range list {
		args = append(args, s)
	}
	return args
}

// appendPuts lays out what the ops set and remove in each table, the last word
// on a field winning. What is settled has no attempts to remember.
func (o *owner) appendPuts(args []any, ops []*op) []any {
	last := make([]map[string]string, len(tables)) // :: field -> value
	put := func(t int, field, value string) {
		if last[t] == nil {
			last[t] = map[string]string{}
		}
		last[t][field] = value
	}
	for _, op := range ops {
		for _, p := range op.puts {
			put(tableNumber(p.Table)-1, p.Field, p.Value)
		}
		if op.settle {
			for _, e := range op.entries {
				put(0, string(e.Channel)+":"+e.ID, "")
			}
		}
	}
	for t := range tables {
		var set, remove []any
		for field, value := range last[t] {
			if value == "" {
				remove = append(remove, field)
			} else {
				set = append(set, field, value)
			}
		}
		args = append(append(args, len(set)), set...)
		args = append(append(args, len(remove)), remove...)
	}
	return args
}

// appendWaiting lays out how many inputs each conversation waits for no longer.
func appendWaiting(args []any, ops []*op) []any {
	less := map[string]int{}
	for _, op := range ops {
		if !op.settle {
			continue
		}
		for _, e := range op.entries {
			if e.Channel == UserInput {
				less[op.conv]++
			}
		}
	}
	counts := make([]any, 0, len(less))
	args = append(args, len(less))
	for conv, n := range less {
		args = append(args, conv)
		counts = append(counts, n)
	}
	return append(args, counts...)
}
