package config

import _ "embed"

// Example is a commented YAML file with every key at its default, for people to
// start from. A test holds it to Default.
//
//go:embed example.yaml
var Example string
