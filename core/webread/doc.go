// Package webread fetches a web page for a model to read. Both the address and
// the page come from strangers: an address may point at what only this machine
// can reach, and a page may be made to exhaust who reads it.
//
// It promises:
//
//   - It connects to public addresses only. What is judged is the address that is
//     being connected to, at the moment of connecting and for every redirect, so
//     a name that resolves to something else the second time gains nothing.
//     Private neighbours are reached only where an operator allows them.
//   - It sends no cookie, no credential, no referrer, and uses no proxy of the
//     environment. It only ever sends GET.
//   - Bytes (counted after decompression), headers, redirects and time are
//     bounded, and so is the work of turning HTML into Markdown.
//
// What comes back is data of strangers: whoever shows it to a model must say so.
package webread

import (
	"fmt"
)

// A Refusal is an error that whoever asked can understand and perhaps mend:
// an address that may not be read, a page that cannot be. Its text is for a
// model.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }
