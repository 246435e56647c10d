//go:build !linux

package sandbox

// keepInherited does nothing: only Linux lists our descriptors in one place.
func keepInherited() {}
