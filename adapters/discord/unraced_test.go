//go:build !race

package discord

const raced = false
